"""Random number generators of the device: one Philox generator per logical core, whose state is (seed, offset)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import torch

from torch_neuronx import _C
from torch_neuronx.neuron._utils import _get_device_index


class _DefaultGenerators(Sequence[torch.Generator]):
    """Made at first use: importing must not ask for devices."""

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[torch.Generator]: ...
    def __getitem__(self, index: int | slice) -> torch.Generator | Sequence[torch.Generator]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"there are {count} neuron generators, got index {index}")
        return _C.default_generator(index % count)

    def __len__(self) -> int:
        return _C.device_count()

    def __iter__(self) -> Iterator[torch.Generator]:
        return (self[i] for i in range(len(self)))


default_generators = _DefaultGenerators()


def _get_generator(device: Any = None) -> torch.Generator:
    return _C.default_generator(_get_device_index(device, optional=True))


def get_rng_state(device: Any = "neuron") -> torch.Tensor:
    """16 bytes: the seed, then the offset."""
    return _get_generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(i) for i in range(_C.device_count())]


def set_rng_state(new_state: torch.Tensor, device: Any = "neuron") -> None:
    _get_generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def _get_rng_state_offset(device: Any = "neuron") -> int:
    return _get_generator(device).get_offset()


def _set_rng_state_offset(offset: int, device: Any = "neuron") -> None:
    _get_generator(device).set_offset(offset)


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator."""
    _get_generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds every device's generator; torch.manual_seed calls this."""
    for index in range(_C.device_count()):
        _C.default_generator(index).manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device's generator with a number from the system."""
    _get_generator().seed()


def seed_all() -> None:
    """Seeds every device's generator with the same number from the system."""
    if _C.device_count() > 0:
        manual_seed_all(_C.default_generator(0).seed())


def initial_seed() -> int:
    return _get_generator().initial_seed()
