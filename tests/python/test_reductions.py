"""Reductions against float64 on the CPU: sets of dimensions, layouts, dtypes, empty and special inputs, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import torch_neuronx.testing
from reference import DEVICE, FLOATS, check, check_gradients

DIMS: tuple[Any, ...] = (0, 1, 2, -1, (0, 1), (1, 2), (0, 2), (0, 1, 2), None)


def values(dtype: torch.dtype, shape: tuple[int, ...] = (3, 5, 37)) -> torch.Tensor:
    generator = torch.Generator().manual_seed(11)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    return (
        (x * 4).to(dtype)
        if not dtype.is_floating_point and dtype != torch.bool
        else (x > 0)
        if dtype == torch.bool
        else x.to(dtype)
    )


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, dim, keep: torch.sum(x, dim, keep),
    "mean": lambda x, dim, keep: torch.mean(x, dim, keep),
    "nansum": lambda x, dim, keep: torch.nansum(x, dim, keep),
    "amax": lambda x, dim, keep: torch.amax(x, () if dim is None else dim, keep),
    "amin": lambda x, dim, keep: torch.amin(x, () if dim is None else dim, keep),
    "var": lambda x, dim, keep: torch.var(x, dim, keepdim=keep),
    "std": lambda x, dim, keep: torch.std(x, dim, correction=0, keepdim=keep),
    "var_mean": lambda x, dim, keep: torch.var_mean(x, dim, keepdim=keep),
    "norm1": lambda x, dim, keep: torch.linalg.vector_norm(x, 1, dim, keep),
    "norm2": lambda x, dim, keep: torch.linalg.vector_norm(x, 2, dim, keep),
    "norm3": lambda x, dim, keep: torch.linalg.vector_norm(x, 3, dim, keep),
    "norm_inf": lambda x, dim, keep: torch.linalg.vector_norm(x, math.inf, dim, keep),
    "norm_minus_inf": lambda x, dim, keep: torch.linalg.vector_norm(x, -math.inf, dim, keep),
    "norm0": lambda x, dim, keep: torch.linalg.vector_norm(x, 0, dim, keep),
    "logsumexp": lambda x, dim, keep: torch.logsumexp(x, (0, 1, 2) if dim is None else dim, keep),
    "any": lambda x, dim, keep: torch.any(x > 2, dim, keep) if dim is not None else torch.any(x > 2),
    "all": lambda x, dim, keep: torch.all(x > -2, dim, keep) if dim is not None else torch.all(x > -2),
}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dim", DIMS, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_dimensions(name: str, dim: Any, keep: bool) -> None:
    with torch_neuronx.testing.no_fallback():
        check(lambda x: REDUCTIONS[name](x, dim, keep), [values(torch.float32)], 32, 1.0)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dim", [(0, 2), (0, 3), (0, 2, 4), (1, 3), (0, 1, 3), (2, 4), (0, 4)], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduced_and_kept_dimensions_in_turn(name: str, dim: tuple[int, ...], keep: bool) -> None:
    """More than one run of reduced dimensions: partial results, whose dimensions must meet the output's."""
    x = values(torch.float32, (2, 3, 4, 5, 3))
    with torch_neuronx.testing.no_fallback():
        for inputs in (x, x.transpose(1, 3)):
            check(lambda x: REDUCTIONS[name](x, dim, keep), [inputs], 32, 1.0)
        if name == "sum":
            check_gradients(lambda x: torch.sum(x, dim, keep), [x])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_dtypes(name: str, dtype: torch.dtype) -> None:
    with torch_neuronx.testing.no_fallback():
        check(lambda x: REDUCTIONS[name](x, 1, False), [values(dtype)], 8, 1.0)
        check(lambda x: REDUCTIONS[name](x, None, False), [values(dtype, (700,)).reshape(7, 10, 10)], 8, 4.0)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "var", "norm2", "norm1", "logsumexp", "std"])
@pytest.mark.parametrize("dim", [1, (0, 2), None], ids=str)
def test_gradients(name: str, dim: Any) -> None:
    with torch_neuronx.testing.no_fallback():
        check_gradients(lambda x: REDUCTIONS[name](x, dim, False), [values(torch.float32)], 32)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64], ids=str)
