"""Streams and events. Subclasses of torch's own, which Dynamo and the rest of torch know."""

from __future__ import annotations

from typing import Any

import torch

from torch_neuronx import _C
from torch_neuronx.neuron._utils import _get_device_index


class Stream(torch.Stream):
    """A queue of operations: they run in the order they were recorded. Streams are independent of each other until an
    event or ``wait_stream`` orders them."""

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:
        if kwargs:
            return super().__new__(cls, **kwargs)
        index = _get_device_index(device, optional=True)
        return super().__new__(cls, device=torch.device("neuron", index), priority=priority)

    def wait_event(self, event: torch.Event) -> None:
        super().wait_event(event)

    def wait_stream(self, stream: torch.Stream) -> None:
        self.wait_event(stream.record_event())

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        if event is None:
            event = Event()
        event.record(self)
        return event

    @property
    def neuron_stream(self) -> int:
        """The address of the runtime's stream, for foreign code."""
        return self.native_handle  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"torch.neuron.Stream(device={self.device}, stream_id={self.stream_id})"


class Event(torch.Event):
    """A point in a stream. With ``enable_timing`` the time it was reached is kept."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        if interprocess:
            raise NotImplementedError("neuron events cannot be shared between processes")
        return super().__new__(cls, device="neuron", enable_timing=enable_timing, blocking=blocking)

    def elapsed_time(self, end_event: torch.Event) -> float:
        """Milliseconds between the two events; both must have been recorded with timing."""
        return _C.elapsed_milliseconds(self, end_event)

    def __repr__(self) -> str:
        return f"torch.neuron.Event(device={self.device}, event_id={self.event_id})"


def _wrap(stream: torch.Stream) -> Stream:
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=int(stream.device_type))


def current_stream(device: Any = None) -> Stream:
    return _wrap(torch._C._accelerator_getStream(_get_device_index(device, optional=True)))


def default_stream(device: Any = None) -> Stream:
    index = _get_device_index(device, optional=True)
    if not 0 <= index < _C.device_count():
        raise RuntimeError(f"invalid device index {index} for neuron: valid indices are 0 to {_C.device_count() - 1}")
    return Stream(stream_id=0, device_index=index, device_type=_device_type_number())


def _device_type_number() -> int:
    return int(torch._C._autograd.DeviceType.PrivateUse1)  # type: ignore[call-overload]


def set_stream(stream: torch.Stream | None) -> None:
    """Makes a stream the current one of its device and that device the current one; None changes nothing."""
    if stream is None:
        return
    torch._C._accelerator_setStream(stream)


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    set_stream(Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))


class StreamContext:
    """Makes a stream current inside a ``with`` block; None makes it do nothing."""

    def __init__(self, stream: torch.Stream | None):
        self.stream = stream
        self._previous: tuple[int, Stream] | None = None

    def __enter__(self) -> torch.Stream | None:
        if self.stream is not None:
            device = _C.current_device()
            self._previous = (device, current_stream(self.stream.device_index))
            set_stream(self.stream)
        return self.stream

    def __exit__(self, *exception: object) -> None:
        if self._previous is not None:
            device, stream = self._previous
            set_stream(stream)
            _C.set_device(device)


def stream(stream: torch.Stream | None) -> StreamContext:
    return StreamContext(stream)
