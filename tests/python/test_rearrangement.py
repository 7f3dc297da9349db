"""flip and roll."""

import pytest
import torch

NATIVE = {"flip", "roll"}
DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).mul(4).to(dtype)


def same(function, x: torch.Tensor) -> None:
    expected, actual = function(x), function(x.to("neuron"))
    assert actual.device.type == "neuron"
    assert actual.dtype == expected.dtype
    assert torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dims", [[], [0], [1], [-1], [0, 2], [2, 0, 1]], ids=str)
def test_flip(dims, dtype):
    same(lambda x: x.flip(dims), numbers(3, 4, 5, dtype=dtype))
    same(lambda x: x.transpose(0, 2).flip(dims), numbers(3, 4, 5, dtype=dtype))
    same(lambda x: x[:, ::2].flip(dims), numbers(3, 4, 5, dtype=dtype))
    same(lambda x: x.flip(dims), numbers(3, 0, 5, dtype=dtype))


def test_flip_of_long_rows_and_planes():
    same(lambda x: x.flip(0), numbers(40, 300))
    same(lambda x: x.flip(1), numbers(40, 300))
    same(lambda x: x.t().flip(0), numbers(40, 300))
    same(lambda x: x.flip([]), numbers(1)[0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("shifts", "dims"),
    [(1, 0), (-2, 1), (7, -1), (0, 1), ((1, 2), (0, 1)), ((1, 1), (1, 1)), (5, ()), (-61, ())],
    ids=str,
)
def test_roll(shifts, dims, dtype):
    def function(x):
        return torch.roll(x, shifts, dims) if dims != () else torch.roll(x, shifts)

    same(function, numbers(3, 4, 5, dtype=dtype))
    same(lambda x: function(x.transpose(0, 2)), numbers(3, 4, 5, dtype=dtype))
    same(function, numbers(3, 0, 5, dtype=dtype))


def test_the_result_is_another_tensor():
    x = torch.ones(3, device="neuron")
    for y in (x.roll(0, 0), x.roll(3), x.flip([])):
        y.zero_()
    assert x.cpu().tolist() == [1, 1, 1]


def test_gradients():
    x = torch.arange(6.0, device="neuron").requires_grad_()
    weight = torch.tensor([1.0, 2, 3, 4, 5, 6], device="neuron")
    (x.flip(0).roll(2, 0) * weight).sum().backward()
    reference = torch.arange(6.0).requires_grad_()
    (reference.flip(0).roll(2, 0) * weight.cpu()).sum().backward()
    assert torch.equal(x.grad.cpu(), reference.grad)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.flip([3]),
        lambda x: x.flip([0, 0]),
        lambda x: torch.roll(x, (1, 2), (0,)),
        lambda x: torch.roll(x, 1, 5),
    ],
)
def test_errors_are_the_cpus(function):
    x = torch.ones(2, 3)
    with pytest.raises(Exception) as expected:  # noqa: PT011  the class and the text are compared below
        function(x)
    with pytest.raises(type(expected.value)) as actual:
        function(x.to("neuron"))
    assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]