def test_integers(dtype: torch.dtype) -> None:
    x = values(torch.float32).mul(20).to(dtype) if dtype != torch.bool else values(dtype)
    d = x.to(DEVICE)
    with torch_neuronx.testing.no_fallback():
        for dim in (0, 1, 2, (0, 2)):
            assert torch.equal(d.sum(dim).cpu(), x.sum(dim))
            assert torch.equal(torch.amax(d, dim).cpu(), torch.amax(x, dim))
            assert torch.equal(torch.amin(d, dim).cpu(), torch.amin(x, dim))
            assert torch.equal(torch.count_nonzero(d, dim).cpu(), torch.count_nonzero(x, dim))
        assert torch.equal(d[:, :, :5].prod(2).cpu(), x[:, :, :5].prod(2))
        assert torch.equal(d.any(1).cpu(), x.any(1))
        assert torch.equal(d.all(1).cpu(), x.all(1))
        assert d.any(1).dtype == x.any(1).dtype
        if dtype != torch.bool:
            assert torch.equal(d.max().cpu(), x.max())


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_extremes_with_positions(dim: int) -> None:
    x = values(torch.float32).round()  # with ties
    x[1, 2, 3] = math.nan
    x[1, 2, 5] = math.nan
    d = x.to(DEVICE)
    with torch_neuronx.testing.no_fallback():
        for function in (torch.max, torch.min):
            actual, expected = function(d, dim), function(x, dim)
            assert torch.equal(actual.values.cpu().nan_to_num(99), expected.values.nan_to_num(99))
            picked = x.gather(dim, actual.indices.cpu().unsqueeze(dim)).squeeze(dim)
            assert torch.equal(picked.nan_to_num(99), expected.values.nan_to_num(99))
        for function in (torch.argmax, torch.argmin):
            index = function(d, dim).cpu()
            first = function(x, dim)
            assert torch.equal(
                x.gather(dim, index.unsqueeze(dim)).nan_to_num(99), x.gather(dim, first.unsqueeze(dim)).nan_to_num(99)
            )


def test_argmax_takes_the_first() -> None:
    x = torch.tensor([[1.0, 5, 5], [math.nan, 7, math.nan]])
    with torch_neuronx.testing.no_fallback():
        assert x.to(DEVICE).argmax(1).tolist() == [1, 0]
        assert x.to(DEVICE).argmax().item() == 3
        assert x.to(DEVICE).t().argmax(0).tolist() == [1, 0]
        assert x.t().to(DEVICE).contiguous().argmax().item() == x.t().contiguous().argmax().item()
        assert torch.tensor([3, 9, 9], device=DEVICE).argmax().item() == 1


def test_layouts() -> None:
    x = values(torch.float32, (6, 8, 10))
    d = x.to(DEVICE)
    with torch_neuronx.testing.no_fallback():
        for view in (
            lambda t: t.permute(2, 0, 1),
            lambda t: t[::2, 1:, ::3],
            lambda t: t[0].t(),
            lambda t: t[:, :1].expand(6, 4, 10),
            lambda t: t.transpose(0, 2)[1:],
        ):
            a, b = view(d), view(x)
            for dim in [None, *range(b.dim())]:
                torch.testing.assert_close(a.sum(dim).cpu(), b.sum(dim), rtol=1e-5, atol=1e-5)
                torch.testing.assert_close(torch.var(a, dim).cpu(), torch.var(b, dim), rtol=1e-5, atol=1e-5)


def test_order_of_a_sum_does_not_depend_on_strides() -> None:
    x = values(torch.float32, (40, 1000))
    d = x.to(DEVICE)
    transposed = d.t().contiguous().t()
    assert torch.equal(d.sum(1).cpu(), transposed.sum(1).cpu())
    assert torch.equal(d.sum(0).cpu(), transposed.sum(0).cpu())
    assert torch.equal(d.sum().cpu(), transposed.sum().cpu())


