"""sort, topk, medians, searches and cumulative operations on the device against the CPU."""

from __future__ import annotations

import pytest
import torch

NATIVE = {
    "isin",
    "sort",
    "topk",
    "cumsum",
    "cumprod",
    "_cummax_helper",
    "_cummin_helper",
    "kthvalue",
    "median",
    "median.dim",
    "nanmedian",
    "nanmedian.dim",
    "searchsorted.Tensor",
    "bucketize.Tensor",
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dimension", [0, 1, -1])
def test_stable_sort(dtype, descending, dimension):
    torch.manual_seed(0)
    x = torch.randint(0, 5, (4, 30, 3)).to(dtype)
    if dtype.is_floating_point:
        x[1, 3:5] = float("nan")
    values, order = torch.sort(x.to("neuron"), dim=dimension, descending=descending, stable=True)
    expected, expected_order = torch.sort(x, dim=dimension, descending=descending, stable=True)
    assert torch.equal(order.cpu(), expected_order)
    torch.testing.assert_close(values.cpu(), expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(
        torch.argsort(x.to("neuron"), dim=dimension, stable=True).cpu(), torch.argsort(x, dim=dimension, stable=True)
    )


@pytest.mark.parametrize("k", [1, 7, 50])
@pytest.mark.parametrize("largest", [False, True])
def test_topk(k, largest):
    torch.manual_seed(0)
    x = torch.stack([torch.randperm(50) for _ in range(6)]).float()
    values, index = torch.topk(x.to("neuron"), k, largest=largest)
    expected, expected_index = torch.topk(x, k, largest=largest)
    assert torch.equal(values.cpu(), expected)
    assert torch.equal(index.cpu(), expected_index)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dimension", [0, 1])
def test_cumulative(name, dimension):
    torch.manual_seed(0)
    x = torch.rand(40, 3) + 0.5
    got = getattr(x.to("neuron"), name)(dimension)
    torch.testing.assert_close(got.cpu().double(), getattr(x.double(), name)(dimension), rtol=1e-6, atol=1e-6)
    whole = torch.randint(-3, 4, (5, 6), dtype=torch.int32)
    got = getattr(whole.to("neuron"), name)(dimension)
    assert got.dtype == torch.int64
    assert torch.equal(got.cpu(), getattr(whole, name)(dimension))
    as_double = getattr(whole.to("neuron"), name)(dimension, dtype=torch.float64)
    assert torch.equal(as_double.cpu(), getattr(whole, name)(dimension, dtype=torch.float64))


def test_running_extremes():
    x = torch.tensor([[1.0, 3.0, 3.0, float("nan"), 9.0], [5.0, 4.0, 5.0, 6.0, 0.0]])
    for name in ("cummax", "cummin"):
        got, expected = getattr(x.to("neuron"), name)(1), getattr(x, name)(1)
        torch.testing.assert_close(got.values.cpu(), expected.values, equal_nan=True)
        assert torch.equal(got.indices.cpu(), expected.indices)


def test_isin():
    x = torch.tensor([[1, 5, 3], [5, 9, -1]])
    known = torch.tensor([5, -1, 5])
    for dtype in (torch.int64, torch.float32, torch.bfloat16):
        a, b = x.to(dtype), known.to(dtype)
        assert torch.equal(torch.isin(a.to("neuron"), b.to("neuron")).cpu(), torch.isin(a, b))
        got = torch.isin(a.to("neuron"), b.to("neuron"), invert=True)
        assert torch.equal(got.cpu(), torch.isin(a, b, invert=True))
    nan = torch.tensor([float("nan"), 1.0])
    assert torch.isin(nan.to("neuron"), nan.to("neuron")).tolist() == [False, True]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("shape", [(4, 31, 3), (500,), (2, 1), ()])
def test_kth_value_and_medians(dtype, shape):
    torch.manual_seed(0)
    x = (torch.randn(shape) * 8).to(dtype)
    y = x.to("neuron")
    for dimension in range(-1, max(len(shape), 1)):
        length = x.size(dimension) if shape else 1
        for keep in (False, True):
            for name, arguments in (
                ("kthvalue", ((length + 2) // 3, dimension, keep)),
                ("median", (dimension, keep)),
                ("nanmedian", (dimension, keep)),
            ):
                values, index = getattr(y, name)(*arguments)
                expected, _ = getattr(x, name)(*arguments)
                assert torch.equal(values.cpu(), expected), (name, dimension)
                assert index.shape == expected.shape
                places, picked = index.cpu(), values.cpu()
                if shape and not keep:
                    places, picked = places.unsqueeze(dimension), picked.unsqueeze(dimension)
                if shape:
                    assert torch.equal(x.gather(dimension, places), picked)
    assert torch.equal(y.median().cpu(), x.median())
    assert torch.equal(y.nanmedian().cpu(), x.nanmedian())


def test_medians_of_nan():
    nan = float("nan")
    x = torch.tensor([[3.0, nan, 1.0, 2.0, nan], [nan] * 5, [5.0, 4.0, 3.0, 2.0, 1.0]])
    y = x.to("neuron")
    for name in ("median", "nanmedian"):
        values, index = getattr(y, name)(1)
        expected, expected_index = getattr(x, name)(1)
        torch.testing.assert_close(values.cpu(), expected, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(index.cpu()[::2], expected_index[::2])
        torch.testing.assert_close(getattr(y, name)().cpu(), getattr(x, name)(), rtol=0, atol=0, equal_nan=True)
    with pytest.raises(RuntimeError, match="selected number k out of range"):
        y.kthvalue(6, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("out_int32", [False, True])
def test_places_in_sorted_sequences(dtype, right, out_int32):
    torch.manual_seed(0)
    sequence = torch.randint(-9, 9, (30,)).to(dtype).sort().values
    values = torch.randint(-12, 12, (7, 5)).to(dtype)
    if dtype.is_floating_point:
        values[0, 0] = float("nan")
    got = torch.searchsorted(sequence.to("neuron"), values.to("neuron"), right=right, out_int32=out_int32)
    expected = torch.searchsorted(sequence, values, right=right, out_int32=out_int32)
    assert got.dtype == expected.dtype
    assert torch.equal(got.cpu(), expected)
    got = torch.bucketize(values.to("neuron").t(), sequence.to("neuron"), right=right, out_int32=out_int32)
    assert torch.equal(got.cpu(), torch.bucketize(values.t(), sequence, right=right, out_int32=out_int32))
    lines = torch.randint(-9, 9, (7, 12)).to(dtype).sort(-1).values
    got = torch.searchsorted(lines.to("neuron"), values.to("neuron"), side="right" if right else "left")
    assert torch.equal(got.cpu(), torch.searchsorted(lines, values, side="right" if right else "left"))
