"""``Tensor.__dlpack_device__`` for the renamed device type."""

from __future__ import annotations

import enum
import functools

import torch

FAULT = (
    "torch 2.13 Tensor.__dlpack_device__ (torch/_tensor.py) compares device.type with 'privateuse1', which is never true "
    "once the backend has been renamed: it raises ValueError('Unknown device type neuron for Dlpack')"
)
REMOVE_WHEN = "torch compares with torch._C._get_privateuse1_backend_name() there"


def apply() -> None:
    original = torch.Tensor.__dlpack_device__

    @functools.wraps(original)
    def __dlpack_device__(self: torch.Tensor) -> tuple[enum.IntEnum, int]:
        if type(self) is torch.Tensor or not torch.overrides.has_torch_function_unary(self):
            device = self.device
            if device.type == "neuron":
                from torch.utils.dlpack import DLDeviceType

                return DLDeviceType.kDLExtDev, device.index
        return original(self)

    torch.Tensor.__dlpack_device__ = __dlpack_device__  # type: ignore[method-assign]
