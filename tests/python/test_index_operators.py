"""Operators that address elements: take, put_, index_reduce, repeat_interleave, renorm and their kin, and what writes into
given outputs, against the CPU."""

from __future__ import annotations

import pytest
import torch

from reference import assert_near, check, check_gradients

NATIVE = {
    "take", "put_", "trace", "tril_indices", "triu_indices", "logspace", "index_reduce", "index_reduce_", "renorm",
    "renorm_", "embedding_renorm_", "narrow_copy", "channel_shuffle", "unfold_backward", "repeat_interleave",
    "nonzero_static", "bucketize", "searchsorted", "isin", "histc", "median", "nanmedian", "kthvalue", "nonzero",
    "masked_select", "index", "scatter", "scatter_", "scatter_reduce", "scatter_reduce_",
    "index_select", "index_add", "index_copy", "index_copy_", "index_fill_", "gather", "scatter_add", "_index_put_impl_",
}  # fmt: skip
INDEXED = (
    torch.bool,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.bfloat16,
    torch.float16,
    torch.float32,
    torch.float64,
)


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(7)) * 4).to(dtype)


def same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert actual.device.type == "neuron"
    assert actual.dtype == expected.dtype
    torch.testing.assert_close(actual.cpu(), expected, rtol=0, atol=0, equal_nan=True)


def raises_alike(function) -> None:
    """The device raises the CPU's class and text, at the latest when the result is read."""
    with pytest.raises(Exception) as expected:  # noqa: PT011
        function("cpu")
    with pytest.raises(type(expected.value)) as actual:
        for result in function("neuron"):
            result.cpu()
    assert str(actual.value).splitlines()[0].rstrip(".") in str(expected.value) or str(expected.value).splitlines()[
        0
    ].rstrip(".") in str(actual.value)


LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.t(),
    "gaps": lambda x: x[:, ::2],
    "expanded": lambda x: x[:1].expand(4, -1),
}


@pytest.mark.parametrize("dtype", [*INDEXED, torch.complex64], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_take(dtype, layout):
    x = LAYOUTS[layout](numbers(4, 6).to(dtype))
    y = LAYOUTS[layout](numbers(4, 6).to(dtype).to("neuron"))
    for index in (torch.tensor([[0, 3], [-1, -5]]), torch.tensor(2), torch.tensor([], dtype=torch.long)):
        same(torch.take(y, index.to("neuron")), torch.take(x, index))
    index = torch.tensor([[1, 2, 3], [5, 0, -2]])
    given = torch.zeros(3, 2, dtype=dtype, device="neuron").t()
    torch.take(y, index.to("neuron"), out=given)
    same(given, torch.take(x, index))
    number = torch.tensor(3).to(dtype)
    same(
        torch.take(number.to("neuron"), torch.tensor([0, 0], device="neuron")), torch.take(number, torch.tensor([0, 0]))
    )


@pytest.mark.parametrize("dtype", [*INDEXED, torch.complex64], ids=str)
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("layout", ["dense", "transposed", "gaps"])
def test_put(dtype, accumulate, layout):
    index, source = torch.tensor([[5, 1], [-2, 5]]), torch.tensor([1, 2, 3, 4]).to(dtype)
    if not accumulate:
        index[1, 1] = 0
    x = LAYOUTS[layout](numbers(4, 6).round().to(dtype))
    y = LAYOUTS[layout](numbers(4, 6).round().to(dtype).to("neuron"))
    y.put_(index.to("neuron"), source.to("neuron"), accumulate=accumulate)
    same(y, x.put_(index, source, accumulate=accumulate))
    same(torch.put(y, index.to("neuron"), source.to("neuron")), torch.put(x, index, source))


def test_gradients_of_take_and_put():
    index = torch.tensor([3, 0, 3])
    check_gradients(lambda x, i: torch.take(x, i), [numbers(2, 3), index])
    check_gradients(lambda x, i, s: torch.put(x, i, s), [numbers(2, 3), torch.tensor([3, 0, 1]), numbers(3)])
    check_gradients(lambda x, i, s: torch.put(x, i, s, accumulate=True), [numbers(2, 3), index, numbers(3)])


def test_errors_of_take_and_put():
    def tensors(device, *values):
        return [torch.tensor(value, device=device) for value in values]

    raises_alike(lambda d: [torch.take(*tensors(d, [1.0, 2.0], [2]))])
    raises_alike(lambda d: [torch.take(*tensors(d, [1.0, 2.0], [-3]))])
    raises_alike(lambda d: [torch.take(torch.empty(0, device=d), torch.tensor([0], device=d))])
    raises_alike(lambda d: [torch.take(torch.ones(3, device=d), torch.tensor([0], device=d, dtype=torch.int32))])
    raises_alike(lambda d: [torch.ones(3, device=d).put_(*tensors(d, [0, 1], [1.0]))])
    raises_alike(lambda d: [torch.ones(3, device=d).put_(*tensors(d, [0], [1]))])
    raises_alike(lambda d: [torch.ones(3, device=d).put_(*tensors(d, [4], [1.0]))])
    x = torch.ones(6, device="neuron")
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch.take(x, torch.tensor([1, 2], device="neuron"), out=x[:2])


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (0, 3), (1, 1)])
def test_trace(shape):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        check(torch.trace, [numbers(*shape).to(dtype)], scale=8.0)
    for dtype in (torch.uint8, torch.int32, torch.int64):
        same(torch.trace(numbers(*shape).abs().to(dtype).to("neuron")), torch.trace(numbers(*shape).abs().to(dtype)))
    check(lambda x: torch.trace(x.t()[:, ::2] if min(shape) > 1 else x), [numbers(*shape)], scale=8.0)
    check_gradients(torch.trace, [numbers(*shape)])
    raises_alike(lambda d: [torch.trace(torch.ones(3, device=d))])


