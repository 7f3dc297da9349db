"""Reflection and replication padding: every rank, values equal to the CPU's, gradients against the CPU's in float64."""

import pytest
import torch
import torch.nn.functional as F

from reference import check_gradients

NATIVE = {
    f"{mode}_pad{rank}d{suffix}"
    for mode in ("reflection", "replication")
    for rank in (1, 2, 3)
    for suffix in ("", "_backward")
}
CASES = [
    ((2, 3, 7), (3, 2)),
    ((3, 7), (0, 6)),
    ((2, 3, 7), (-2, 3)),
    ((2, 3, 5, 6), (2, 3, 1, 4)),
    ((3, 5, 6), (5, 5, 4, 4)),
    ((2, 3, 5, 6), (-1, 3, 2, -2)),
    ((2, 3, 5, 6), (-4, -1, 0, 0)),
    ((1, 2, 4, 5, 6), (1, 2, 3, 0, 2, 1)),
    ((2, 4, 5, 6), (-1, 2, 0, -3, 1, 1)),
    ((0, 3, 7), (1, 1)),
]
MODES = ("reflect", "replicate")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("shape", "widths"), CASES, ids=str)
def test_values_and_gradients(shape, widths, mode):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    assert torch.equal(F.pad(x.to("neuron"), widths, mode=mode).cpu(), F.pad(x, widths, mode=mode))
    if x.numel() > 0:
        check_gradients(lambda x: F.pad(x, widths, mode=mode), [x], epsilons=16)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "dtype",
    [torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.int8, torch.uint8, torch.int32, torch.int64],
    ids=str,
)
def test_dtypes(mode, dtype):
    x = torch.arange(-60, 60).reshape(2, 3, 4, 5).to(dtype)
    widths = (3, 4, 1, 2)
    assert torch.equal(F.pad(x.to("neuron"), widths, mode=mode).cpu(), F.pad(x, widths, mode=mode))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64], ids=str)
def test_gradients_of_other_dtypes(dtype):
    """Whole numbers: their sums are exact."""
    x = torch.zeros(2, 4, 4, dtype=dtype)
    pull = torch.arange(2 * 8 * 8).reshape(2, 8, 8).remainder(7).to(dtype)
    gradients = []
    for device in ("cpu", "neuron"):
        leaf = x.to(device, copy=True).requires_grad_()
        F.pad(leaf, (2, 2, 3, 1), mode="reflect").backward(pull.to(device))
        gradients.append(leaf.grad.cpu())
    assert torch.equal(*gradients)


def test_layouts():
    """Strided input, channels-last, and results into memory of another layout."""
    x = torch.randn(2, 3, 5, 6)
    for value in (x.to(memory_format=torch.channels_last), x.transpose(2, 3), x[:, ::2], x[..., 1:]):
        expected = F.pad(value, (1, 2, 2, 1), mode="reflect")
        assert torch.equal(F.pad(value.to("neuron"), (1, 2, 2, 1), mode="reflect").cpu(), expected)
    out = torch.zeros(2, 3, 9, 8).to("neuron").transpose(2, 3)
    torch._C._nn.reflection_pad2d(x.to("neuron"), (1, 2, 2, 1), out=out)
    assert torch.equal(out.cpu(), F.pad(x, (1, 2, 2, 1), mode="reflect"))


@pytest.mark.parametrize(
    ("mode", "shape", "widths"), [("reflect", (2, 3, 4), (4, 0)), ("replicate", (2, 3, 4), (-4, 0))], ids=str
)
def test_errors_are_the_cpu_s(mode, shape, widths):
    messages = []
    for device in ("cpu", "neuron"):
        with pytest.raises(RuntimeError) as caught:
            F.pad(torch.zeros(shape, device=device), widths, mode=mode)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
