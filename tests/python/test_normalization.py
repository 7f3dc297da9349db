"""Normalisation layers against float64, forward and backward."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import torch_neuronx.testing
from reference import DEVICE, FLOATS, check, check_gradients


def values(dtype: torch.dtype, shape: tuple[int, ...], seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [((6, 33), 1), ((2, 5, 40), 1), ((2, 5, 8), 2), ((16,), 1)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_layer_norm(dtype: torch.dtype, shape: tuple[tuple[int, ...], int], affine: bool) -> None:
    sizes, rank = shape
    normalized = sizes[-rank:]
    arguments = [values(dtype, sizes)]
    if affine:
        arguments += [values(dtype, normalized, 2), values(dtype, normalized, 3)]

    def function(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, normalized, *parameters)

    with torch_neuronx.testing.no_fallback():
        check(function, arguments, 8, 1.0)
        check_gradients(function, arguments, 32)


def test_layer_norm_of_strided_and_empty() -> None:
    x = values(torch.float32, (6, 5, 7))
    with torch_neuronx.testing.no_fallback():
        torch.testing.assert_close(
            F.layer_norm(x.to(DEVICE).transpose(0, 1), (7,)).cpu(), F.layer_norm(x.transpose(0, 1), (7,))
        )
        torch.testing.assert_close(
            F.layer_norm(x.to(DEVICE).transpose(1, 2), (5,)).cpu(), F.layer_norm(x.transpose(1, 2), (5,))
        )
        assert F.layer_norm(torch.empty(0, 4, device=DEVICE), (4,)).shape == (0, 4)


@pytest.mark.parametrize("module", [torch.nn.LayerNorm, torch.nn.RMSNorm])
@pytest.mark.parametrize("sizes", [(0, 8), (3, 0, 8), (0, 3, 8), (2, 0, 3, 8), (2, 3, 0, 8)])
def test_parameters_of_nothing_have_no_gradient(module: type[torch.nn.Module], sizes: tuple[int, ...]) -> None:
    layer = module(8).to(DEVICE)
    for used in [torch.full((n,), 7.0, device=DEVICE) for n in (8, 8, 8, 8)]:  # memory that is not zero by chance
        del used
    layer(torch.empty(sizes, device=DEVICE, requires_grad=True)).sum().backward()
    assert [p.grad.abs().sum().item() for p in layer.parameters()] == [0.0] * len(list(layer.parameters()))


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_parameters_of_several_dimensions_need_not_be_contiguous(norm: str) -> None:
    x, gradient = values(torch.float32, (3, 4, 5)), values(torch.float32, (3, 4, 5), 4)
    weight, bias = values(torch.float32, (4, 5), 2), values(torch.float32, (4, 5), 3)

    def run(device: str) -> list[torch.Tensor]:
        parameters = [p.to(device).t().contiguous().t().requires_grad_() for p in (weight, bias)]
        leaf = x.to(device).requires_grad_()
        if norm == "layer":
            y = F.layer_norm(leaf, (4, 5), *parameters)
        else:
            y = F.rms_norm(leaf, (4, 5), parameters[0])
        leaves = [leaf, *(parameters if norm == "layer" else parameters[:1])]
        return [y, *torch.autograd.grad(y, leaves, gradient.to(device))]

    with torch_neuronx.testing.no_fallback():
        for got, wanted in zip(run(DEVICE), run("cpu"), strict=True):
            torch.testing.assert_close(got.detach().cpu(), wanted.detach(), rtol=1e-5, atol=1e-5)


def test_gradients_over_no_rows_are_zero() -> None:
    # Among other recorded work, and in memory that held something else.
    for used in [torch.full((n,), 7.0, device=DEVICE) for n in (1, 1, 1, 1, 5, 5, 5, 5)]:
        used.cpu()
    for size in (1, 5):
        x = torch.empty(0, size, device=DEVICE, requires_grad=True)
        weight, bias = (torch.full((size,), 3.0, device=DEVICE, requires_grad=True) for _ in range(2))
        gradients = torch.autograd.grad(F.layer_norm(x, (size,), weight, bias).sum(), (weight, bias))
        assert [g.tolist() for g in gradients] == [[0.0] * size] * 2


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rms_norm(dtype: torch.dtype) -> None:
    arguments = [values(dtype, (3, 5, 40)), values(dtype, (40,), 2)]

    def function(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (40,), weight, 1e-5)

    with torch_neuronx.testing.no_fallback():
        check(function, arguments, 16, 1.0)
        check_gradients(function, arguments, 64)


@pytest.mark.parametrize("shape", [(4, 3, 5, 6), (8, 3), (4, 3, 7)], ids=str)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_batch_norm(dtype: torch.dtype, training: bool, shape: tuple[int, ...]) -> None:
    arguments = [values(dtype, shape), values(dtype, (3,), 2), values(dtype, (3,), 3)]

    def function(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        mean, variance = (
            torch.full((3,), 0.25, dtype=x.dtype, device=x.device),
            torch.ones(3, dtype=x.dtype, device=x.device),
        )
        return F.batch_norm(x, mean, variance, weight, bias, training, 0.1)

    with torch_neuronx.testing.no_fallback():
        check(function, arguments, 16, 1.0)
        check_gradients(function, arguments, 64)


def test_batch_norm_module_keeps_running_statistics() -> None:
    module, copy = torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3).to(DEVICE)
    for step in range(3):
        x = values(torch.float32, (4, 3, 5, 6), step)
        torch.testing.assert_close(copy(x.to(DEVICE)).cpu(), module(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(copy.running_mean.cpu(), module.running_mean)
    torch.testing.assert_close(copy.running_var.cpu(), module.running_var)
    module.eval(), copy.eval()
    torch.testing.assert_close(copy(x.to(DEVICE)).cpu(), module(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_group_norm(dtype: torch.dtype, affine: bool) -> None:
    arguments = [values(dtype, (3, 6, 5, 4))]
    if affine:
        arguments += [values(dtype, (6,), 2), values(dtype, (6,), 3)]

    def function(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return F.group_norm(x, 2, *parameters)

    with torch_neuronx.testing.no_fallback():
        check(function, arguments, 16, 1.0)
        check_gradients(function, arguments, 64)


def test_instance_norm() -> None:
    with torch_neuronx.testing.no_fallback():
        check(lambda x: F.instance_norm(x), [values(torch.float32, (3, 4, 5, 6))], 16, 1.0)
