"""Pooling on the device against the CPU, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

NATIVE = {
    "max_pool2d_with_indices",
    "max_pool2d_with_indices_backward",
    "avg_pool2d",
    "avg_pool2d_backward",
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool2d_backward",
}


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
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [(2, 3, 9, 11), (3, 8, 7)])
def test_forward_and_backward(name, shape):
    torch.manual_seed(0)
    x = torch.randint(-20, 20, shape).float()
    here, there = x.to("neuron").requires_grad_(), x.double().requires_grad_()
    got, expected = CASES[name](here), CASES[name](there)
    torch.testing.assert_close(got.cpu().double(), expected, rtol=1e-6, atol=1e-5)
    pull = torch.randn(expected.shape)
    got.backward(pull.to("neuron"))
    expected.backward(pull.double())
    torch.testing.assert_close(here.grad.cpu().double(), there.grad, rtol=1e-5, atol=1e-5)


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