@pytest.mark.parametrize("function", [torch.tril_indices, torch.triu_indices])
def test_triangle_indices(function):
    for rows, columns in ((3, 3), (4, 2), (2, 5), (0, 3), (3, 0), (1, 1)):
        for offset in (-7, -2, -1, 0, 1, 3, 9):
            for dtype in (torch.int64, torch.int32):
                expected = function(rows, columns, offset, dtype=dtype)
                same(function(rows, columns, offset, dtype=dtype, device="neuron"), expected)
    raises_alike(lambda d: [function(-1, 2, device=d)])
    raises_alike(lambda d: [function(2, 2, device=d, dtype=torch.float32)])


def test_logspace():
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        for steps in (0, 1, 2, 7, 100):
            expected = torch.logspace(-2, 1.5, steps, base=2.0, dtype=dtype)
            actual = torch.logspace(-2, 1.5, steps, base=2.0, dtype=dtype, device="neuron")
            assert_near(actual, expected.double(), 2)
    for dtype in (torch.int64, torch.int32, torch.uint8):
        same(
            torch.logspace(0, 6, 7, base=2, dtype=dtype, device="neuron"), torch.logspace(0, 6, 7, base=2, dtype=dtype)
        )
    given = torch.zeros(5, 2, device="neuron")[:, 0]
    torch.logspace(0, 1, 5, out=given)
    assert_near(given, torch.logspace(0, 1, 5, dtype=torch.float64), 2)
    start = torch.tensor(1.0, device="neuron")
    assert_near(torch.logspace(start, 2, 3, device="neuron"), torch.logspace(1, 2, 3, dtype=torch.float64), 2)


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("index_dtype", [torch.int64, torch.int32])
def test_index_reduce(reduce, include_self, index_dtype):
    index = torch.tensor([0, 2, 0, 3, 0], dtype=index_dtype)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8):
        for dimension in (0, 1, -1):
            sizes = [4, 4, 4]
            sizes[dimension] = 5
            x, source = numbers(4, 4, 4).abs().to(dtype), numbers(*sizes).abs().to(dtype)
            if dtype.is_floating_point:
                check(
                    lambda x, i, s, d=dimension: torch.index_reduce(x, d, i, s, reduce, include_self=include_self),
                    [x, index, source],
                    epsilons=8,
                )
            expected = torch.index_reduce(x, dimension, index, source, reduce, include_self=include_self)
            y = x.to("neuron").transpose(0, 1).contiguous().transpose(0, 1)
            y.index_reduce_(dimension, index.to("neuron"), source.to("neuron"), reduce, include_self=include_self)
            if not dtype.is_floating_point:
                same(y, expected)
            given = torch.zeros(4, 4, 8, dtype=dtype, device="neuron")[..., ::2]
            torch.index_reduce(
                x.to("neuron"), dimension, index.to("neuron"), source.to("neuron"), reduce, include_self=include_self,
                out=given,
            )  # fmt: skip
            assert torch.equal(given, y)


