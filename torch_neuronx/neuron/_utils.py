"""Device arguments: None, an index, a string or a torch.device."""

from __future__ import annotations

from typing import Any

import torch

from torch_neuronx import _C


def _get_device_index(device: Any = None, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index a device argument means. Without an index: the current device if ``optional``, else an error.
    Also called by torch.load with a location such as ``"neuron:1"``."""
    if isinstance(device, bool):
        raise TypeError(f"expected a device or an index, got {device!r}")
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != "neuron":
            raise ValueError(f"Expected a neuron device, but got: {device}")
        if device.index is not None:
            return device.index
    elif device is not None:
        raise TypeError(f"expected None, an int, a str or a torch.device, got {type(device).__name__}")
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
    return _C.current_device()
