"""Comparison of the device with CPU PyTorch: values against float64, dtypes and shapes against the CPU's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

DEVICE = "neuron"
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)

# How far a result may lie from the float64 value: in units of the dtype's epsilon, relative to the larger of the value
# and `scale`.
EPSILONS = 4


def to_device(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        moved = value.detach().to(DEVICE)
        if value.layout == torch.strided and value.stride() != moved.stride() and value.numel() > 0:
            base = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=DEVICE)
            moved = base.copy_(moved) if 0 not in value.stride() else moved
        return moved.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(item) for item in value)
    return value


def to_double(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        wide = value.detach().double() if value.dtype.is_floating_point else value.detach()
        return wide.clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(to_double(item) for item in value)
    return value


def flatten(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in flatten(item)]


def assert_near(actual: torch.Tensor, expected: torch.Tensor, epsilons: float = EPSILONS, scale: float = 0.0) -> None:
    """`expected` is float64 (or exact); `actual` any dtype on any device."""
    actual = actual.detach().cpu()
    assert actual.shape == expected.shape, f"shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    if not actual.dtype.is_floating_point:
        assert torch.equal(actual, expected.to(actual.dtype)), f"{actual} is not {expected}"
        return
    rounded = expected.to(actual.dtype)
    info = torch.finfo(actual.dtype)
    wide, target = actual.double(), expected.double()
    special = ~torch.isfinite(rounded) | ~torch.isfinite(actual)
    same = (actual == rounded) | (torch.isnan(actual) & torch.isnan(rounded))
    bound = epsilons * info.eps * torch.clamp(target.abs(), min=max(scale, info.tiny))
    fine = torch.where(special, same, (wide - target).abs() <= bound)
    if not bool(fine.all()):
        worst = (~fine).nonzero()[0].tolist()
        at = tuple(worst)
        raise AssertionError(
            f"{int((~fine).sum())} of {fine.numel()} elements differ; at {at}: {wide[at].item()!r}, "
            f"expected {target[at].item()!r}"
        )


def check(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    epsilons: float = EPSILONS,
    scale: float = 0.0,
    same_dtype: bool = True,
) -> None:
    """Runs the function on the device and on the CPU in float64; dtypes and shapes must be those of the CPU."""
    actual = flatten(function(*to_device(tuple(arguments))))
    expected = flatten(function(*to_double(tuple(arguments))))
    plain = flatten(function(*arguments)) if same_dtype else expected
    assert len(actual) == len(expected)
    for a, e, p in zip(actual, expected, plain, strict=True):
        assert a.device.type == DEVICE
        if same_dtype:
            assert a.dtype == p.dtype, f"dtype {a.dtype}, CPU gives {p.dtype}"
        assert_near(a, e.detach(), epsilons, scale)


def check_gradients(
    function: Callable[..., torch.Tensor],
    arguments: Sequence[Any],
    epsilons: float = 16,
    scale: float = 1.0,
) -> None:
    """Compares the gradients of a weighted sum of the results with those of float64."""

    def gradients(values: Sequence[Any]) -> list[torch.Tensor]:
        leaves = [
            v.detach().requires_grad_() if isinstance(v, torch.Tensor) and v.dtype.is_floating_point else v
            for v in values
        ]
        total = None
        for result in flatten(function(*leaves)):
            if not result.requires_grad:
                continue
            generator = torch.Generator().manual_seed(result.numel())
            weight = torch.randn(result.shape, generator=generator, dtype=torch.float32)
            term = (result * weight.to(result.device, result.dtype)).sum()
            total = term if total is None else total + term
        assert total is not None
        inputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        return [g for g in torch.autograd.grad(total, inputs, allow_unused=True) if g is not None]

    actual = gradients(to_device(tuple(arguments)))
    expected = gradients(to_double(tuple(arguments)))
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert_near(a, e, epsilons, scale)
