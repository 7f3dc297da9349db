"""embedding_bag and its gradients on the device against the CPU in float64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from reference import assert_near, check, check_gradients

NATIVE = {
    "_embedding_bag", "_embedding_bag_forward_only", "_embedding_bag_backward", "_embedding_bag_dense_backward",
    "_embedding_bag_per_sample_weights_backward",
}  # fmt: skip


def table(rows: int = 7, width: int = 5, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(0)).to(dtype)


INDICES = torch.tensor([1, 2, 4, 5, 4, 3, 2, 6, 1, 1])
OFFSETS = torch.tensor([0, 4, 4, 7])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 4, -6])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("index", [torch.int64, torch.int32])
def test_values_and_gradients(mode, padding, last, index):
    offsets = torch.cat([OFFSETS, torch.tensor([len(INDICES)])]) if last else OFFSETS

    def function(weight, indices, offsets):
        return F.embedding_bag(indices, weight, offsets, mode=mode, padding_idx=padding, include_last_offset=last)

    for layout in (lambda w: w, lambda w: w.t().contiguous().t(), lambda w: w[:, ::2]):
        arguments = [layout(table(7, 6)), INDICES.to(index), offsets.to(index)]
        check(function, arguments, epsilons=8, scale=1.0)
        check_gradients(function, arguments, epsilons=16)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_dtypes(dtype, mode):
    def function(weight, indices, offsets):
        return F.embedding_bag(indices, weight, offsets, mode=mode)

    check(function, [table(dtype=dtype), INDICES, OFFSETS], epsilons=8, scale=1.0)
    check_gradients(function, [table(dtype=dtype), INDICES, OFFSETS], epsilons=16)


@pytest.mark.parametrize("padding", [None, 4])
def test_weights_of_samples(padding):
    def function(weight, indices, offsets, samples):
        return F.embedding_bag(indices, weight, offsets, mode="sum", per_sample_weights=samples, padding_idx=padding)

    samples = torch.linspace(-1, 2, len(INDICES))
    for weights in (samples, torch.stack([samples, samples], 1)[:, 1]):
        check(function, [table(), INDICES, OFFSETS, weights], epsilons=8, scale=1.0)
        check_gradients(function, [table(), INDICES, OFFSETS, weights])


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_scaling_by_frequency(mode):
    """A row's gradient over how often the row is looked up. (torch 2.13's CPU divides some rows by the count of another.)"""

    def gradient(weight, scaled):
        leaf = weight.detach().requires_grad_()
        indices, offsets = INDICES.to(leaf.device), OFFSETS.to(leaf.device)
        bags = F.embedding_bag(indices, leaf, offsets, mode=mode, scale_grad_by_freq=scaled)
        (bags * torch.arange(1.0, 6.0, device=leaf.device, dtype=leaf.dtype)).sum().backward()
        return leaf.grad

    expected = gradient(table().double(), False) / torch.bincount(INDICES, minlength=7).clamp(min=1)[:, None]
    assert_near(gradient(table().to("neuron"), True), expected)


def test_bags_of_equal_size_and_empty_ones():
    matrix = INDICES.reshape(2, 5)
    for mode in ("sum", "mean", "max"):
        check(lambda w, i, m=mode: F.embedding_bag(i, w, mode=m), [table(), matrix], epsilons=8, scale=1.0)
        check(lambda w, i, o, m=mode: F.embedding_bag(i, w, o, mode=m), [table(), INDICES[:0], torch.tensor([0, 0])])
        check_gradients(
            lambda w, i, o, m=mode: F.embedding_bag(i, w, o, mode=m), [table(), INDICES[:0], torch.tensor([0])]
        )
        none = torch.empty(0, dtype=torch.long)
        check(lambda w, i, o, m=mode: F.embedding_bag(i, w, o, mode=m), [table(), none, none])


def test_module_trains_as_on_the_cpu():
    def losses(device):
        torch.manual_seed(0)
        bag = torch.nn.EmbeddingBag(50, 8, mode="mean").to(device)
        optimizer = torch.optim.SGD(bag.parameters(), lr=0.5)
        found = []
        for step in range(5):
            indices = torch.randint(0, 50, (40,), generator=torch.Generator().manual_seed(step)).to(device)
            loss = bag(indices, torch.arange(0, 40, 8).to(device)).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    torch.testing.assert_close(losses("neuron"), losses("cpu"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("indices", "offsets", "mode"),
    [([0, 9], [0], "max"), ([0, 1], [1], "sum"), ([0, 1], [0, 5], "sum"), ([0.0], [0], "sum"), ([0, 1], [[0]], "sum")],
)
def test_errors_are_the_cpus(indices, offsets, mode):
    def run(device):
        return F.embedding_bag(
            torch.tensor(indices, device=device), table().to(device), torch.tensor(offsets, device=device), mode=mode
        ).cpu()

    with pytest.raises(Exception) as expected:  # noqa: PT011
        run("cpu")
    with pytest.raises(type(expected.value)) as actual:
        run("neuron")
    assert str(actual.value).splitlines()[0][:60] in str(expected.value)
