"""unique in all its forms, bincount, mode and histogram on the device against the CPU."""

from __future__ import annotations

import pytest
import torch

from reference import assert_near

NATIVE = {
    "_unique", "_unique2", "unique_consecutive", "unique_dim", "unique_dim_consecutive", "bincount", "mode", "histogram",
}  # fmt: skip
DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.bfloat16,
    torch.float16,
    torch.float32,
    torch.float64,
)


def whole(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.randint(0, 4, shape, generator=torch.Generator().manual_seed(3)).to(dtype)


def same(actual, expected) -> None:
    if isinstance(expected, torch.Tensor):
        actual, expected = (actual,), (expected,)
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert a.device.type == "neuron"
        assert a.dtype == e.dtype
        torch.testing.assert_close(a.cpu(), e, rtol=0, atol=0, equal_nan=True)


def raises_alike(function) -> None:
    """The device raises the CPU's class and text, at the latest when the result is read."""
    with pytest.raises(Exception) as expected:  # noqa: PT011
        function("cpu")
    with pytest.raises(type(expected.value)) as actual:
        for result in function("neuron"):
            result.cpu()
    assert str(expected.value).splitlines()[0] in str(actual.value)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(200,), (5, 6), (), (0,), (0, 3), (1,)])
def test_unique_elements(dtype, shape):
    for x in (
        whole(*shape, dtype=dtype),
        whole(*shape, dtype=dtype).t() if len(shape) == 2 else whole(*shape, dtype=dtype),
    ):
        y = x.to("neuron")
        for inverse in (False, True):
            for counts in (False, True):
                same(torch._unique2(y, True, inverse, counts), torch._unique2(x, True, inverse, counts))
                got = torch.ops.aten.unique_consecutive(y, inverse, counts)
                same(got, torch.ops.aten.unique_consecutive(x, inverse, counts))
        same(torch._unique(y, True, True), torch._unique(x, True, True))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dimension", [0, 1, -1])
def test_unique_slices(dtype, dimension):
    for x in (
        whole(6, 7, 2, dtype=dtype),
        whole(7, 6, 2, dtype=dtype).transpose(0, 1)[:, ::3],
        whole(9, 1, 1, dtype=dtype),
    ):
        y = x.to("neuron")
        for options in ({}, {"return_inverse": True, "return_counts": True}):
            same(torch.unique(y, dim=dimension, **options), torch.unique(x, dim=dimension, **options))
            got = torch.unique_consecutive(y, dim=dimension, **options)
            same(got, torch.unique_consecutive(x, dim=dimension, **options))
    empty = torch.empty(0, 3)
    same(torch.unique(empty.to("neuron"), dim=0), torch.unique(empty, dim=0))
    raises_alike(lambda d: [torch.unique(empty.to(d), dim=1)])
    raises_alike(lambda d: [torch.unique(torch.empty(0, 3, 0, device=d), dim=0)])


def test_nan_and_zeros_of_both_signs():
    x = torch.tensor([[3.0, float("nan"), 0.0], [-0.0, float("nan"), 3.0]])
    same(torch._unique2(x.to("neuron"), True, True, True), torch._unique2(x, True, True, True))
    y = torch.tensor([float("nan"), float("nan"), 0.0, -0.0])
    options = {"return_inverse": True, "return_counts": True}
    same(torch.unique_consecutive(y.to("neuron"), **options), torch.unique_consecutive(y, **options))
    large = torch.tensor([2**62, -(2**62), 2**62 + 1, 2**62])
    same(torch.unique(large.to("neuron"), return_counts=True), torch.unique(large, return_counts=True))


def test_bincount():
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        for x in (whole(50, dtype=dtype), whole(50, dtype=dtype)[::3], torch.empty(0, dtype=dtype)):
            for least in (0, 2, 9):
                same(torch.bincount(x.to("neuron"), minlength=least), torch.bincount(x, minlength=least))
                for weight in (torch.float32, torch.float64, torch.int64, torch.bfloat16, torch.bool):
                    weights = (torch.arange(len(x)) % 7 / 2).to(weight)
                    expected = torch.bincount(x, weights, least)
                    actual = torch.bincount(x.to("neuron"), weights.to("neuron"), least)
                    assert actual.dtype == expected.dtype
                    assert_near(actual, expected.double() if len(x) else expected)

    def counts(values, **options):
        return lambda d: [torch.bincount(torch.tensor(values, device=d), **options)]

    raises_alike(counts([1, -1]))
    raises_alike(counts([[1]]))
    raises_alike(counts([1.0]))
    raises_alike(counts([1], minlength=-1))
    raises_alike(lambda d: [torch.bincount(torch.tensor([1, 2], device=d), torch.ones(3, device=d))])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(40,), (5, 9), (3, 4, 6), (), (1, 1)])
