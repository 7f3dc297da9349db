"""Indexing, gathering, scattering, embedding and losses on the device against the CPU."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

NATIVE = {
    "embedding",
    "embedding_dense_backward",
    "index_select",
    "index_add",
    "index_copy",
    "index_fill_",
    "gather",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "index",
    "_index_put_impl_",
    "nll_loss_forward",
    "nll_loss_backward",
    "nll_loss2d_forward",
    "nll_loss2d_backward",
    "nonzero",
    "masked_select",
    "masked_scatter_",
    "cat",
}


def same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert actual.device.type == "neuron"
    assert actual.dtype == expected.dtype
    assert torch.equal(actual.cpu(), expected)


X = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
INDICES = {
    "one": lambda d: (torch.tensor([1, 0, -1], device=d),),
    "middle": lambda d: (slice(None), torch.tensor([[2, 0], [1, 1]], device=d)),
    "apart": lambda d: (torch.tensor([0, 1], device=d), slice(None), torch.tensor([3, -4], device=d)),
    "broadcast": lambda d: (slice(None), torch.tensor([[0], [2]], device=d), torch.tensor([1, 3, 0], device=d)),
    "int32": lambda d: (torch.tensor([1], device=d, dtype=torch.int32),),
    "scalar": lambda d: (torch.tensor(1, device=d),),
    "mask": lambda d: ((torch.arange(6, device=d) % 2 == 0).reshape(2, 3),),
    "late mask": lambda d: (slice(None), slice(None), torch.arange(4, device=d) > 1),
    "list": lambda d: ([1, 0], slice(1, None)),
    "with none": lambda d: (None, torch.tensor([1], device=d), ..., torch.tensor([2, 3], device=d)),
    "empty": lambda d: (torch.empty(0, dtype=torch.long, device=d),),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.complex64])
def test_reading_and_writing(name, dtype):
    base = X.to(dtype)
    for view in (lambda t: t, lambda t: t.transpose(0, 1).contiguous().transpose(0, 1)):
        x, y = view(base.clone()), view(base.to("neuron"))
        same(y[INDICES[name]("neuron")], x[INDICES[name]("cpu")])
        values = torch.arange(x[INDICES[name]("cpu")].numel()).reshape(x[INDICES[name]("cpu")].shape).to(dtype)
        x[INDICES[name]("cpu")] = values
        y[INDICES[name]("neuron")] = values.to("neuron")
        same(y, x)
        x[INDICES[name]("cpu")] = 7
        y[INDICES[name]("neuron")] = 7
        same(y, x)


def test_put_accumulates_equal_places():
    index = torch.tensor([1, 1, 0, 1])
    values = torch.tensor([1.0, 2.0, 4.0, 8.0])
    expected = torch.zeros(3).index_put_((index,), values, accumulate=True)
    got = torch.zeros(3, device="neuron").index_put_((index.to("neuron"),), values.to("neuron"), accumulate=True)
    same(got, expected)


@pytest.mark.parametrize(
    "action",
    [
        lambda x, i: x[i],
        lambda x, i: torch.gather(x, 0, i.view(1, 1).expand(1, 3)),
        lambda x, i: torch.index_select(x, 0, i),
        lambda x, i: functional.embedding(i, x),
        lambda x, i: functional.nll_loss(x, i.expand(x.shape[0])),
        lambda x, i: x.index_put((i,), torch.ones(3, device=x.device)),
        lambda x, i: torch.zeros_like(x).scatter(0, i.view(1, 1), 1.0),
    ],
)
def test_late_errors_have_the_cpus_class_and_text(action):
    x, index = torch.rand(2, 3), torch.tensor([5])
    with pytest.raises((IndexError, RuntimeError)) as on_cpu:
        action(x, index)
    with pytest.raises((IndexError, RuntimeError)) as on_neuron:
        action(x.to("neuron"), index.to("neuron"))
        torch.neuron.synchronize()
    assert type(on_neuron.value) is type(on_cpu.value)
    assert str(on_cpu.value) in str(on_neuron.value)


def test_an_unused_embedding_out_of_range_still_raises():
    weight = torch.rand(4, 2, device="neuron")
    functional.embedding(torch.tensor([9], device="neuron"), weight)
    with pytest.raises(IndexError, match="index out of range in self"):
        torch.neuron.synchronize()
    torch.neuron.synchronize()


def test_gather_and_scatter():
    torch.manual_seed(0)
    x, source = torch.randn(4, 5, 3), torch.randn(4, 5, 3)
    for dimension in range(3):
        index = torch.randint(x.shape[dimension], (3, 2, 3))
        d = "neuron"
        same(torch.gather(x.to(d), dimension, index.to(d)), torch.gather(x, dimension, index))
        same(x.to(d).scatter(dimension, index.to(d), 5.0), x.scatter(dimension, index, 5.0))
        same(
            x.to(d).scatter_add(dimension, index.to(d), source.to(d)),
            x.scatter_add(dimension, index, source),
        )
        same(
            x.to(d).scatter_reduce(dimension, index.to(d), source.to(d), "amax"),
            x.scatter_reduce(dimension, index, source, "amax"),
        )
    unique = torch.stack([torch.randperm(5)[:2] for _ in range(12)], 1).reshape(2, 4, 3).transpose(0, 1)
    same(x.to(d).scatter(1, unique.to(d), source.to(d)), x.scatter(1, unique, source))


def test_index_add_copy_fill_and_select():
    torch.manual_seed(0)
    d = "neuron"
    x, source, index = torch.randn(4, 5), torch.randn(4, 3), torch.tensor([4, 0, 2])
    same(x.to(d).index_add(1, index.to(d), source.to(d), alpha=2), x.index_add(1, index, source, alpha=2))
    same(x.to(d).index_copy(1, index.to(d), source.to(d)), x.index_copy(1, index, source))
    same(x.to(d).index_fill(1, index.to(d), -1.5), x.index_fill(1, index, -1.5))
    same(torch.index_select(x.to(d), 1, index.to(d)), torch.index_select(x, 1, index))


def test_embedding_gradient_is_deterministic_and_skips_padding():
    torch.manual_seed(0)
    weight, index = torch.randn(7, 33), torch.randint(7, (5, 11))
    expected = weight.double().requires_grad_()
    functional.embedding(index, expected, padding_idx=2).square().sum().backward()
    results = []
    threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            here = weight.to("neuron").requires_grad_()
            functional.embedding(index.to("neuron"), here, padding_idx=2).square().sum().backward()
            results.append(here.grad.cpu())
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(results[0], results[1])
    torch.testing.assert_close(results[0].double(), expected.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(6, 5), (2, 5, 3), (2, 5, 3, 4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_forward_and_backward(reduction, shape, weighted):
    torch.manual_seed(0)
    logits = torch.randn(shape)
    target = torch.randint(shape[1], shape[:1] + shape[2:])
    target.view(-1)[1] = -100
    weight = torch.rand(shape[1]) if weighted else None
    here, there = logits.to("neuron").requires_grad_(), logits.double().requires_grad_()
    got = functional.cross_entropy(
        here, target.to("neuron"), None if weight is None else weight.to("neuron"), reduction=reduction
    )
    expected = functional.cross_entropy(there, target, None if weight is None else weight.double(), reduction=reduction)
    torch.testing.assert_close(got.cpu().double(), expected, rtol=1e-5, atol=1e-5)
    got.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(here.grad.cpu().double(), there.grad, rtol=1e-5, atol=1e-6)


def test_masks_and_nonzero():
    x = torch.tensor([[0.0, 1.0, float("nan")], [2.0, 0.0, -0.0]])
    d = "neuron"
    same(torch.nonzero(x.to(d)), torch.nonzero(x))
    mask = torch.tensor([True, False, True])
    torch.testing.assert_close(
        torch.masked_select(x.to(d), mask.to(d)).cpu(), torch.masked_select(x, mask), equal_nan=True
    )
    values = torch.arange(4.0)
    same(
        torch.zeros(2, 3, device=d).masked_scatter_(mask.to(d), values.to(d)),
        torch.zeros(2, 3).masked_scatter_(mask, values),
    )
    same(torch.nonzero(torch.zeros(0, 3, device=d)), torch.nonzero(torch.zeros(0, 3)))


def test_cat_and_stack():
    d = "neuron"
    a, b = torch.arange(6.0).reshape(2, 3), torch.arange(4.0).reshape(2, 2)
    same(torch.cat([a.to(d), b.to(d), a.to(d)[:, :0]], 1), torch.cat([a, b, a[:, :0]], 1))
    same(torch.cat([a.t().to(d), b.t().to(d)]), torch.cat([a.t(), b.t()]))
    same(torch.cat([a.to(d), b.long().to(d)], 1), torch.cat([a, b.long()], 1))
    same(torch.stack([a.to(d), a.to(d) + 1], 1), torch.stack([a, a + 1], 1))
    with pytest.raises(RuntimeError, match="Sizes of tensors must match except in dimension 0"):
        torch.cat([a.to(d), b.to(d)])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
def test_narrow_floats_are_combined_in_float32_in_every_layout(dtype, reduce):
    """Along lines without gaps and with, in rows that are met once, often and never; rounded once."""
    torch.manual_seed(3)
    x, source = torch.randn(3, 9, 40).to(dtype), torch.randn(3, 9, 200).to(dtype)
    index = torch.randint(40, (2, 7, 150))
    expected = x.float().scatter_reduce(2, index, source.float(), reduce).to(dtype)
    layouts = [
        lambda t: t.to("neuron"),
        lambda t: t.transpose(1, 2).contiguous().to("neuron").transpose(1, 2),
        lambda t: t.transpose(0, 1).contiguous().to("neuron").transpose(0, 1),
    ]
    for of_x in layouts:
        for of_others in layouts:
            result = of_x(x).clone().scatter_reduce_(2, of_others(index), of_others(source), reduce)
            assert torch.equal(result.cpu(), expected)
