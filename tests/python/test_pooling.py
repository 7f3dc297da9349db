"""Pooling on the device against the CPU, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

NATIVE = {
    f"{name}{suffix}"
    for name in (
        *(
            f"{prefix}{rank}d{end}"
            for rank in (2, 3)
            for prefix, end in (("max_pool", "_with_indices"), ("avg_pool", ""))
        ),
        *(f"{prefix}{rank}d" for rank in (2, 3) for prefix in ("adaptive_max_pool", "_adaptive_avg_pool")),
    )
    for suffix in ("", "_backward")
} | {"max_unpool2d", "max_unpool3d"}

CASES = {
    "max": lambda x: functional.max_pool2d(x, 2),
    "max with everything": lambda x: functional.max_pool2d(
        x, (3, 2), stride=(1, 2), padding=1, dilation=(2, 1), ceil_mode=True
    ),
    "average": lambda x: functional.avg_pool2d(x, 3, stride=2, padding=1),
    "average without padding": lambda x: functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "average with divisor": lambda x: functional.avg_pool2d(x, (2, 3), divisor_override=5),
    "adaptive": lambda x: functional.adaptive_avg_pool2d(x, (3, 4)),
    "global": lambda x: functional.adaptive_avg_pool2d(x, 1),
    "adaptive max": lambda x: functional.adaptive_max_pool2d(x, (3, 5)),
    "global max": lambda x: functional.adaptive_max_pool2d(x, 1),
}
VOLUME_CASES = {
    "max": lambda x: functional.max_pool3d(x, 2),
    "max along rows": lambda x: functional.max_pool3d(x, (2, 3, 2), stride=(2, 1, 1), padding=(0, 1, 1)),
    "max with everything": lambda x: functional.max_pool3d(
        x, (2, 3, 2), stride=(1, 2, 2), padding=1, dilation=(1, 2, 1), ceil_mode=True
    ),
    "average": lambda x: functional.avg_pool3d(x, 3, stride=2, padding=1),
    "average without padding": lambda x: functional.avg_pool3d(
        x, (3, 2, 2), (2, 1, 3), (1, 0, 1), ceil_mode=True, count_include_pad=False
    ),
    "average with divisor": lambda x: functional.avg_pool3d(x, (2, 3, 1), divisor_override=5),
    "adaptive": lambda x: functional.adaptive_avg_pool3d(x, (3, 4, 2)),
    "global": lambda x: functional.adaptive_avg_pool3d(x, 1),
    "adaptive max": lambda x: functional.adaptive_max_pool3d(x, (3, 5, 4)),
    "global max": lambda x: functional.adaptive_max_pool3d(x, 1),
}


def compare(function, shape):
    torch.manual_seed(0)
    x = torch.randint(-20, 20, shape).float()
    here, there = x.to("neuron").requires_grad_(), x.double().requires_grad_()
    got, expected = function(here), function(there)
    torch.testing.assert_close(got.cpu().double(), expected, rtol=1e-6, atol=1e-5)
    pull = torch.randn(expected.shape)
    got.backward(pull.to("neuron"))
    expected.backward(pull.double())
    torch.testing.assert_close(here.grad.cpu().double(), there.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [(2, 3, 9, 11), (3, 8, 7)])
def test_forward_and_backward(name, shape):
    compare(CASES[name], shape)


@pytest.mark.parametrize("name", VOLUME_CASES)
@pytest.mark.parametrize("shape", [(2, 3, 5, 9, 23), (3, 7, 8, 6)])
def test_volumes_forward_and_backward(name, shape):
    compare(VOLUME_CASES[name], shape)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("name", VOLUME_CASES)
def test_volumes_of_other_dtypes(name, dtype):
    """Whole numbers, whose maxima and sums are exact; means are rounded once."""
    x = torch.randint(-20, 20, (2, 4, 6, 19), generator=torch.Generator().manual_seed(0)).to(dtype)
    got = VOLUME_CASES[name](x.to("neuron")).cpu()
    assert torch.equal(got, VOLUME_CASES[name](x.double()).to(dtype))


@pytest.mark.parametrize("name", ["max_pool2d", "max_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d"])
def test_indices(name):
    """The first of equal values; the last NaN."""
    x = torch.randint(0, 3, (2, 3, 6, 7, 20), generator=torch.Generator().manual_seed(0)).float()
    x = x[:, :, 0] if name.endswith("2d") else x
    x[torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.05] = float("nan")
    results = [getattr(functional, name)(value, 2, return_indices=True) for value in (x, x.to("neuron"))]
    torch.testing.assert_close(results[1][0].cpu(), results[0][0], equal_nan=True)
    assert torch.equal(results[1][1].cpu(), results[0][1])


@pytest.mark.parametrize("rank", [2, 3])
def test_unpooling(rank):
    x = torch.randn((2, 3, 4, 6, 8)[: 2 + rank], generator=torch.Generator().manual_seed(0))
    pool, unpool = getattr(functional, f"max_pool{rank}d"), getattr(functional, f"max_unpool{rank}d")
    leaves = [x.clone().requires_grad_(), x.to("neuron").requires_grad_()]
    results = [unpool(*pool(leaf, 2, return_indices=True), 2) for leaf in leaves]
    assert torch.equal(results[1].cpu(), results[0])
    for result in results:
        (result * result).sum().backward()
    torch.testing.assert_close(leaves[1].grad.cpu(), leaves[0].grad)


def test_unpooling_names_an_index_out_of_range():
    values, indices = torch.ones(1, 1, 2, 2), torch.tensor([[[[0, 3], [9, 16]]]])
    with pytest.raises(RuntimeError, match=r"invalid max index: 16 \(output volumes are of size 4x4\)"):
        functional.max_unpool2d(values.to("neuron"), indices.to("neuron"), 2).cpu()


def test_maxima_keep_nan_and_the_first_place():
    x = torch.tensor([[[1.0, 1.0, float("nan"), 2.0], [1.0, 1.0, 3.0, 4.0]]])
    got, places = functional.max_pool2d(x.to("neuron"), 2, return_indices=True)
    expected, expected_places = functional.max_pool2d(x, 2, return_indices=True)
    torch.testing.assert_close(got.cpu(), expected, equal_nan=True)
    assert torch.equal(places.cpu(), expected_places)


def test_channels_last_keeps_its_layout():
    x = torch.randn(2, 3, 6, 6).contiguous(memory_format=torch.channels_last)
    got = functional.max_pool2d(x.to("neuron"), 2)
    assert torch.equal(got.cpu(), functional.max_pool2d(x, 2))
