"""Every elementwise overload of the operator table against the CPU: dtypes, layouts, promotion, in-place, out=."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import torch_neuronx
import torch_neuronx.testing
from aten_samples import arguments, on_device, overload, table

ROWS = [row["op"] for row in table() if row["kind"] == "elementwise"]
DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.int8,
    torch.uint8,
    torch.bool,
]
TOLERANCE = {torch.float16: (2e-3, 1e-3), torch.bfloat16: (2e-2, 1e-2), torch.float64: (1e-12, 1e-12)}


def registered(name: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "PrivateUse1")


def outcome(op: Any, args: list[Any], **kwargs: Any) -> Any:
    try:
        result = op(*args, **kwargs)
        torch.neuron.synchronize()  # where late errors arrive
        return result
    except Exception as error:  # the class and the text are compared
        return error


def assert_same(actual: Any, expected: Any, what: str, precision: torch.dtype | None = None) -> None:
    if isinstance(expected, Exception):
        assert isinstance(actual, Exception), f"{what}: the CPU raises {expected!r}, the device does not"
        assert type(actual) is type(expected), f"{what}: {actual!r} instead of {expected!r}"
        assert str(actual).split("\n")[0] == str(expected).split("\n")[0], what
        return
    assert not isinstance(actual, Exception), f"{what}: {actual!r}"
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for item, other in zip(actual, expected, strict=True):
            assert_same(item, other, what, precision)
        return
    assert actual.device.type == "neuron", what
    assert actual.dtype == expected.dtype, what
    assert actual.shape == expected.shape, what
    assert actual.stride() == expected.stride(), what
    precision = precision or expected.dtype
    rtol, atol = TOLERANCE.get(precision, (2e-6, 1e-6) if precision.is_floating_point else (0, 0))
    torch.testing.assert_close(
        actual.cpu(), expected, rtol=rtol, atol=atol, equal_nan=True, msg=lambda text: f"{what}: {text}"
    )


def is_inplace(name: str) -> bool:
    return name.startswith("__i") or (name.partition(".")[0].endswith("_") and not name.startswith("__"))


def is_out(name: str) -> bool:
    return any(
        a.alias_info is not None and a.alias_info.is_write and a.kwarg_only for a in overload(name)._schema.arguments
    )


FUNCTIONAL = [name for name in ROWS if not is_inplace(name) and not is_out(name)]
INPLACE = [name for name in ROWS if is_inplace(name)]
OUT = [name for name in ROWS if is_out(name)]


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_dtypes(name: str):
    assert registered(name)
    op = overload(name)
    for dtype in DTYPES:
        args = arguments(op, [(3, 5)], dtype)
        assert args is not None
        # The CPU divides by six in float32 here, whatever the dtype.
        precision = torch.float32 if name == "hardsigmoid_backward" and dtype == torch.float64 else None
        assert_same(outcome(op, [on_device(a) for a in args]), outcome(op, args), f"{name} {dtype}", precision)


LAYOUTS = {
    "transposed": lambda a: a.t(),
    "strided": lambda a: a[:, ::2],
    "offset": lambda a: a[1:, 1:],
    "expanded": lambda a: a[:1].expand(3, 6),
    "empty": lambda a: a[:0],
    "one dimension": lambda a: a[0],
}


def reshaped(args: list[Any], view: Any) -> list[Any]:
    return [view(a) if isinstance(a, torch.Tensor) and a.dim() == 2 else a for a in args]


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_layouts(name: str):
    op = overload(name)
    dtype = torch.int32 if name.startswith(("bitwise", "__")) else torch.float32
    args = arguments(op, [(4, 6)], dtype)
    device = [on_device(a) for a in args]
    for what, view in LAYOUTS.items():
        assert_same(outcome(op, reshaped(device, view)), outcome(op, reshaped(args, view)), f"{name} {what}")


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_broadcast(name: str):
    op = overload(name)
    dtype = torch.int32 if name.startswith(("bitwise", "__")) else torch.float32
    for shapes in ([(4, 1, 6), (5, 1), (1, 6)], [(), (3,)], [(2, 3), (3,)], [(2, 3), (4,)]):
        args = arguments(op, list(shapes), dtype)
        assert_same(outcome(op, [on_device(a) for a in args]), outcome(op, args), f"{name} {shapes}")


@pytest.mark.parametrize("name", INPLACE)
def test_inplace(name: str):
    op = overload(name)
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        for view in (lambda a: a, lambda a: a.t(), lambda a: a[:, ::2]):
            args = arguments(op, [(3, 4)], dtype)
            device = [on_device(a) for a in args]
            changed, seen = reshaped(device, view), reshaped(args, view)
            actual, expected = outcome(op, changed), outcome(op, seen)
            assert_same(actual, expected, f"{name} {dtype}")
            if not isinstance(expected, Exception):
                assert actual is changed[0]
                assert_same(device[0], args[0], f"{name} {dtype}: the base of the view")


@pytest.mark.parametrize("name", OUT)
def test_out(name: str):
    op = overload(name)
    schema = op._schema
    targets = [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write and a.kwarg_only]
    args = arguments(op, [(3, 4)], torch.float32)
    if name.startswith(("bitwise", "__")):
        args = arguments(op, [(3, 4)], torch.int32)
    for dtype, make in (
        (torch.float32, lambda **k: torch.zeros(3, 4, **k)),
        (torch.float64, lambda **k: torch.zeros(4, 3, **k).t()),
        (torch.int32, lambda **k: torch.zeros(3, 4, **k)),
        (torch.bool, lambda **k: torch.zeros(0, **k)),
    ):
        expected_out = {target: make(dtype=dtype) for target in targets}
        actual_out = {target: make(dtype=dtype, device="neuron") for target in targets}
        expected = outcome(op, args, **expected_out)
        actual = outcome(op, [on_device(a) for a in args], **actual_out)
        # A wider out= holds results of the operation's own precision.
        assert_same(actual, expected, f"{name} out {dtype}", torch.float32 if dtype == torch.float64 else None)


def test_numbers_promote_as_on_the_cpu():
    for dtype in DTYPES:
        x = torch.arange(4).to(dtype)
        for number in (2, 2.5, True, torch.tensor(3), torch.tensor(3.5), torch.tensor(1.5, dtype=torch.float64)):
            for op in (
                torch.add,
                torch.mul,
                torch.div,
                torch.maximum if isinstance(number, torch.Tensor) else torch.sub,
            ):
                expected = outcome(op, [x, number])
                assert_same(outcome(op, [x.to("neuron"), number]), expected, f"{op.__name__} {dtype} {number!r}")


def test_zero_dimensional_device_tensors_are_not_wrapped_numbers():
    x, s = torch.ones(3, dtype=torch.float16), torch.tensor(2.0, dtype=torch.float64)
    assert_same(x.to("neuron") * s.to("neuron"), x * s, "half tensor, double 0-d")
    assert_same(s.to("neuron") * s.to("neuron"), s * s, "two 0-d")
    assert_same(s.to("neuron") + 1, s + 1, "0-d and a number")


NEVER_ON_THE_CPU = {
    "angle": torch.angle,
    "clamp": lambda x: torch.clamp(x, x, x.flip(0)) if x.dtype != torch.bool else x,
    "clamp_max": lambda x: torch.clamp_max(x, x.flip(0)),
    "clamp_min": lambda x: torch.clamp_min(x, x.flip(0)),
    "cube": lambda x: x**3,
    "erfcx": torch.special.erfcx,
    "i0": torch.special.i0,
    "i0e": torch.special.i0e,
    "i1": torch.special.i1,
    "i1e": torch.special.i1e,
    "log_ndtr": torch.special.log_ndtr,
    "power": lambda x: x**2.5,
    "square": torch.square,
    "trigamma": lambda x: torch.polygamma(1, x + 1),
    "zeroth power": lambda x: x**0,
}


@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.is_floating_point], ids=str)
@pytest.mark.parametrize("name", NEVER_ON_THE_CPU)
def test_integers_and_truth_stay_on_the_device(name: str, dtype: torch.dtype):
    x = torch.tensor([0, 1, 1, 3, 5]).to(dtype)
    with torch_neuronx.testing.no_fallback():
        actual = NEVER_ON_THE_CPU[name](x.to("neuron"))
    assert_same(actual, NEVER_ON_THE_CPU[name](x), name)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.is_floating_point], ids=str)
def test_mantissa_and_exponent(dtype: torch.dtype):
    info = torch.finfo(dtype)
    numbers = [0.0, -0.0, 1.0, -0.3, 2.0, 1023.0, info.max, info.tiny, -info.tiny / 2, info.smallest_normal * info.eps]
    x = torch.tensor([*numbers, math.inf, -math.inf, math.nan], dtype=torch.float64).to(dtype)
    with torch_neuronx.testing.no_fallback():
        mantissa, exponent = torch.frexp(x.to("neuron"))
        out = (torch.empty(0, dtype=dtype, device="neuron"), torch.empty(0, dtype=torch.int32, device="neuron"))
        torch.frexp(x.to("neuron").expand(2, -1), out=out)
    expected = torch.frexp(x)
    assert_same((mantissa, exponent), tuple(expected), "frexp")
    assert torch.equal(torch.signbit(mantissa[:10]).cpu(), torch.signbit(expected.mantissa[:10]))
    assert_same(out[1], expected.exponent.expand(2, -1).contiguous(), "exponents")


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
def test_augmented_assignments_stay_on_the_device(dtype: torch.dtype):
    def assign(x: torch.Tensor) -> torch.Tensor:
        same, y = x, x.flip(0).clone()
        x <<= 2
        x >>= 1
        x <<= y
        x >>= y
        x &= 29
        x |= y
        x ^= 6
        x += y
        x -= 1
        x *= y
        x **= 2
        x %= 7
        x //= 2
        assert x is same
        return x

    with torch_neuronx.testing.no_fallback():
        actual = assign(torch.arange(6).to(dtype).to("neuron"))
    assert_same(actual, assign(torch.arange(6).to(dtype)), "augmented")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_signs_of_zero_are_those_of_the_cpu(dtype: torch.dtype):
    x, y = torch.tensor([0.0, -0.0, -0.0, 0.0], dtype=dtype), torch.tensor([-0.0, 0.0, -0.0, 0.0], dtype=dtype)
    for op in (torch.fmax, torch.fmin, torch.special.entr, torch.add, torch.mul, torch.fmod, torch.nextafter):
        args = [x] if op is torch.special.entr else [x, y + 1 if op is torch.fmod else y]
        expected = op(*args)
        actual = op(*[a.to("neuron") for a in args])
        assert torch.equal(torch.signbit(actual).cpu(), torch.signbit(expected)), op.__name__


def test_default_dtype_decides_integer_promotion():
    x = torch.tensor([1, 2, 3])
    torch.set_default_dtype(torch.float64)
    try:
        assert_same(x.to("neuron").exp(), x.exp(), "exp")
        assert_same(x.to("neuron") / 2, x / 2, "div")
    finally:
        torch.set_default_dtype(torch.float32)
    assert_same(x.to("neuron").exp(), x.exp(), "exp")


def test_channels_last_is_kept():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    y = x.to("neuron")
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert_same(y + y, x + x, "channels last")
    assert_same(y * torch.ones(3, 1, 1, device="neuron"), x * torch.ones(3, 1, 1), "broadcast channels last")


def test_integers_are_exact_to_64_bits():
    x = torch.tensor([2**62 + 1, -(2**62) - 3, 2**53 + 1])
    y = x.to("neuron")
    assert_same(y + 1, x + 1, "add")
    assert_same(y * 3, x * 3, "mul wraps")
    assert_same(y // 7, x // 7, "floor_divide")
    assert_same(y % 1000003, x % 1000003, "remainder")
    assert_same(y.eq(2**53 + 1), x.eq(2**53 + 1), "eq")


def test_nothing_falls_back_for_common_dtypes():
    torch_neuronx.clear_op_tracking()
    x = torch.randn(4, 5).to("neuron")
    ((x + 1).relu() * x.sigmoid() - x.exp().log1p()).gt(0).logical_not()
    torch.where(x > 0, x, 0.5)
    x.clone().mul_(2).add_(x, alpha=3).clamp_(-1, 1)
    assert torch_neuronx.get_fallback_ops() == []
    assert "aten::add.Tensor" in torch_neuronx.get_executed_ops()
