"""Automatic mixed precision for the device: torch's own classes with the device type filled in."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.amp import custom_bwd as _custom_bwd
from torch.amp import custom_fwd as _custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(torch.amp.autocast):  # noqa: N801  (torch.amp.autocast is its model)
    """``torch.autocast("neuron")``: matrix products in bfloat16 by default, CUDA's lists of operators."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype | None = None, cache_enabled: bool = True):
        super().__init__("neuron", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """``torch.amp.GradScaler("neuron")``; needed for float16 only."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("neuron", *args, **kwargs)


custom_fwd = functools.partial(_custom_fwd, device_type="neuron")
custom_bwd = functools.partial(_custom_bwd, device_type="neuron")
