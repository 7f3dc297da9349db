"""sort, topk and cumulative operations on the device against the CPU."""

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
