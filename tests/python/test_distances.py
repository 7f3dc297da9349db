"""cdist and pdist with their gradients, cross products and running log-sums on the device against the CPU in float64."""

from __future__ import annotations

import pytest
import torch

from reference import assert_near, check, check_gradients

NATIVE = {
    "_cdist_forward", "_cdist_backward", "_pdist_forward", "_pdist_backward", "linalg_cross", "_logcumsumexp", "addbmm",
    "addbmm_",
}  # fmt: skip
ORDERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("p", ORDERS)
def test_distances_of_two_sets(p):
    samples = [
        (numbers(5, 19), numbers(7, 19, seed=1)),
        (numbers(2, 1, 4, 3), numbers(3, 6, 3, seed=1)),
        (numbers(19, 4).t(), numbers(3, 38, seed=1)[:, ::2]),
        (numbers(1, 1), numbers(1, 1, seed=1)),
    ]
    for x, y in samples:
        check(lambda x, y: torch.cdist(x, y, p), [x, y], epsilons=16)
        check(lambda x, y: torch.cdist(x, y, p), [x.double(), y.double()], epsilons=16)
        check_gradients(lambda x, y: torch.cdist(x, y, p), [x, y], epsilons=256 if p < 1 else 32)
    for shapes in (((0, 3), (4, 3)), ((4, 3), (0, 3)), ((4, 0), (3, 0)), ((0, 4, 3), (3, 3))):
        check(lambda x, y: torch.cdist(x, y, p), [numbers(*shape) for shape in shapes])
        check_gradients(lambda x, y: torch.cdist(x, y, p), [numbers(*shape) for shape in shapes])


def test_many_rows_and_equal_ones():
    x, y = numbers(40, 30), numbers(31, 30, seed=1)
    for mode in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        check(lambda x, y, m=mode: torch.cdist(x, y, compute_mode=m), [x, y], epsilons=64, scale=8.0)
        check_gradients(lambda x, y, m=mode: torch.cdist(x, y, compute_mode=m), [x, y], epsilons=256, scale=8.0)
    for p in ORDERS:
        assert float(torch.cdist(x[:5].to("neuron"), x[:5].to("neuron"), p).diagonal().abs().max()) == 0
        check_gradients(lambda x, p=p: torch.cdist(x, x.detach(), p), [x[:5]], epsilons=32)


@pytest.mark.parametrize("p", ORDERS)
def test_distances_of_pairs(p):
    for x in (numbers(9, 21), numbers(21, 9).t(), numbers(2, 3), numbers(1, 3), numbers(4, 0)):
        check(lambda x: torch.pdist(x, p), [x], epsilons=16)
        # A small difference has few digits, and a power below 1 a steep slope there.
        check_gradients(lambda x: torch.pdist(x, p), [x], epsilons=256 if p < 1 else 32)


def test_errors_are_the_cpus():
    for shapes, p in ((((2, 3), (2, 4)), 2.0), (((3,), (2, 3)), 2.0), (((2, 3), (2, 3)), -1.0)):

        def run(device, shapes=shapes, p=p):
            return torch.cdist(*(torch.ones(shape, device=device) for shape in shapes), p)

        with pytest.raises(RuntimeError) as expected:
            run("cpu")
        with pytest.raises(RuntimeError) as actual:
            run("neuron")
        assert str(expected.value).splitlines()[0] == str(actual.value).splitlines()[0]
    with pytest.raises(RuntimeError, match="not implemented for 'Half'"):
        torch.cdist(torch.ones(2, 2).half().to("neuron"), torch.ones(2, 2).half().to("neuron"))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.uint8, torch.complex64]
)
def test_cross_products(dtype):
    samples = [
        ((4, 3), (4, 3), -1), ((3, 5), (3, 5), 0), ((1, 3, 2), (4, 3, 2), 1), ((3,), (3,), 0), ((0, 3), (0, 3), 1),
    ]  # fmt: skip
    for left, right, dim in samples:
        x, y = (numbers(*left) * 9).to(dtype), (numbers(*right, seed=1) * 9).to(dtype)
        if dtype.is_floating_point:
            check(lambda x, y, d=dim: torch.linalg.cross(x, y, dim=d), [x, y], scale=256.0)
        else:
            expected = torch.linalg.cross(x, y, dim=dim)
            actual = torch.linalg.cross(x.to("neuron"), y.to("neuron"), dim=dim)
            torch.testing.assert_close(actual.cpu(), expected)
    given = torch.empty(3, 4, dtype=dtype, device="neuron").t()
    x = (numbers(4, 3) * 9).to(dtype)
    torch.linalg.cross(x.to("neuron"), x.flip(0).to("neuron"), out=given)
    torch.testing.assert_close(given.cpu(), torch.linalg.cross(x, x.flip(0)), rtol=0.02, atol=0.5)


def test_gradients_of_cross_products():
    check_gradients(torch.linalg.cross, [numbers(4, 3), numbers(1, 3, seed=1)])
    y = numbers(2, 3).to("neuron")
    with pytest.raises(RuntimeError, match="must have length 3"):
        torch.linalg.cross(y.t(), y.t())
    expected = torch.linalg.cross(y, y.flip(0)).cpu()
    torch.linalg.cross(y, y.flip(0), out=y)  # a result in place of an operand
    assert torch.equal(y.cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_running_log_sums(dtype):
    x = (numbers(4, 30, 3) * 8).to(dtype)
    for value in (x, x.transpose(0, 1), x[:, ::2], x[0, 0, 0], x[:0]):
        for dim in range(-1, max(value.dim(), 1)):
            check(lambda x, d=dim: torch.logcumsumexp(x, d), [value], epsilons=2, scale=1.0)
    infinite = torch.tensor([float("-inf"), float("-inf"), 1.0, float("inf"), float("inf"), float("nan"), 2.0])
    check(lambda x: torch.logcumsumexp(x, 0), [infinite.to(dtype)])
    given = torch.empty(0, dtype=dtype, device="neuron")
    assert_near(torch.logcumsumexp(x.to("neuron"), 1, out=given), torch.logcumsumexp(x.double(), 1), 2, 1.0)
    if dtype in (torch.float32, torch.float64):  # torch's formula subtracts large numbers
        check_gradients(lambda x: torch.logcumsumexp(x, 1), [x], epsilons=512)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_sum_of_products(dtype):
    add, left, right = (
        (numbers(*shape, seed=i) * 3).to(dtype) for i, shape in enumerate([(3, 5), (4, 3, 2), (4, 2, 5)])
    )
    for options in ({}, {"beta": 2, "alpha": 3}, {"beta": 0}):
        check(lambda c, a, b, o=options: torch.addbmm(c, a, b, **o), [add, left, right], epsilons=16, scale=256.0)
        y = add.to("neuron").t().contiguous().t()
        y.addbmm_(left.to("neuron"), right.to("neuron"), **options)
        expected = torch.addbmm(add, left, right, **options)
        torch.testing.assert_close(y.cpu(), expected, rtol=0.02, atol=0.5 if dtype == torch.bfloat16 else 1e-4)
    check(torch.addbmm, [add[0], left.mT.contiguous().mT, right], epsilons=16, scale=256.0)
    check(torch.addbmm, [add, left[:0], right[:0]])
    check(torch.addbmm, [add, left[..., :0], right[:, :0]])
    if dtype == torch.float32:
        check_gradients(torch.addbmm, [add, left, right], epsilons=32, scale=16.0)
    with pytest.raises(RuntimeError):
        torch.addbmm(add.to("neuron"), left.to("neuron"), right[:, :1].to("neuron"))