def test_index_reduce_of_odd_shapes_and_errors():
    for index in (torch.tensor(0), torch.tensor([0])):
        expected = torch.tensor(3.0).index_reduce_(0, index, torch.tensor(2.0), "prod")
        actual = (
            torch.tensor(3.0).to("neuron").index_reduce_(0, index.to("neuron"), torch.tensor(2.0).to("neuron"), "prod")
        )
        same(actual, expected)
    x = torch.tensor([1.0, float("nan"), 3.0])
    for reduce in ("amax", "amin", "prod", "mean"):
        arguments = (0, torch.tensor([0, 0, 1]), torch.tensor([float("nan"), 2.0, 5.0]), reduce)
        device = (0, arguments[1].to("neuron"), arguments[2].to("neuron"), reduce)
        same(x.to("neuron").index_reduce(*device), x.index_reduce(*arguments))
    none = torch.empty(0, dtype=torch.long)
    same(x.to("neuron").index_reduce(0, none.to("neuron"), x[:0].to("neuron"), "prod"), x)

    def reduced(index, source, name="prod", shape=(3,)):
        return lambda d: [
            torch.ones(shape, device=d).index_reduce(
                0, torch.tensor(index, device=d), torch.ones(source, device=d), name
            )
        ]

    raises_alike(reduced([3], (1,)))
    raises_alike(reduced([-1], (1,)))
    raises_alike(reduced([0], (1,), "sum"))
    raises_alike(reduced([0], (2,)))
    raises_alike(reduced([[0]], (1,)))
    raises_alike(reduced([0.0], (1,)))


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_gradients_of_index_reduce(reduce):
    index = torch.tensor([0, 2, 0])
    for include_self in (False, True):
        check_gradients(
            lambda x, i, s, own=include_self: torch.index_reduce(x, 1, i, s, reduce, include_self=own),
            [numbers(2, 4).abs() + 0.5, index, numbers(2, 3) + 9],
        )


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [False, True])
def test_scatter_reduce(reduce, include_self):
    index = torch.tensor([[0, 2, 0, 1], [3, 3, 3, 0]])
    for dtype in (torch.float32, torch.bfloat16, torch.int32):
        x, source = numbers(3, 5).abs().to(dtype), numbers(2, 4).abs().to(dtype)
        arguments = [x, index, source]
        check(
            lambda x, i, s: torch.scatter_reduce(x, 1, i, s, reduce, include_self=include_self), arguments, epsilons=8
        )
    check_gradients(
        lambda x, i, s: torch.scatter_reduce(x, 1, i, s, reduce, include_self=include_self),
        [numbers(3, 5) + 9, index, numbers(2, 4) + 9],
    )


@pytest.mark.parametrize("reduce", ["add", "multiply"])
def test_scatter_of_a_number(reduce):
    index = torch.tensor([[0, 2, 0], [1, 1, 1]])
    for dtype in INDEXED:
        x = numbers(2, 4).abs().to(dtype)
        for value in (3, 2.5) if dtype.is_floating_point else (3,):
            expected = x.scatter(1, index, value, reduce=reduce)
            actual = x.to("neuron").scatter(1, index.to("neuron"), value, reduce=reduce)
            if dtype in (torch.bfloat16, torch.float16):
                expected = x.float().scatter(1, index, value, reduce=reduce).to(dtype)
            same(actual, expected)
            y = x.to("neuron").t().contiguous().t()
            same(y.scatter_(1, index.to("neuron"), value, reduce=reduce), expected)
    z = numbers(2, 4).to(torch.complex64)
    same(z.to("neuron").scatter_add(1, index.to("neuron"), z[:, :3].to("neuron")), z.scatter_add(1, index, z[:, :3]))


