"""Devices: which there are, which one is current, and what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from torch_neuronx import _C
from torch_neuronx.neuron._utils import _get_device_index


def is_available() -> bool:
    """True when a neuron device can be used. Starts nothing."""
    return _C.is_available()


def device_count() -> int:
    """Logical NeuronCores this process may use. Starts nothing."""
    return _C.device_count()


def current_device() -> int:
    return _C.current_device()


def set_device(device: Any) -> None:
    """Makes ``device`` the calling thread's current device; a negative index leaves it."""
    index = _get_device_index(device, optional=True)
    if index >= 0:
        _C.set_device(index)


def is_initialized() -> bool:
    """True once the device has been used, and not in a child forked after that."""
    return _C.device_used()


is_neuron_runtime_initialized = is_initialized


def init() -> None:
    """Begins the use of the device; a first operation does the same."""
    _C.use_device()


_lazy_init = init


def _is_compiled() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return _C.in_bad_fork()


def synchronize(device: Any = None) -> None:
    """Waits until everything recorded on the device is done, and raises what went wrong since the last wait."""
    index = _get_device_index(device, optional=True)
    if _C.device_used() or _C.in_bad_fork():
        torch._C._accelerator_synchronizeDevice(index)


def _exchange_device(index: int) -> int:
    previous = _C.current_device()
    if index >= 0:
        _C.set_device(index)
    return previous


_maybe_exchange_device = _exchange_device


class device:  # noqa: N801  (torch.cuda.device is its model)
    """Context manager that makes a device current; a negative index or None changes nothing."""

    def __init__(self, device: Any):
        self.idx = -1 if device is None else _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        _exchange_device(self.prev_idx)


class device_of(device):  # noqa: N801
    """Makes the device of a tensor or storage current; does nothing for objects elsewhere."""

    def __init__(self, obj: Any):
        super().__init__(obj.device.index if obj.device.type == "neuron" else None)


@dataclass(frozen=True)
class NeuronDeviceProperties:
    name: str
    total_memory: int  # bytes
    multi_processor_count: int
    major: int
    minor: int
    driver: str


def get_device_properties(device: Any = None) -> NeuronDeviceProperties:
    index = _get_device_index(device, optional=True)
    total = _C.core_memory()
    driver = _C.driver_name()
    # One logical core of a Trn2 joins two physical ones.
    return NeuronDeviceProperties(f"NeuronCore ({driver})", total, 2, *get_device_capability(index), driver)


def get_device_name(device: Any = None) -> str:
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Generation of the instance the device presents: (2, 0) for a Trn2."""
    index = _get_device_index(device, optional=True)
    if not 0 <= index < device_count():
        raise RuntimeError(f"invalid device index {index} for neuron: valid indices are 0 to {device_count() - 1}")
    return (2, 0)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Cores of one instance reach each other's memory; a device is no peer of itself."""
    return _get_device_index(device, optional=True) != _get_device_index(peer_device, optional=True)


def ipc_collect() -> None:
    """There is no sharing of device memory between processes, so nothing to collect."""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.bfloat16, torch.float16]
