"""unfold, fold and grid_sample: values and gradients against the CPU's in float64."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from reference import assert_near, check, check_gradients

NATIVE = {
    "im2col",
    "col2im",
    *(f"grid_sampler_{rank}d{suffix}" for rank in (2, 3) for suffix in ("", "_backward")),
}


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


WINDOWS = [
    {"kernel_size": 2},
    {"kernel_size": (3, 2), "stride": (1, 2), "padding": 1},
    {"kernel_size": (2, 3), "dilation": (2, 1), "padding": (2, 0), "stride": 2},
    {"kernel_size": (1, 9), "padding": (0, 4)},
]


@pytest.mark.parametrize("options", WINDOWS, ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 7, 9), (3, 6, 8)], ids=str)
def test_unfold_and_fold(shape, options):
    x = numbers(*shape)
    columns = F.unfold(x, **options)
    assert torch.equal(F.unfold(x.to("neuron"), **options).cpu(), columns)
    check_gradients(lambda x: F.unfold(x, **options), [x], epsilons=16)
    check(lambda c: F.fold(c, shape[-2:], **options), [columns], epsilons=8, scale=1.0)
    check_gradients(lambda c: F.fold(c, shape[-2:], **options), [columns], epsilons=16)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.complex64], ids=str)
def test_fold_of_other_dtypes(dtype):
    """Whole numbers, whose sums are exact."""
    x = torch.arange(2 * 3 * 7 * 9).remainder(7).reshape(2, 3, 7, 9).to(dtype)
    columns = F.unfold(x, 3, padding=1)
    assert torch.equal(F.unfold(x.to("neuron"), 3, padding=1).cpu(), columns)
    assert torch.equal(F.fold(columns.to("neuron"), (7, 9), 3, padding=1).cpu(), F.fold(columns, (7, 9), 3, padding=1))
    mask = x.real > 3
    assert torch.equal(F.unfold(mask.to("neuron"), 2).cpu(), F.unfold(mask, 2))


SAMPLINGS = [
    (rank, mode, padding, corners)
    for rank in (2, 3)
    for mode, padding, corners in itertools.product(
        ("bilinear", "nearest", *(("bicubic",) if rank == 2 else ())), ("zeros", "border", "reflection"), (False, True)
    )
]
SIZES = {2: ((2, 5, 6, 7), (4, 5)), 3: ((2, 3, 4, 5, 6), (3, 4, 2))}


@pytest.mark.parametrize(("rank", "mode", "padding", "corners"), SAMPLINGS, ids=str)
def test_grid_sample(rank, mode, padding, corners):
    """Positions up to twice the input's size beyond its edges; halves are left out, where nearest neighbours change."""
    shape, positions = SIZES[rank]
    x, grid = numbers(*shape), 2 * numbers(shape[0], *positions, rank, seed=1)

    def function(x, grid):
        return F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=corners)

    check(function, [x, grid], epsilons=64, scale=1.0)
    check_gradients(function, [x, grid], epsilons=256)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_many_positions(mode):
    """More than one block of positions, several planes a thread, positions that share elements."""
    x, grid = numbers(3, 4, 9, 8), numbers(3, 40, 33, 2, seed=1).clamp(-1.2, 1.2)
    check(lambda x, g: F.grid_sample(x, g, mode=mode, align_corners=False), [x, grid], epsilons=64, scale=1.0)
    check_gradients(lambda x, g: F.grid_sample(x, g, mode=mode, align_corners=False), [x, grid], epsilons=512)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_positions_without_a_place(padding):
    """Infinite, huge and undefined positions are outside: nothing is read, and the CPU's values come out."""
    x = torch.arange(1.0, 5.0).reshape(1, 1, 2, 2)
    numbers = torch.tensor([float("inf"), -float("inf"), float("nan"), 1e30, -1e30, 0.5])
    grid = torch.stack([numbers, torch.zeros(6)], dim=-1).reshape(1, 1, 6, 2)
    expected = F.grid_sample(x, grid, padding_mode=padding, align_corners=True)
    actual = F.grid_sample(x.to("neuron"), grid.to("neuron"), padding_mode=padding, align_corners=True).cpu()
    assert torch.isfinite(actual).all()
    torch.testing.assert_close(actual[..., -1], expected[..., -1])
    if padding == "zeros":
        assert torch.equal(actual[..., :-1], torch.zeros(1, 1, 1, 5))


def test_layouts_and_empty_ones():
    x, grid = numbers(2, 3, 6, 7), numbers(2, 4, 5, 2, seed=1)
    expected = F.grid_sample(x.double(), grid.double(), align_corners=False)
    actual = F.grid_sample(
        x.to("neuron").transpose(2, 3).contiguous().transpose(2, 3), grid.to("neuron"), align_corners=False
    )
    assert_near(actual, expected, 64, 1.0)
    nothing = torch.zeros(2, 0, 5, 2).to("neuron").requires_grad_()
    leaf = x.to("neuron").requires_grad_()
    F.grid_sample(leaf, nothing, align_corners=False).sum().backward()
    assert torch.equal(leaf.grad.cpu(), torch.zeros_like(x)) and nothing.grad.shape == nothing.shape


@pytest.mark.parametrize(
    "call",
    [
        lambda device: F.unfold(torch.zeros(1, 2, 3, 3, device=device), 4),
        lambda device: F.fold(torch.zeros(1, 7, 4, device=device), (3, 3), 2),
        lambda device: F.grid_sample(torch.zeros(1, 2, 3, 3, device=device), torch.zeros(2, 1, 1, 2, device=device)),
    ],
)
def test_errors_are_the_cpu_s(call):
    messages = []
    for device in ("cpu", "neuron"):
        with pytest.raises(RuntimeError) as caught:
            call(device)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