@pytest.mark.parametrize("order", [0.5, 1, 2, 3, float("inf")])
def test_renorm(order):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = numbers(3, 4, 5).to(dtype)
        x[:, 1] *= 0.01
        for dimension in (0, 1, -1):
            check(lambda x, d=dimension: torch.renorm(x, order, d, 5.0), [x], epsilons=32)
            y = x.to("neuron")
            y.renorm_(order, dimension, 5.0)
            assert torch.equal(y, torch.renorm(x.to("neuron"), order, dimension, 5.0))
    check_gradients(lambda x: torch.renorm(x, order, 1, 5.0), [numbers(3, 4, 5)], epsilons=64)
    raises_alike(lambda d: [torch.renorm(torch.ones(3, device=d), 2, 0, 1.0)])
    raises_alike(lambda d: [torch.renorm(torch.ones(3, 2, device=d), -1, 0, 1.0)])
    raises_alike(lambda d: [torch.renorm(torch.ones(3, 2, device=d, dtype=torch.long), 2, 0, 1.0)])


@pytest.mark.parametrize("order", [0.0, 1.0, 2.0, 2.5, float("inf")])
def test_embedding_renorm(order):
    indices = torch.tensor([[1, 3], [3, 0]])
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        weight = numbers(5, 6).to(dtype)
        for layout in (lambda x: x, lambda x: x.t().contiguous().t()):
            expected = torch.embedding_renorm_(weight.double().clone(), indices, 2.0, order)
            actual = torch.embedding_renorm_(layout(weight.to("neuron")), indices.to("neuron"), 2.0, order)
            assert_near(actual, expected, 4)
    raises_alike(lambda d: [torch.embedding_renorm_(torch.ones(3, 2, device=d), torch.tensor([3], device=d), 1.0, 2.0)])


def test_narrow_copy():
    for x in (numbers(4, 6), numbers(4, 6).t(), numbers(4, 6).to(torch.int64)):
        for dimension, start, length in ((0, 1, 2), (1, 0, 4), (-1, -2, 1), (0, 4, 0)):
            same(
                torch.narrow_copy(x.to("neuron"), dimension, start, length),
                torch.narrow_copy(x, dimension, start, length),
            )
    given = torch.zeros(6, 2, device="neuron").t()
    torch.ops.aten.narrow_copy.out(numbers(4, 6).to("neuron"), 0, 1, 2, out=given)
    same(given, numbers(4, 6)[1:3])
    check_gradients(lambda x: torch.narrow_copy(x, 1, 1, 2), [numbers(3, 4)])
    raises_alike(lambda d: [torch.narrow_copy(torch.ones(3, device=d), 0, 2, 2)])
    raises_alike(lambda d: [torch.narrow_copy(torch.ones(3, device=d), 0, 0, -1)])


def test_channel_shuffle():
    for x in (
        numbers(2, 6, 3),
        numbers(2, 6, 3, 4),
        numbers(2, 6, 3, 4).to(memory_format=torch.channels_last),
        numbers(0, 6, 2),
    ):
        for groups in (1, 2, 3, 6):
            same(torch.channel_shuffle(x.to("neuron"), groups), torch.channel_shuffle(x, groups))
    check_gradients(lambda x: torch.channel_shuffle(x, 2), [numbers(2, 4, 3)])
    raises_alike(lambda d: [torch.channel_shuffle(torch.ones(1, 4, 2, device=d), 3)])
    raises_alike(lambda d: [torch.channel_shuffle(torch.ones(4, 2, device=d), 2)])


