"""The order in memory of results whose operands have their channels last: CPU's, as programs that view them rely on."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from reference import to_device

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def draw(*sizes, last=False):
    tensor = torch.randint(-8, 9, sizes).float() / 4
    return tensor.contiguous(memory_format=FORMATS[len(sizes)]) if last else tensor


def order(tensor):
    """The strides of what has more than one element along it: the others tell nothing."""
    return [stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


def check(function, *operands, gradients_too=True):
    here = [tensor.requires_grad_() for tensor in to_device(operands)]
    there = [tensor.detach().requires_grad_() for tensor in operands]
    exact = [tensor.detach().double().requires_grad_() for tensor in operands]
    got, expected, value = function(*here), function(*there), function(*exact)
    pull = torch.empty_like(expected).copy_(torch.randint(-4, 5, expected.shape))
    gradients = [
        torch.autograd.grad(got, here, to_device(pull)),
        torch.autograd.grad(expected, there, pull),
        torch.autograd.grad(value, exact, pull.double()),
    ]
    for i, (a, b, c) in enumerate([(got, expected, value), *zip(*gradients, strict=True)]):
        assert order(a) == order(b) or (i > 0 and not gradients_too)
        torch.testing.assert_close(a.detach().cpu().double(), c.detach(), rtol=1e-4, atol=1e-4)


PLACES = {"input": (True, False), "weight": (False, True), "both": (True, True), "neither": (False, False)}


@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("place", PLACES)
def test_convolution_follows_its_input_and_its_weight(place, rank):
    torch.manual_seed(0)
    input_last, weight_last = PLACES[place]
    spatial, kernel = (6, 5, 4)[: rank - 2], (3,) * (rank - 2)
    plain = functional.conv2d if rank == 4 else functional.conv3d
    transposed = functional.conv_transpose2d if rank == 4 else functional.conv_transpose3d
    x = draw(2, 4, *spatial, last=input_last)
    check(lambda x, w, b: plain(x, w, b, padding=1), x, draw(6, 4, *kernel, last=weight_last), draw(6))
    check(lambda x, w: transposed(x, w, stride=2), x, draw(4, 6, *kernel, last=weight_last))
    check(lambda x, w: plain(x, w, padding=1, groups=2), x, draw(6, 2, *kernel, last=weight_last))


def test_convolution_of_one_image_follows_its_weight():
    torch.manual_seed(0)
    check(functional.conv2d, draw(4, 6, 5), draw(6, 4, 3, 3, last=True))


# torch itself hands gradients of group normalisation to a device in row-major order.
NORMALIZATIONS = {
    "batch norm, training": lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
    "batch norm, evaluation": lambda x, w, b: functional.batch_norm(x, w.detach(), b.detach() + 3, w, b),
    "group norm": lambda x, w, b: functional.group_norm(x, 2, w, b),
}


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_normalization_follows_its_input(name, rank, last):
    torch.manual_seed(0)
    x = draw(2, 4, *(6, 5, 3)[: rank - 2], last=last)
    check(NORMALIZATIONS[name], x, draw(4), draw(4), gradients_too=name != "group norm")


@pytest.mark.parametrize("last", [False, True])
def test_normalization_without_weights_follows_its_input(last):
    torch.manual_seed(0)
    x = draw(2, 4, 6, 5, last=last)
    check(lambda x: functional.batch_norm(x, None, None, training=True), x)
    check(lambda x: functional.group_norm(x, 2), x, gradients_too=False)


@pytest.mark.parametrize("last", [False, True])
def test_roll_follows_its_input(last):
    torch.manual_seed(0)
    x = draw(2, 4, 6, 5, last=last)
    check(lambda x: x.roll(1, 2), x)
    check(lambda x: x.roll((1, 2), (1, -1)), x)
    check(lambda x: x.roll(0, 1), x)
    check(lambda x: x.roll(3), x)


def test_a_network_with_its_channels_last_can_be_viewed_by_rows():
    torch.manual_seed(0)
    steps = [torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    network = torch.nn.Sequential(*steps, torch.nn.GroupNorm(2, 8)).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    expected = network(x).permute(0, 2, 3, 1).view(-1, 8)
    got = network.to("neuron")(x.to("neuron")).permute(0, 2, 3, 1).view(-1, 8)
    torch.testing.assert_close(got.cpu(), expected, rtol=1e-4, atol=1e-4)