def test_empty_and_scalar() -> None:
    empty = torch.empty(3, 0, device=DEVICE)
    assert empty.sum(1).tolist() == [0, 0, 0]
    assert empty.sum().item() == 0
    assert empty.prod(1).tolist() == [1, 1, 1]
    assert empty.mean().isnan().item()
    assert empty.sum(0).shape == (0,)
    assert empty.all(1).tolist() == [True] * 3
    scalar = torch.tensor(3.0, device=DEVICE)
    assert scalar.sum().item() == 3 and scalar.mean(0).item() == 3 and scalar.max().item() == 3
    assert scalar.argmax().item() == 0 and scalar.norm().item() == 3
    with pytest.raises(IndexError, match="Expected reduction dim 1 to have non-zero size"):
        empty.argmax(1)
    with pytest.raises(RuntimeError, match=r"max\(\): Expected reduction dim to be specified for input.numel\(\) == 0"):
        empty.max()
    with pytest.raises(IndexError, match="Dimension out of range"):
        scalar.sum(1)


def test_special_values() -> None:
    x = torch.tensor([[math.inf, 1.0], [math.nan, 1.0], [math.inf, -math.inf], [-math.inf, -math.inf]])
    d = x.to(DEVICE)
    for function in (
        torch.sum,
        torch.amax,
        torch.amin,
        torch.mean,
        torch.logsumexp,
        torch.linalg.vector_norm,
        torch.nansum,
    ):
        expected = function(x, dim=1)
        torch.testing.assert_close(function(d, dim=1).cpu(), expected, equal_nan=True)


def test_dtype_argument() -> None:
    x = values(torch.bfloat16)
    with torch_neuronx.testing.no_fallback():
        for dtype in (torch.float32, torch.float64):
            actual = x.to(DEVICE).sum(2, dtype=dtype)
            assert actual.dtype == dtype
            torch.testing.assert_close(actual.cpu(), x.to(dtype).sum(2), rtol=1e-5, atol=1e-5)
        assert torch.equal(
            values(torch.int32).to(DEVICE).sum(dtype=torch.int32).cpu(), values(torch.int32).sum(dtype=torch.int32)
        )
        out = torch.empty(0, device=DEVICE)
        torch.mean(x.float().to(DEVICE), 1, out=out)
        torch.testing.assert_close(out.cpu(), x.float().mean(1))


def test_sums_in_bfloat16_accumulate_in_float32() -> None:
    assert (
        torch.ones(3000, dtype=torch.bfloat16, device=DEVICE).sum().item() == 3008
    )  # 3000 rounded to eight bits, once
    assert torch.ones(10, 3000, dtype=torch.bfloat16, device=DEVICE).sum(1).sum().item() == 30080


def test_norm_and_clip() -> None:
    parameters = [torch.nn.Parameter(values(torch.float32, (n, 3))) for n in (2, 5)]
    copies = [torch.nn.Parameter(p.detach().to(DEVICE)) for p in parameters]
    for p, c in zip(parameters, copies, strict=True):
        p.grad = p.detach() * 3
        c.grad = c.detach() * 3
    total = torch.nn.utils.clip_grad_norm_(copies, 1.0)
    torch.testing.assert_close(total.cpu(), torch.nn.utils.clip_grad_norm_(parameters, 1.0))
    for p, c in zip(parameters, copies, strict=True):
        torch.testing.assert_close(c.grad.cpu(), p.grad)


@pytest.mark.parametrize("columns", [16, 33, 1100])
def test_column_sums_join_their_producers(columns):
    """A bias gradient: the gradient is stored and summed in one region, with the bits of two."""
    torch.manual_seed(0)
    x, y = torch.randn(600, columns), torch.randn(600, columns)

    def gradients(device):
        a, b = x.clone().to(device), y.to(device)
        torch.neuron.synchronize()
        torch_neuronx.reset_eager_report()
        product = a * b
        a.sub_(1)
        results = product, product.sum(0), a, a.amax(0)
        torch.neuron.synchronize()
        return [result.cpu() for result in results], torch_neuronx.eager_report()["fused_commands"]

    with torch_neuronx.testing.synchronous_compiles():
        got, fused = gradients("neuron")
    expected, _ = gradients("cpu")
    for index in (0, 2, 3):
        assert torch.equal(got[index], expected[index])
    torch.testing.assert_close(got[1].double(), (x.double() * y.double()).sum(0), rtol=1e-5, atol=1e-4)
    # Short columns stay apart: what else is in the region would run in vectors that are mostly empty.
    assert fused == (2 if columns < 32 else 4)
