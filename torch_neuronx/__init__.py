"""A native PyTorch backend for the device type ``neuron``.

``import torch`` loads this package by itself through the ``torch.backends`` entry point; importing it by name works too.
Importing starts no thread and touches no device.
"""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = ("amp", "compat", "neuron", "testing")


def _autoload() -> None:
    """Entry point of torch's device backend autoload: runs while ``import torch`` is at its end."""
    from torch_neuronx import _loader

    _loader.load()


def __getattr__(name: str) -> Any:
    # Everything public lives in submodules, so that importing this file while torch is half imported is harmless.
    if name.startswith("_"):
        raise AttributeError(f"module 'torch_neuronx' has no attribute {name!r}")
    load = importlib.import_module("torch_neuronx._loader").load
    load()
    if name in _SUBMODULES:
        return importlib.import_module(f"torch_neuronx.{name}")
    api = importlib.import_module("torch_neuronx._api")
    if name not in api.__all__:
        raise AttributeError(f"module 'torch_neuronx' has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *importlib.import_module("torch_neuronx._api").__all__})
