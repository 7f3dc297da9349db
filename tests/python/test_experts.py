"""What mixtures of experts are made of: histc of expert numbers, products of groups of rows."""

import pytest
import torch

from reference import assert_near

NATIVE = {"histc", "_grouped_mm"}


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("bins", "low", "high"), [(7, -1, 1), (100, 0, 0), (3, 0.5, 0.5), (1, -10, 10), (5, 0, 4)])
def test_histc(bins, low, high, dtype):
    x = numbers(40, 25).to(dtype)
    assert torch.equal(torch.histc(x.to("neuron"), bins, low, high).cpu(), torch.histc(x, bins, low, high))
    assert torch.equal(
        torch.histc(x.to("neuron").t()[::2], bins, low, high).cpu(), torch.histc(x.t()[::2], bins, low, high)
    )


def test_histc_edges_and_nan():
    x = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0, 4.0, -0.1, 4.1, float("nan")])
    assert torch.histc(x.to("neuron"), 4, 0, 4).cpu().tolist() == [1, 1, 1, 3]
    assert torch.histc(torch.full((3,), 2.0, device="neuron"), 2).cpu().tolist() == [0, 3]
    assert torch.histc(torch.empty(0, device="neuron"), 3).cpu().tolist() == [0, 0, 0]
    out = torch.empty(4, device="neuron")
    torch.histc(x.to("neuron"), 4, 0, 4, out=out)
    assert out.cpu().tolist() == [1, 1, 1, 3]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8], ids=str)
def test_histc_of_integers(dtype):
    """As on CUDA: the counts have the dtype of the elements."""
    experts = torch.randint(8, (300,), generator=torch.Generator().manual_seed(0)).to(dtype)
    counts = torch.histc(experts.to("neuron"), bins=8, min=0, max=7)
    assert counts.dtype == dtype
    expected = torch.bincount(experts.long(), minlength=8)
    assert counts.cpu().long().tolist() == (expected % 256 if dtype == torch.uint8 else expected).tolist()


def test_histc_errors():
    x = torch.ones(3, device="neuron")
    with pytest.raises(ValueError, match="bins must be > 0, but got 0"):
        torch.histc(x, 0)
    with pytest.raises(ValueError, match="max must be larger than min"):
        torch.histc(x, 3, 2, 1)
    with pytest.raises(RuntimeError, match="is not finite"):
        torch.histc(torch.tensor([1.0, float("inf")], device="neuron"), 3).cpu()


ENDS = torch.tensor([3, 3, 10, 16], dtype=torch.int32)


def grouped(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The definition, on the CPU in the dtype given."""
    starts = [0, *ENDS[:-1].tolist()]
    pairs = list(zip(starts, ENDS.tolist(), strict=True))
    if a.dim() == 2 and b.dim() == 3:
        return torch.cat([a[i:j] @ b[g] for g, (i, j) in enumerate(pairs)])
    if a.dim() == 3:
        return torch.cat([a[g] @ b[:, i:j] for g, (i, j) in enumerate(pairs)], dim=1)
    return torch.stack([a[:, i:j] @ b[i:j] for i, j in pairs])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (numbers(16, 24), numbers(4, 24, 32, seed=1)),
        (numbers(16, 24), numbers(4, 32, 24, seed=1).transpose(1, 2)),
        (numbers(4, 24, 32), numbers(32, 16, seed=1)),
        (numbers(24, 16), numbers(16, 32, seed=1)),
        (numbers(16, 24).t(), numbers(16, 32, seed=1)),
    ],
    ids=["rows", "rows, transposed", "columns", "inner", "inner, transposed"],
)
def test_grouped_mm(a, b, dtype):
    a, b = a.to(dtype), b.to(dtype)
    actual = torch._grouped_mm(a.to("neuron"), b.to("neuron"), offs=ENDS.to("neuron"))
    assert actual.dtype == dtype
    assert_near(actual, grouped(a.double(), b.double()), 16, 8.0)


def test_grouped_mm_is_differentiable():
    a, b = numbers(16, 24), numbers(4, 24, 32, seed=1)
    ours = [t.to("neuron").requires_grad_() for t in (a, b)]
    exact = [t.double().requires_grad_() for t in (a, b)]
    torch._grouped_mm(*ours, offs=ENDS.to("neuron")).square().sum().backward()
    grouped(*exact).square().sum().backward()
    for x, y in zip(ours, exact, strict=True):
        assert_near(x.grad, y.grad, 64, 100.0)


def test_grouped_mm_of_stacks():
    a, b = numbers(4, 3, 24), numbers(4, 24, 32, seed=1)
    assert_near(torch._grouped_mm(a.to("neuron"), b.to("neuron")), torch.bmm(a.double(), b.double()), 16, 8.0)


def test_grouped_mm_ends_out_of_range():
    a, b = numbers(16, 24).to("neuron"), numbers(2, 24, 32).to("neuron")
    for ends in ([3, 17], [5, 3]):
        with pytest.raises(RuntimeError, match="grouped_mm: group 1 ends at"):
            torch._grouped_mm(a, b, offs=torch.tensor(ends, dtype=torch.int32, device="neuron")).cpu()
