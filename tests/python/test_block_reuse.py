"""Small blocks that are freed, merged and divided again within one window: the same addresses belong to one block after
the other. Fused and unfused execution must agree on every bit, however the commands are cut into regions."""

from __future__ import annotations

import pytest
import torch

from torch_neuronx import _C


def program(rounds: int, width: int) -> list[torch.Tensor]:
    """What an optimizer with its step count on the device does: numbers and rows in turn, all short-lived."""
    p, m, v = (torch.linspace(1, 2, width, device="neuron") for _ in range(3))
    count = torch.ones((), device="neuron")
    torch.neuron.synchronize()
    for _ in range(rounds):
        gradient = torch.full_like(p, 2.0)
        count.add_(1)
        m.lerp_(gradient, 0.1)
        v.addcmul_(gradient, gradient, value=0.001)
        first = torch.pow(0.9, count)
        second = torch.pow(0.999, count)
        first.sub_(1)
        second.sub_(1)
        second.neg_()
        first.div_(1e-2)
        second.sqrt_()
        scale = v.sqrt()
        scale.div_(second)
        scale.div_(first)
        p.addcdiv_(m, scale)
        del gradient, first, second, scale
    return [t.cpu() for t in (p, m, v, count)]


@pytest.mark.parametrize("width", [1, 4, 50, 300])
@pytest.mark.parametrize("rounds", [1, 2, 3, 7])
def test_fused_and_unfused_agree(rounds: int, width: int) -> None:
    try:
        _C.set_fusion(False)
        expected = program(rounds, width)
        _C.set_fusion(True)
        _C.set_synchronous_compile(True)
        actual = program(rounds, width)
    finally:
        _C.set_fusion(True)
        _C.set_synchronous_compile(False)
    for a, b in zip(actual, expected, strict=True):
        assert torch.equal(a, b)


def test_numbers_that_outlive_rows_of_the_same_size_class() -> None:
    """The shortest sequence that was once cut wrongly: the second `b` was overwritten before it was read."""

    def run() -> torch.Tensor:
        p, st, m, v = (torch.ones(4, device="neuron") for _ in range(4))
        st = st.sum() - 3
        torch.neuron.synchronize()
        g = torch.full_like(p, 2.0)
        for last in (False, True):
            a, b = torch.pow(0.9, st), torch.pow(0.999, st)
            e = v.sqrt()
            e.div_(b)
            if last:
                p.addcdiv_(m, e)
                del g
            del a, b, e
        g = torch.full_like(p, 2.0)
        a = torch.pow(0.9, st)
        b = torch.pow(0.999, st)
        e = v.sqrt()
        e.div_(a)
        return p.cpu() + 0 * b.cpu()

    try:
        _C.set_fusion(False)
        expected = run()
    finally:
        _C.set_fusion(True)
    for _ in range(5):
        assert torch.equal(run(), expected)
        _C.wait_for_compiles()