def test_gradient_of_unfold():
    for dimension, size, step in ((0, 3, 1), (1, 2, 3), (-1, 1, 2), (2, 5, 2)):
        check_gradients(lambda x, d=dimension, n=size, s=step: x.unfold(d, n, s), [numbers(4, 6, 5)])
        gradient = numbers(4, 6, 5).unfold(dimension, size, step).contiguous().to(torch.int64)
        arguments = ([4, 6, 5], dimension % 3, size, step)
        expected = torch.ops.aten.unfold_backward(gradient, *arguments)
        same(torch.ops.aten.unfold_backward(gradient.to("neuron"), *arguments), expected)
    check_gradients(lambda x: x.unfold(0, 1, 1), [numbers(1)[0]])


def test_repeat_interleave():
    for dtype in (torch.int64, torch.int32):
        for counts in ([1, 0, 3], [0, 0], [], [2]):
            repeats = torch.tensor(counts, dtype=dtype)
            same(torch.repeat_interleave(repeats.to("neuron")), torch.repeat_interleave(repeats))
            total = sum(counts)
            same(torch.repeat_interleave(repeats.to("neuron"), output_size=total), torch.repeat_interleave(repeats))
    x, repeats = numbers(3, 4), torch.tensor([1, 0, 3])
    same(torch.repeat_interleave(x.to("neuron"), repeats.to("neuron"), 0), torch.repeat_interleave(x, repeats, 0))
    check_gradients(lambda x, r: torch.repeat_interleave(x, r, 0), [x, repeats])
    raises_alike(lambda d: [torch.repeat_interleave(torch.tensor([1, -1], device=d))])
    raises_alike(lambda d: [torch.repeat_interleave(torch.tensor([1, 2], device=d), output_size=4)])
    raises_alike(lambda d: [torch.repeat_interleave(torch.tensor([1.0, 2], device=d))])
    raises_alike(lambda d: [torch.repeat_interleave(torch.tensor([[1]], device=d))])


@pytest.mark.parametrize("size", [0, 2, 20])
def test_nonzero_static(size):
    for x in (torch.tensor([[1, 0, 2], [0, 3, 4]]), torch.tensor(3), torch.tensor(0), torch.zeros(0, 2)):
        same(torch.nonzero_static(x.to("neuron"), size=size), torch.nonzero_static(x, size=size))
        same(
            torch.nonzero_static(x.t().to("neuron"), size=size, fill_value=7),
            torch.nonzero_static(x.t(), size=size, fill_value=7),
        )
    raises_alike(lambda d: [torch.nonzero_static(torch.ones(3, device=d), size=-1)])


