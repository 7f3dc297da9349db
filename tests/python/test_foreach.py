"""Foreach operators: the bits of a loop over the single operators in every mode, the CPU's errors, no fallback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import torch_neuronx
import torch_neuronx.testing
from aten_samples import NUMBERS, overload, table, values
from fuzz.compare import ADAPTIVE, OTHERS, REFERENCE, Variant, settings
from fuzz.namespace import same_bits
from reference import DEVICE, assert_near

ROWS = {row["op"]: row["each"] for row in table() if row["kind"] == "list"}
SHAPES = [(3, 4), (64,), (), (2, 3, 5), (1,), (0, 3), (130,)]
# CPU's foreach for lists of integers or narrow floats is the same loop; these are the dtypes optimizers hold.
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64]


def in_variant(variant: Variant, function: Callable[[], Any]) -> Any:
    with settings(variant):
        return function()


def lists_of(op: torch._ops.OpOverload, dtype: torch.dtype, shapes: list[tuple[int, ...]]) -> list[Any]:
    """Arguments for a foreach overload, on the CPU."""
    base = op._schema.name.removeprefix("aten::_foreach_").rstrip("_")
    made: list[Any] = []
    for position, argument in enumerate(op._schema.arguments):
        kind = str(argument.type)
        number = NUMBERS.get(argument.name, 1.5)
        number = number if dtype.is_floating_point else 2
        if kind == "List[Tensor]":
            salt = f"{argument.name}{position}"
            integers = 1 if base in ("div", "pow") else -5
            made.append([values(shape, dtype, base, salt, integers_from=integers) for shape in shapes])
            if base == "pow":
                made[-1] = [tensor.abs() + 1 for tensor in made[-1]]
        elif kind == "List[number]":
            made.append([number + i for i in range(len(shapes))])
        elif kind == "Tensor":
            several = "addc" in base
            made.append(torch.tensor([0.5 + i for i in range(len(shapes))]) if several else torch.tensor(1.5).to(dtype))
        else:
            made.append(number)
    return made


def moved(arguments: list[Any], op: torch._ops.OpOverload) -> list[Any]:
    scalars_on_host = "addc" in op._schema.name
    return [
        [tensor.to(DEVICE) if isinstance(tensor, Tensor) else tensor for tensor in value]
        if isinstance(value, list)
        else value.to(DEVICE)
        if isinstance(value, Tensor) and not scalars_on_host
        else value
        for value in arguments
    ]


def apply(name: str, arguments: list[Any]) -> list[Tensor]:
    """The results, or what was written."""
    op = overload(name)
    positional = sum(not argument.kwarg_only for argument in op._schema.arguments)
    names = [argument.name for argument in op._schema.arguments[positional:]]
    results = op(*arguments[:positional], **dict(zip(names, arguments[positional:], strict=True)))
    lists = [value for value in arguments if isinstance(value, list) and isinstance(value[0], Tensor)]
    return list(results) if results is not None else lists[0]


def apply_singly(name: str, arguments: list[Any]) -> list[Tensor]:
    each = overload(ROWS[name])
    count = next(len(v) for v in arguments if isinstance(v, list) and isinstance(v[0], Tensor))
    results = []
    for i in range(count):
        item: list[Any] = []
        for value in arguments:
            if isinstance(value, list):
                item.append(value[i])
            elif isinstance(value, Tensor) and value.dim() == 1:
                item.append(value[i].item())
            else:
                item.append(value)
        # alpha and value are given by keyword.
        keywords = [a.name for a in each._schema.arguments if a.kwarg_only]
        named = (
            {keywords[0]: item.pop()} if keywords and len(item) > len(each._schema.arguments) - len(keywords) else {}
        )
        results.append(each(*item, **named))
    return results


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_bits_are_those_of_the_single_operators(name: str, dtype: torch.dtype) -> None:
    op = overload(name)
    arguments = lists_of(op, dtype, SHAPES)
    try:
        expected_on_cpu = apply(name, lists_of(op, dtype, SHAPES))
    except (RuntimeError, NotImplementedError) as error:
        assert not dtype.is_floating_point
        with pytest.raises(type(error)) as raised:
            apply(name, moved(arguments, op))
        assert str(raised.value).splitlines()[0] == str(error).splitlines()[0]
        return

    def several() -> list[Tensor]:
        return [tensor.cpu() for tensor in apply(name, moved(arguments, op))]

    expected = in_variant(REFERENCE, lambda: [t.cpu() for t in apply_singly(name, moved(arguments, op))])
    with torch_neuronx.testing.no_fallback():
        for variant in (*ADAPTIVE, REFERENCE, OTHERS[0]):
            for a, e, c in zip(in_variant(variant, several), expected, expected_on_cpu, strict=True):
                assert a.dtype == c.dtype and a.shape == c.shape
                assert same_bits(a, e), f"{variant.name}: {a} is not {e}"


@pytest.mark.parametrize("name", ROWS)
def test_values_against_float64(name: str) -> None:
    op = overload(name)
    shapes = [(33,), (2, 7)]

    exact = apply(name, lists_of(op, torch.float64, shapes))
    double = apply(name, moved(lists_of(op, torch.float64, shapes), op))
    single = apply(name, moved(lists_of(op, torch.float32, shapes), op))
    narrowed = [
        [t.double() for t in value] if isinstance(value, list) and isinstance(value[0], Tensor) else value
        for value in lists_of(op, torch.float32, shapes)
    ]
    expected = apply(name, narrowed)
    for d, e, s, n in zip(double, exact, single, expected, strict=True):
        assert_near(d, e, 64, scale=1.0)
        assert_near(s, n, 64, scale=1.0)


def strided_lists(device: str) -> tuple[list[Tensor], list[Tensor]]:
    """Transposed, sliced, channels-last, broadcast and expanded operands among plain ones."""
    generator = torch.Generator().manual_seed(5)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(device)

    image = draw(2, 3, 4, 5).to(memory_format=torch.channels_last)
    xs = [draw(4, 3), draw(6, 5).t(), draw(9)[::2], image, draw(3, 4), draw(8)]
    ys = [draw(4, 3), draw(5, 6), draw(5), draw(2, 3, 4, 5).to(memory_format=torch.channels_last), draw(4), draw(1)]
    return xs, ys


def test_tensors_that_lie_in_memory_differently() -> None:
    xs, ys = strided_lists(DEVICE)
    expected = [x + y for x, y in zip(xs, ys, strict=True)]
    for a, e in zip(torch._foreach_add(xs, ys), expected, strict=True):
        assert torch.equal(a, e)
        assert a.stride() == e.stride()
    for a, e in zip(torch._foreach_sqrt(torch._foreach_abs(xs)), [x.abs().sqrt() for x in xs], strict=True):
        assert torch.equal(a, e)
        assert a.stride() == e.stride()
    torch._foreach_add_(xs, ys)
    assert all(torch.equal(x, e) for x, e in zip(xs, expected, strict=True))


def test_items_that_share_memory_are_taken_in_order() -> None:
    results = []
    for device in ("cpu", DEVICE):
        base = torch.arange(8.0).to(device)
        views = [base[0:4], base[2:6], base[4:8], base]
        torch._foreach_mul_(views, 2)
        torch._foreach_add_(views, [torch.ones_like(view) for view in views])
        torch._foreach_add_([base, base], 1)
        sums = torch._foreach_add(views, [base[0], base[1], base[2], base[3]])
        results.append([base.tolist(), *(total.tolist() for total in sums)])
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch._foreach_add_([x[:3], x[1:4]], [x[1:4], x[:3]]),
        lambda x: torch._foreach_mul_([x.expand(3, 4)], 2),
    ],
)
def test_operands_that_overlap_are_refused_as_on_the_cpu(call: Callable[[Tensor], Any]) -> None:
    errors = []
    for device in ("cpu", DEVICE):
        with pytest.raises(RuntimeError) as raised:
            call(torch.arange(4.0).to(device))
        errors.append(str(raised.value).splitlines()[0])
    assert errors[0] == errors[1]


def one(*shape: int, device: str = DEVICE, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(shape, device=device, dtype=dtype)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch._foreach_add_([one(2, device=d)], [one(2, device=d), one(2, device=d)]),
        lambda d: torch._foreach_add([one(2, device=d)], [one(2, device=d), one(2, device=d)]),
        lambda d: torch._foreach_mul_([one(2, device=d), one(3, device=d)], [1.0, 2.0, 3.0]),
        lambda d: torch._foreach_add_([one(2, device=d)], [one(3, device=d)]),
        lambda d: torch._foreach_add_([one(2, device=d), one(1, device=d)], [one(2, device=d), one(3, device=d)]),
        lambda d: torch._foreach_addcmul_([one(2, device=d)], [one(2, device=d)], [one(5, device=d)], 0.5),
        lambda d: torch._foreach_addcdiv_([one(2, device=d)], [one(2, device=d)], [one(2, device=d)], [1.0, 2.0]),
        lambda d: torch._foreach_addcdiv_(
            [one(2, device=d)], [one(2, device=d)], [one(2, device=d)], one(2, device="cpu")
        ),
        lambda d: torch._foreach_lerp_([one(2, device=d)], [one(4, device=d)], 0.5),
        lambda d: torch._foreach_mul_([one(2, device=d)], one(3, device=d)),
        lambda d: torch._foreach_add_([one(2, device=d, dtype=torch.int32)], [one(2, device=d)]),
        lambda d: torch._foreach_sqrt_([one(2, device=d, dtype=torch.int32)]),
        lambda d: torch._foreach_div_([one(2, device=d, dtype=torch.int32)], 2),
        lambda d: torch._foreach_copy_([one(2, device=d)], [one(3, device=d)]),
        lambda d: torch._foreach_copy_([one(2, device=d)], [one(2, device=d), one(2, device=d)]),
        lambda d: torch._foreach_pow_([one(2, device=d, dtype=torch.int32)], -1),
        lambda d: torch._foreach_norm([one(2, device=d, dtype=torch.int32)]),
        lambda d: torch._foreach_norm([one(0, device=d)], float("inf")),
    ],
)
def test_errors_are_the_cpus(call: Callable[[str], Any]) -> None:
    errors = []
    for device in ("cpu", DEVICE):
        with pytest.raises((RuntimeError, IndexError)) as raised:
            call(device)
        errors.append((type(raised.value), str(raised.value).splitlines()[0]))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    "name", ["_foreach_sqrt", "_foreach_sqrt_", "_foreach_zero_", "_foreach_norm.Scalar", "_foreach_copy_"]
)
def test_empty_lists_are_the_cpus_error(name: str) -> None:
    # Without a tensor there is no device: the dispatcher asks PyTorch's own loop.
    arguments = [[], []] if "copy" in name else [[]]
    with pytest.raises(RuntimeError, match="must have at least one tensor"):
        overload(name)(*arguments)


def test_an_error_in_the_middle_leaves_what_came_before() -> None:
    results = []
    for device in ("cpu", DEVICE):
        xs = [one(2, device=device), one(3, device=device), one(2, device=device)]
        with pytest.raises(RuntimeError, match="must match the size"):
            torch._foreach_add_(xs, [one(2, device=device), one(2, device=device), one(2, device=device)])
        results.append([x.tolist() for x in xs])
    assert results[0] == results[1] == [[2, 2], [1, 1, 1], [1, 1]]


def test_lists_of_several_dtypes_and_devices() -> None:
    def lists(device: str) -> tuple[list[Tensor], list[Tensor]]:
        return [one(2, device=device), one(3, device=device, dtype=torch.bfloat16), one(2, device="cpu")], [
            one(2, device=device, dtype=torch.float64),
            one(3, device=device),
            one(2, device="cpu"),
        ]

    for function in (torch._foreach_add, torch._foreach_mul):
        for a, e in zip(function(*lists(DEVICE)), function(*lists("cpu")), strict=True):
            assert a.dtype == e.dtype
            assert torch.equal(a.cpu(), e)
    xs, ys = lists(DEVICE)
    torch._foreach_add_(xs, ys)
    assert [x.tolist() for x in xs] == [[2, 2], [2, 2, 2], [2, 2]]
    assert [x.device.type for x in xs] == [DEVICE, DEVICE, "cpu"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("order", [2, 1, 0, float("inf"), float("-inf"), 3, 0.5])
def test_norms(order: float, dtype: torch.dtype) -> None:
    xs = [values(shape, dtype, "norm", str(i)) for i, shape in enumerate([(3, 4), (700,), (), (2, 3, 5)])]
    device = [x.to(DEVICE) for x in xs]
    with torch_neuronx.testing.no_fallback():
        for variant in (REFERENCE, *ADAPTIVE):
            norms = in_variant(variant, lambda: torch._foreach_norm(device, order))
            for a, x, d in zip(norms, xs, device, strict=True):
                assert same_bits(a.cpu(), torch.linalg.vector_norm(d, order).cpu())
                assert_near(a, torch.linalg.vector_norm(x.double(), order), 16)


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -0.5, -1, -2, 0, 1, 1.7])
def test_powers(exponent: float) -> None:
    xs = [values((5,), torch.float32, "log", "a").to(DEVICE), values((2, 3), torch.float32, "log", "b").to(DEVICE)]
    expected = [x.pow(exponent) for x in xs]
    with torch_neuronx.testing.no_fallback():
        assert all(torch.equal(a, e) for a, e in zip(torch._foreach_pow(xs, exponent), expected, strict=True))
        torch._foreach_pow_(xs, exponent)
        assert all(torch.equal(a, e) for a, e in zip(xs, expected, strict=True))


def test_zero_and_copy() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.uint8, torch.complex64):
        xs = [torch.ones(3, dtype=dtype, device=DEVICE), torch.ones(2, 2, dtype=dtype, device=DEVICE)]
        ys = [torch.full((3,), 2, dtype=torch.float32, device=DEVICE), torch.zeros(2, 2, device=DEVICE)]
        torch._foreach_copy_(xs, ys)
        assert torch.equal(xs[0].cpu(), torch.full((3,), 2).to(dtype))
        assert torch.equal(xs[1].cpu(), torch.zeros(2, 2).to(dtype))
        torch._foreach_zero_(xs)
        assert not any(x.cpu().any() for x in xs)
    transposed = torch.zeros(2, 3, device=DEVICE).t()
    torch._foreach_copy_([transposed], [torch.arange(6.0, device=DEVICE).view(3, 2)])
    assert transposed.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_list_is_recorded_natively_and_fused() -> None:
    xs = [torch.randn(50, device=DEVICE) for _ in range(20)]
    ys = [torch.randn(50, device=DEVICE) for _ in range(20)]
    from torch_neuronx import _C

    def step() -> None:
        torch._foreach_mul_(xs, 0.5)
        torch._foreach_add_(xs, ys, alpha=2)
        torch._foreach_sqrt(xs)
        torch._foreach_addcmul_(xs, ys, ys, 0.25)
        torch.neuron.synchronize()

    with settings(ADAPTIVE[0]):
        for _ in range(3):
            step()
        torch_neuronx.clear_op_tracking()
        _C.reset_statistics()
        step()
        counted = _C.statistics()
    assert counted["region_commands"] == 80
    assert counted["fused_commands"] >= 60  # the root that nobody reads is dropped
    assert counted["regions_run"] == 20  # one for each tensor
    executed = torch_neuronx.get_executed_ops()
    assert {"aten::_foreach_mul_.Scalar", "aten::_foreach_add_.List", "aten::_foreach_sqrt"} <= set(executed)
    assert "aten::mul_.Scalar" not in executed
