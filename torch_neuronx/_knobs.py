"""``torch.backends.neuron``: settings of the eager layer.

``eager_mode``: "adaptive", "immediate" or "blocking". ``strict``: an operator that would fall back raises instead.
``fusion``: off gives one region per command, with the same bits. ``float64``: "float64" computes exactly, "float32"
computes float64 tensors as the device does; read when an operation is recorded.
"""

from __future__ import annotations

import sys
from types import ModuleType

import torch

from torch_neuronx import _C


class _NeuronKnobs(ModuleType):
    @property
    def eager_mode(self) -> str:
        return _C.eager_mode()

    @eager_mode.setter
    def eager_mode(self, mode: str) -> None:
        # The environment variable's spelling: "adaptive,strict".
        name, *flags = mode.split(",")
        if flags not in ([], ["strict"]):
            raise ValueError(
                f"unknown eager mode {mode!r}: expected adaptive, immediate or blocking, optionally ',strict'"
            )
        _C.set_eager_mode(name)
        if flags:
            _C.set_strict_mode(True)

    @property
    def strict(self) -> bool:
        return _C.strict_mode()

    @strict.setter
    def strict(self, on: bool) -> None:
        _C.set_strict_mode(bool(on))

    @property
    def float64(self) -> str:
        return "float32" if _C.float64_as_float32() else "float64"

    @float64.setter
    def float64(self, computed_in: str) -> None:
        if computed_in not in ("float64", "float32"):
            raise ValueError(f"float64 must be 'float64' or 'float32', got {computed_in!r}")
        _C.set_float64_as_float32(computed_in == "float32")

    def is_available(self) -> bool:
        return _C.is_available()

    def is_built(self) -> bool:
        return True


def register() -> None:
    name = "torch.backends.neuron"
    knobs = _NeuronKnobs(name, __doc__)
    sys.modules[name] = knobs
    torch.backends.neuron = knobs  # type: ignore[attr-defined]