def test_mode(dtype, shape):
    x = whole(*shape, dtype=dtype)
    y = x.to("neuron")
    for dimension in range(-1, max(len(shape), 1)):
        for keep in (False, True):
            expected, got = torch.mode(x, dimension, keep), torch.mode(y, dimension, keep)
            same(got.values, expected.values)
            assert got.indices.dtype == torch.int64
            if shape:
                index = got.indices if keep else got.indices.unsqueeze(dimension)
                same(y.gather(dimension, index), expected.values if keep else expected.values.unsqueeze(dimension))
            given = (torch.empty(0, dtype=dtype, device="neuron"), torch.empty(0, dtype=torch.long, device="neuron"))
            torch.mode(y, dimension, keep, out=given)
            same(given[0], expected.values)
            assert torch.equal(given[1], got.indices)


def test_mode_of_odd_inputs():
    for values in ([float("nan"), 2.0, 2.0, 2.0], [2.0, 2.0, float("nan")], [float("nan")]):
        x = torch.tensor(values)
        same(torch.mode(x.to("neuron")), torch.mode(x))
    empty = torch.empty(2, 0)
    same(torch.mode(empty.to("neuron"), 0).values, torch.mode(empty, 0).values)
    raises_alike(lambda d: torch.mode(empty.to(d), 1))
    z = torch.tensor([[1.0, 1.0, 3.0], [2.0, 3.0, 3.0]], device="neuron", requires_grad=True)
    torch.mode(z, 1).values.sum().backward()
    assert int(z.grad.sum()) == 2
    assert z.grad[0, 2] == 0 and z.grad[1, 0] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("density", [False, True])
def test_histogram(dtype, density):
    x = torch.randn(4, 25, generator=torch.Generator().manual_seed(1)).to(dtype)
    weight = torch.rand(4, 25, generator=torch.Generator().manual_seed(2)).to(dtype)
    x[0, 0], x[0, 1] = 1.5, -1.0
    edges = torch.tensor([-1.0, -0.2, 0.7, 1.5], dtype=dtype)
    for own in (x, x.t()[::2], x[:0]):
        w = weight[: own.shape[0]] if own.shape[1:] == (25,) else weight.t()[::2]
        for weights in (None, w):
            there = None if weights is None else weights.to("neuron")
            samples = [{"bins": edges}, {"bins": 5, "range": (-2.0, 1.5)}, {"bins": 7}]
            for options in samples:
                expected = torch.histogram(own, weight=weights, density=density, **options)
                moved = {k: v.to("neuron") if isinstance(v, torch.Tensor) else v for k, v in options.items()}
                actual = torch.histogram(own.to("neuron"), weight=there, density=density, **moved)
                assert_near(actual.bin_edges, expected.bin_edges.double(), 4, 1.0)
                assert_near(actual.hist, expected.hist.double(), 16, 1.0)
                given = torch.empty(0, dtype=dtype, device="neuron"), torch.empty(0, dtype=dtype, device="neuron")
                torch.histogram(own.to("neuron"), weight=there, density=density, **moved, out=given)
                torch.testing.assert_close(given[0].cpu(), actual.hist.cpu(), rtol=0, atol=0, equal_nan=True)
                assert torch.equal(given[1], actual.bin_edges)


def test_histogram_errors_and_equal_extremes():
    same(torch.histogram(torch.ones(3).to("neuron"), 3), torch.histogram(torch.ones(3), 3))
    x = torch.ones(3)
    raises_alike(lambda d: torch.histogram(torch.tensor([1.0, float("nan")], device=d), 3))
    raises_alike(lambda d: torch.histogram(x.to(d), 3, range=(2.0, 1.0)))
    raises_alike(lambda d: torch.histogram(x.to(d), 0))
    raises_alike(lambda d: torch.histogram(x.long().to(d), 3))
    raises_alike(lambda d: torch.histogram(x.to(d), 3, weight=torch.ones(2, device=d)))
    raises_alike(lambda d: torch.histogram(x.to(d), torch.ones(2, device=d, dtype=torch.float64)))
