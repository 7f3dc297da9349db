"""A native PyTorch backend for the device type ``neuron``.

``import torch`` loads this package by itself through the ``torch.backends`` entry point; importing it by name works too.
Importing starts no thread and touches no device.
"""

from __future__ import annotations

from typing import Any


def _autoload() -> None:
    """Entry point of torch's device backend autoload: runs while ``import torch`` is at its end."""
    from torch_neuronx import _loader

    _loader.load()


def __getattr__(name: str) -> Any:
    # Everything public lives in submodules, so that importing this file while torch is half imported is harmless.
    if name.startswith("__"):
        raise AttributeError(f"module 'torch_neuronx' has no attribute {name!r}")
    from torch_neuronx import _loader

    _loader.load()
    from torch_neuronx import _api

    if name not in _api.__all__:
        raise AttributeError(f"module 'torch_neuronx' has no attribute {name!r}")
    return getattr(_api, name)


def __dir__() -> list[str]:
    from torch_neuronx import _api

    return sorted(set(globals()) | set(_api.__all__))