def test_no_dimensions_and_other_indices():
    """A tensor of no dimensions is one of one element, an index of none one of one; int32 indices; sums of bool."""
    number, x = torch.tensor(3.0), numbers(3)
    for index in (torch.tensor(0), torch.tensor([0]), torch.tensor([0], dtype=torch.int32)):
        i = index.to("neuron")
        for value in (number, x, numbers(3, 2)):
            v = value.to("neuron")
            same(v.index_select(0, i), value.index_select(0, index))
            same(v.index_fill(0, i.long(), 2.0), value.index_fill(0, index.long(), 2.0))
            source = torch.full((1, *value.shape[1:]), 2.0) if value.dim() else torch.tensor(2.0)
            same(v.index_add(0, i, source.to("neuron"), alpha=3), value.index_add(0, index, source, alpha=3))
            expected = value.index_copy(0, index.long(), source)
            same(v.index_copy(0, i.long(), source.to("neuron")), expected)
            same(v.clone().index_copy_(0, i.long(), source.to("neuron")), expected)
        same(x.to("neuron").index_copy(0, i.long(), number.to("neuron")), x.index_copy(0, index.long(), number))
    index = torch.tensor([2, 0, 2], dtype=torch.int32)
    i = index.to("neuron")
    same(x.to("neuron").gather(0, i), x.gather(0, index))
    same(x.to("neuron").scatter(0, i, 2.0), x.scatter(0, index, 2.0))
    same(x.to("neuron").scatter_add(0, i, x.to("neuron")), x.scatter_add(0, index, x))
    flags, more = torch.tensor([True, False, False]), torch.tensor([False, True, True])
    same(flags.to("neuron").index_add(0, i, more.to("neuron")), flags.index_add(0, index, more))
    got = flags.to("neuron").index_put((i.long(),), more.to("neuron"), accumulate=True)
    same(got, flags.index_put((index.long(),), more, accumulate=True))
    on_cpu = torch.tensor(0)
    for function in (
        lambda: x.to("neuron").index_select(0, on_cpu),
        lambda: x.to("neuron").take(on_cpu),
        lambda: number.to("neuron").gather(0, on_cpu),
        lambda: number.to("neuron").index_add(0, on_cpu, number.to("neuron")),
        lambda: number.to("neuron").index_copy(0, on_cpu.to("neuron"), number),
        lambda: number.to("neuron").scatter(0, on_cpu, 2.0),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            function()

    def indexed(name, *arguments, shape=(3,)):
        return lambda d: [
            getattr(torch.ones(shape, device=d), name)(
                0, *(a.to(d) if isinstance(a, torch.Tensor) else a for a in arguments)
            )
        ]

    raises_alike(indexed("index_select", torch.tensor([0, 0]), shape=()))
    raises_alike(indexed("index_select", torch.tensor([[0]])))
    raises_alike(indexed("index_add", torch.tensor(0), torch.tensor(2.0)))
    raises_alike(indexed("index_add", torch.tensor([0]), torch.tensor([2.0]), shape=()))
    raises_alike(indexed("index_add", torch.tensor([0]), torch.ones(2)))
    raises_alike(indexed("index_copy", torch.tensor([0]), torch.ones(2)))
    raises_alike(indexed("index_copy", torch.tensor([0]), torch.ones(2), shape=(3, 2)))
    raises_alike(indexed("index_fill", torch.tensor([0.0]), 2.0))
    raises_alike(indexed("index_fill", torch.tensor([0], dtype=torch.int32), 2.0))
    raises_alike(indexed("index_copy", torch.tensor([0], dtype=torch.int32), torch.ones(1)))


def out_of(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.empty(*(2 * n for n in shape), dtype=dtype, device="neuron")[
        tuple(slice(None, None, 2) for _ in shape)
    ]


def test_results_into_given_outputs():
    x = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 4.0]])
    y = x.to("neuron")
    for given in (out_of(torch.long, 4, 2), torch.empty(0, dtype=torch.long, device="neuron")):
        same(torch.nonzero(y, out=given), torch.nonzero(x))
    for given in (out_of(torch.float32, 4), torch.empty(0, device="neuron")):
        same(torch.masked_select(y, y > 0, out=given), x[x > 0])
    index = torch.tensor([1, 0, 1])
    for given in (out_of(torch.float32, 3, 3), torch.empty(0, device="neuron")):
        torch.ops.aten.index.Tensor_out(y, [index.to("neuron")], out=given)
        same(given, x[index])
    raises_alike(lambda d: [torch.nonzero(x.to(d), out=torch.empty(4, 2, device=d))])
    raises_alike(lambda d: [torch.masked_select(x.to(d), x.to(d) > 0, out=torch.empty(4, device=d, dtype=torch.long))])
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        z = numbers(3, 7).to(dtype)
        for keep in (False, True):
            for name, arguments in (("kthvalue", (2, 1)), ("median", (1,)), ("nanmedian", (1,))):
                expected = getattr(torch, name)(z, *arguments, keep)
                shape = expected.values.shape
                given = (out_of(dtype, *shape), out_of(torch.long, *shape))
                getattr(torch, name)(z.to("neuron"), *arguments, keep, out=given)
                same(given[0], expected.values)
                same(z.to("neuron").gather(1, given[1].reshape(3, 1)).reshape(shape), expected.values)
    counts = torch.empty(0, device="neuron")
    same(torch.histc(y, 4, 0, 4, out=counts), torch.histc(x, 4, 0, 4))


def test_selections_of_nothing():
    for x in (torch.empty(0), torch.empty(2, 0), torch.empty(0, dtype=torch.long)):
        same(torch.median(x.to("neuron")), torch.median(x))
        same(torch.nanmedian(x.to("neuron")), torch.nanmedian(x))
    empty = torch.empty(2, 0)
    for function in (torch.median, torch.nanmedian, lambda x, d: torch.kthvalue(x, 1, d)):
        same(function(empty.to("neuron"), 0)[0], function(empty, 0)[0])
        raises_alike(lambda d, f=function: f(empty.to(d), 1))
    raises_alike(lambda d: torch.kthvalue(torch.ones(3, device=d), 4))
    raises_alike(lambda d: torch.kthvalue(torch.ones(3, device=d), 0))
    raises_alike(lambda d: [torch.median(torch.ones(3, device=d, dtype=torch.bool))])


@pytest.mark.parametrize("right", [False, True])
def test_searches(right):
    for dtype in (torch.float32, torch.int64, torch.bfloat16):
        edges = torch.tensor([1, 3, 5, 7, 9]).to(dtype)
        edges_there = edges.to("neuron")
        for number in (3, 3.5, 0, 12, True):
            for narrow in (False, True):
                options = {"right": right, "out_int32": narrow}
                same(torch.bucketize(number, edges_there, **options), torch.bucketize(number, edges, **options))
                same(torch.searchsorted(edges_there, number, **options), torch.searchsorted(edges, number, **options))
        for other in (torch.float32, torch.int32, torch.float64):
            values = torch.tensor([[0, 3], [4, 10]]).to(other)
            same(
                torch.bucketize(values.to("neuron"), edges_there, right=right),
                torch.bucketize(values, edges, right=right),
            )
        values = numbers(3, 4).to(dtype)
        given = out_of(torch.long, 3, 4)
        torch.bucketize(values.t().to("neuron").t(), edges_there, right=right, out=given)
        same(given, torch.bucketize(values, edges, right=right))
        shuffled = numbers(3, 6).to(dtype)
        sorter = torch.argsort(shuffled, stable=True)
        given = torch.empty(0, dtype=torch.int32, device="neuron")
        torch.searchsorted(
            shuffled.to("neuron"),
            values.to("neuron"),
            right=right,
            sorter=sorter.to("neuron"),
            out_int32=True,
            out=given,
        )
        same(given, torch.searchsorted(shuffled, values, right=right, sorter=sorter, out_int32=True))
    raises_alike(lambda d: [torch.bucketize(torch.ones(2, device=d), torch.ones(2, 2, device=d))])
    raises_alike(lambda d: [torch.searchsorted(torch.ones(2, 2, device=d), torch.ones(3, 2, device=d))])
    raises_alike(lambda d: [torch.searchsorted(torch.ones(2, device=d), torch.ones(2, device=d), side="up")])
    raises_alike(lambda d: [torch.searchsorted(torch.ones(2, 2, device=d), 1.0)])
    sorter = torch.tensor([0])
    raises_alike(lambda d: [torch.searchsorted(torch.ones(2, device=d), torch.ones(2, device=d), sorter=sorter.to(d))])


def test_isin_of_numbers_and_mixed_dtypes():
    x = torch.tensor([[1, 5, 3], [5, 9, -1]])
    for dtype in (torch.int64, torch.uint8, torch.float32, torch.bfloat16):
        a = x.to(dtype)
        for invert in (False, True):
            for number in (5, 5.0, 2):
                same(torch.isin(a.to("neuron"), number, invert=invert), torch.isin(a, number, invert=invert))
                same(torch.isin(number, a.to("neuron"), invert=invert), torch.isin(number, a, invert=invert))
            tests = torch.tensor([5.0, 9.5, 1.0])
            same(torch.isin(a.to("neuron"), tests.to("neuron"), invert=invert), torch.isin(a, tests, invert=invert))
    given = out_of(torch.bool, 2, 3)
    torch.isin(x.to("neuron"), torch.tensor([5, 3], device="neuron"), out=given)
    same(given, torch.isin(x, torch.tensor([5, 3])))
    empty = torch.empty(0, dtype=torch.long)
    same(torch.isin(x.to("neuron"), empty.to("neuron")), torch.isin(x, empty))
    raises_alike(lambda d: [torch.isin(torch.ones(2, device=d, dtype=torch.bool), torch.ones(2, device=d))])
