"""Pointwise operators against CPU PyTorch: values, dtypes, layouts, special numbers, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import torch_neuronx.testing
from reference import DEVICE, FLOATS, check, check_gradients

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def values(dtype: torch.dtype, shape: tuple[int, ...] = (7, 33), low: float = -3, high: float = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    x = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    if dtype == torch.bool:
        return x > 0
    return x.abs().to(dtype) if dtype == torch.uint8 else x.to(dtype)


# name: (function, low, high, tolerance in epsilons)
UNARY: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], float, float, float]] = {
    "neg": (torch.neg, -3, 3, 0),
    "abs": (torch.abs, -3, 3, 0),
    "sign": (torch.sign, -3, 3, 0),
    "reciprocal": (torch.reciprocal, 0.1, 3, 1),
    "square": (torch.square, -3, 3, 1),
    "floor": (torch.floor, -3, 3, 0),
    "ceil": (torch.ceil, -3, 3, 0),
    "trunc": (torch.trunc, -3, 3, 0),
    "round": (torch.round, -3, 3, 0),
    "frac": (torch.frac, -3, 3, 0),
    "exp": (torch.exp, -10, 10, 2),
    "exp2": (torch.exp2, -10, 10, 2),
    "expm1": (torch.expm1, -2, 2, 3),
    "log": (torch.log, 0.01, 30, 2),
    "log2": (torch.log2, 0.01, 30, 2),
    "log10": (torch.log10, 0.01, 30, 3),
    "log1p": (torch.log1p, -0.9, 30, 3),
    "sqrt": (torch.sqrt, 0, 30, 1),
    "rsqrt": (torch.rsqrt, 0.01, 30, 2),
    "sin": (torch.sin, -10, 10, 3),
    "cos": (torch.cos, -10, 10, 3),
    "tan": (torch.tan, -1.4, 1.4, 4),
    "asin": (torch.asin, -1, 1, 4),
    "acos": (torch.acos, -1, 1, 4),
    "atan": (torch.atan, -3, 3, 4),
    "sinh": (torch.sinh, -3, 3, 4),
    "cosh": (torch.cosh, -3, 3, 4),
    "tanh": (torch.tanh, -3, 3, 3),
    "asinh": (torch.asinh, -3, 3, 4),
    "acosh": (torch.acosh, 1.1, 9, 4),
    "atanh": (torch.atanh, -0.9, 0.9, 4),
    "erf": (torch.erf, -3, 3, 3),
    "erfc": (torch.erfc, -3, 3, 6),
    "erfinv": (torch.erfinv, -0.9, 0.9, 6),
    "lgamma": (torch.lgamma, 0.2, 9, 16),
    "digamma": (torch.digamma, 2, 9, 16),
    "sigmoid": (torch.sigmoid, -9, 9, 3),
    "logit": (torch.logit, 0.1, 0.9, 16),
    "sinc": (torch.sinc, -3, 3, 16),
    "relu": (F.relu, -3, 3, 0),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.1), -3, 3, 1),
    "gelu": (F.gelu, -3, 3, 2),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), -3, 3, 4),
    "silu": (F.silu, -3, 3, 3),
    "mish": (F.mish, -3, 3, 4),
    "elu": (lambda x: F.elu(x, 1.5), -3, 3, 3),
    "celu": (lambda x: F.celu(x, 1.5), -3, 3, 3),
    "selu": (F.selu, -3, 3, 3),
    "softplus": (lambda x: F.softplus(x, 2.0, 3.0), -3, 3, 4),
    "hardtanh": (lambda x: F.hardtanh(x, -1.0, 2.0), -3, 3, 0),
    "hardsigmoid": (F.hardsigmoid, -4, 4, 2),
    "hardswish": (F.hardswish, -4, 4, 2),
    "logsigmoid": (F.logsigmoid, -4, 4, 4),
    "hardshrink": (lambda x: F.hardshrink(x, 0.5), -3, 3, 0),
    "softshrink": (lambda x: F.softshrink(x, 0.5), -3, 3, 1),
    "glu": (lambda x: F.glu(x, 0), -3, 3, 3),
    "clamp": (lambda x: x.clamp(-1.0, 1.5), -3, 3, 0),
    "clamp_min": (lambda x: x.clamp(min=0.5), -3, 3, 0),
    "pow2": (lambda x: x**2, -3, 3, 1),
    "pow3": (lambda x: x**3, -3, 3, 2),
    "pow_half": (lambda x: x**0.5, 0, 3, 1),
    "pow_minus_one": (lambda x: x**-1, 0.1, 3, 1),
    "pow_2.5": (lambda x: x**2.5, 0.1, 3, 3),
    "two_pow": (lambda x: 2.0**x, -3, 3, 3),
    "rsub": (lambda x: 1 - x, -3, 3, 1),
    "threshold": (lambda x: F.threshold(x, 0.5, 9.0), -3, 3, 0),
    "nan_to_num": (torch.nan_to_num, -3, 3, 0),
    "entr": (torch.special.entr, 0, 3, 4),
    "angle": (torch.angle, -3, 3, 1),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: torch.dtype) -> None:
    function, low, high, tolerance = UNARY[name]
    x = values(dtype, (8, 33), low, high)
    # Near a zero of the function the error is one of the argument's neighbourhood, not of the tiny value; and a narrow
    # result is rounded once.
    scale = 0.0 if tolerance <= 1 else 0.25
    with torch_neuronx.testing.no_fallback():
        check(function, [x], max(tolerance, 1), scale)


@pytest.mark.parametrize(
    "name", [n for n in UNARY if n not in ("digamma", "neg", "sign", "floor", "ceil", "trunc", "round", "nan_to_num")]
)
def test_unary_gradient(name: str) -> None:
    function, low, high, _ = UNARY[name]
    with torch_neuronx.testing.no_fallback():
        check_gradients(
            function, [values(torch.float32, (6, 9), max(low, -2.9), min(high, 2.9) if high > low else high)], 32
        )


SPECIAL = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1e-30, -1e30, 88.0, -100.0])
# CPU's vectorised code gives NaN at an infinity where the function has a limit.
BETTER_THAN_CPU = {"gelu", "gelu_tanh", "mish", "silu", "logsigmoid", "softplus", "digamma", "lgamma", "hardswish"}


@pytest.mark.parametrize("name", [n for n in UNARY if n not in BETTER_THAN_CPU and n != "glu"])
def test_unary_special_values(name: str) -> None:
    function = UNARY[name][0]
    check(function, [SPECIAL.double()], 64, 1e-290, same_dtype=False)


BINARY: dict[str, Callable[[Any, Any], torch.Tensor]] = {
    "add": torch.add,
    "add_alpha": lambda x, y: torch.add(x, y, alpha=2),
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "div_trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "div_floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
}
FLOAT_BINARY: dict[str, Callable[[Any, Any], torch.Tensor]] = {
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "copysign": torch.copysign,
    "logaddexp": torch.logaddexp,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "xlogy": lambda x, y: torch.xlogy(x, y.abs()),
    "pow": lambda x, y: torch.pow(x.abs(), y),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
}
EXACT_SENSITIVE = ("div_trunc", "div_floor", "remainder", "fmod")  # rounding before them changes the answer


@pytest.mark.parametrize("dtype", (*FLOATS, *INTEGERS), ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, dtype: torch.dtype) -> None:
    x, y = values(dtype, (5, 17), -9, 9), values(dtype, (5, 17), -9, 9).flip(0)
    if not dtype.is_floating_point:
        y = torch.where(y == 0, torch.ones_like(y), y)
    function = BINARY[name]
    with torch_neuronx.testing.no_fallback():
        if dtype.is_floating_point and name not in EXACT_SENSITIVE:
            check(function, [x, y], 1, 0.0)
        else:
            expected = function(x, y)
            actual = function(x.to(DEVICE), y.to(DEVICE)).cpu()
            assert actual.dtype == expected.dtype
            torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6 if dtype.is_floating_point else 0)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FLOAT_BINARY)
def test_float_binary(name: str, dtype: torch.dtype) -> None:
    x, y = values(dtype, (5, 17)), values(dtype, (5, 17)).flip(0)
    with torch_neuronx.testing.no_fallback():
        check(FLOAT_BINARY[name], [x, y], 6, 0.25)


@pytest.mark.parametrize("name", ["add", "mul", "sub", "div", "atan2", "maximum", "lerp", "pow", "xlogy", "hypot"])
def test_binary_gradient(name: str) -> None:
    function = {**BINARY, **FLOAT_BINARY}[name]
    with torch_neuronx.testing.no_fallback():
        check_gradients(function, [values(torch.float32, (4, 9), 0.3, 3), values(torch.float32, (9,), 0.5, 2)], 32)


@pytest.mark.parametrize("name", ["and", "or", "xor", "lshift", "rshift"])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_bitwise(name: str, dtype: torch.dtype) -> None:
    function = {
        "and": torch.bitwise_and,
        "or": torch.bitwise_or,
        "xor": torch.bitwise_xor,
        "lshift": torch.bitwise_left_shift,
        "rshift": torch.bitwise_right_shift,
    }[name]
    x, y = values(dtype, (40,), -99, 99), values(dtype, (40,), 0, 7)
    with torch_neuronx.testing.no_fallback():
        assert torch.equal(function(x.to(DEVICE), y.to(DEVICE)).cpu(), function(x, y))


def test_layouts() -> None:
    x, y = values(torch.float32, (6, 8)), values(torch.float32, (8, 6))
    cases = {
        "transposed": (x, y.t()),
        "strided": (x[::2, 1::3], x[1::2, 1::3]),
        "broadcast": (x, y[:1, :1]),
        "column": (x, x[:, :1]),
        "expanded": (x[:1].expand(6, 8), x),
        "scalar": (x, torch.tensor(2.5)),
        "scalar_first": (torch.tensor(2.5), x),
        "empty": (x[:0], x[:0]),
        "flipped": (x.flip(0), x),
    }
    for name, (a, b) in cases.items():
        on_device = [t.to(DEVICE) if name not in ("transposed", "strided") else t for t in (a, b)]
        if name == "transposed":
            on_device = [x.to(DEVICE), y.to(DEVICE).t()]
        elif name == "strided":
            base = x.to(DEVICE)
            on_device = [base[::2, 1::3], base[1::2, 1::3]]
        assert torch.equal((on_device[0] * on_device[1] + on_device[0]).cpu(), a * b + a), name


def test_promotion() -> None:
    half, integer = values(torch.float16, (5,)), torch.arange(5)
    for function in (torch.add, torch.mul, torch.div, torch.pow):
        actual, expected = function(half.abs().to(DEVICE), integer.to(DEVICE)), function(half.abs(), integer)
        assert actual.dtype == expected.dtype
        torch.testing.assert_close(actual.cpu(), expected)
    assert (integer.to(DEVICE) / 2).dtype == torch.float32
    assert torch.equal((integer.to(DEVICE) + 1.5).cpu(), integer + 1.5)
    assert torch.equal((integer.to(DEVICE) ** 2).cpu(), integer**2)
    assert torch.equal((integer.to(DEVICE) ** 3).cpu(), integer**3)


def test_integer_division_by_zero_raises() -> None:
    x = torch.tensor([5, 6], device=DEVICE)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        (x // 0).cpu()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.remainder(x, torch.zeros_like(x)).cpu()


def test_in_place_and_out() -> None:
    x, y = values(torch.float32, (4, 5)), values(torch.float32, (4, 5)).flip(1)
    a = x.to(DEVICE)
    b = a.mul_(2).add_(y.to(DEVICE), alpha=0.5).clamp_(-1, 1)
    assert b.data_ptr() == a.data_ptr()
    assert torch.equal(a.cpu(), x.mul(2).add(y, alpha=0.5).clamp(-1, 1))
    out = torch.empty(0, device=DEVICE)
    torch.sub(x.to(DEVICE), y.to(DEVICE), out=out)
    assert torch.equal(out.cpu(), x - y)


def test_where_masked_fill_and_triangles() -> None:
    x, mask = values(torch.float32, (6, 7)), values(torch.bool, (6, 7))
    d, m = x.to(DEVICE), mask.to(DEVICE)
    with torch_neuronx.testing.no_fallback():
        assert torch.equal(torch.where(m, d, -d).cpu(), torch.where(mask, x, -x))
        assert torch.equal(d.masked_fill(m, -math.inf).cpu(), x.masked_fill(mask, -math.inf))
        for diagonal in (-2, 0, 1, 100):
            assert torch.equal(d.tril(diagonal).cpu(), x.tril(diagonal))
            assert torch.equal(d.triu(diagonal).cpu(), x.triu(diagonal))
        assert torch.equal(torch.eye(3, 5, device=DEVICE).cpu(), torch.eye(3, 5))


def test_ranges() -> None:
    with torch_neuronx.testing.no_fallback():
        for arguments in ((5,), (2, 9, 3), (0.5, 3.0, 0.25), (10, 0, -3)):
            assert torch.equal(torch.arange(*arguments, device=DEVICE).cpu(), torch.arange(*arguments))
        torch.testing.assert_close(torch.linspace(-1, 2, 11, device=DEVICE).cpu(), torch.linspace(-1, 2, 11))
        assert torch.linspace(3, 4, 1, device=DEVICE).tolist() == [3.0]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"])
def test_losses(name: str, reduction: str) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return getattr(F, name)(x, y, reduction=reduction)

    x, y = values(torch.float32, (5, 9)), values(torch.float32, (5, 9)).flip(0)
    with torch_neuronx.testing.no_fallback():
        check(function, [x, y], 16)
        check_gradients(function, [x, y], 32)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_binary_cross_entropy(reduction: str) -> None:
    p, t, w = (
        values(torch.float32, (5, 9), 0.1, 0.9),
        values(torch.float32, (5, 9), 0, 1),
        values(torch.float32, (9,), 0.5, 2),
    )
    with torch_neuronx.testing.no_fallback():
        check(lambda x, y, z: F.binary_cross_entropy(x, y, z, reduction=reduction), [p, t, w], 16)
        check(lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction=reduction), [p * 4, t], 16)

    def loss(x: torch.Tensor) -> torch.Tensor:
        return F.binary_cross_entropy(x, t.to(x.device, x.dtype), reduction=reduction)

    with torch_neuronx.testing.no_fallback():
        check_gradients(loss, [p], 64)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(6, 5), (5,), (2, 5, 3, 4)], ids=str)
def test_cross_entropy(shape: tuple[int, ...], reduction: str) -> None:
    x = values(torch.float32, shape)
    target_shape = () if len(shape) == 1 else (shape[0], *shape[2:])
    target = torch.randint(0, 5, target_shape, generator=torch.Generator().manual_seed(3))
    if target.dim() > 0:
        target.view(-1)[0] = -100
    weight = values(torch.float32, (5,), 0.5, 2)

    def loss(logits: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(
            logits, target.to(logits.device), weight.to(logits.device, logits.dtype), reduction=reduction
        )

    with torch_neuronx.testing.no_fallback():
        check(loss, [x], 16, 1.0)
        check_gradients(loss, [x], 32)


def test_target_out_of_bounds() -> None:
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        F.nll_loss(torch.zeros(2, 3, device=DEVICE), torch.tensor([0, 7], device=DEVICE)).cpu()


def test_gradient_of_a_target_out_of_bounds() -> None:
    logits, target = torch.zeros(2, 3, device=DEVICE), torch.tensor([0, 7], device=DEVICE)
    one = torch.ones((), device=DEVICE)
    gradient = torch.ops.aten.nll_loss_backward(one, logits, target, None, 1, -100, one)
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        gradient.cpu()
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        (torch.ops.aten._log_softmax_backward_data(gradient, logits, 1, torch.float32) + 1).cpu()


def test_gradient_of_cross_entropy_has_the_same_bits_fused_or_not() -> None:
    """In a fused step the gradient of the log-probabilities is never in memory."""
    torch.manual_seed(0)
    logits, target = torch.randn(37, 300), torch.randint(300, (37,))
    target[5] = -100
    gradients = []
    for mode in ("immediate", "adaptive", "adaptive", "adaptive", "adaptive"):
        x = logits.to(DEVICE).requires_grad_()
        with torch_neuronx.testing.eager_mode(mode):
            F.cross_entropy(x, target.to(DEVICE)).backward()
            gradients.append(x.grad.cpu())
            torch_neuronx.testing.wait_for_compiles()
    for gradient in gradients:
        assert torch.equal(gradient, gradients[0])


def test_numbers_kept_in_tensors_of_the_device() -> None:
    """A number that was filled into a 0-dimensional tensor is read as it is, until somebody writes there again."""

    def values(device: str) -> list[torch.Tensor]:
        x = torch.linspace(-3, 3, 100).to(device)
        number = torch.full((), 0.5, device=device)
        results = [torch.where(x > 0, x, number), x * number, torch.where(x > 0, x, 0.25)]
        number.fill_(2.0)
        results.append(x + number)
        number.add_(1)
        results.append(x + number)
        number.fill_(4.0)
        number.copy_(torch.tensor(7.0))
        results.append(x + number)
        row = torch.zeros(3, device=device)
        middle = row[1]
        middle.fill_(0.5)
        results.append(x + middle)
        row.fill_(9.0)
        results.append(x + middle)
        middle.fill_(0.25)
        row.mul_(2)
        results.append(x + middle)
        narrow = torch.full((), 0.1, device=device, dtype=torch.bfloat16)
        results += [x * narrow, x.bfloat16() + narrow, x.bfloat16() * narrow]
        for value in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
            number = torch.full((), value, device=device)
            results.append(x - number)
            number += 1
        return results

    for got, expected in zip(values(DEVICE), values("cpu"), strict=True):
        assert torch.equal(got.cpu(), expected)


def test_a_graph_reads_numbers_that_were_filled_before_it() -> None:
    x, number = torch.ones(8, device=DEVICE), torch.full((), 0.5, device=DEVICE)
    stream, graph = torch.Stream(device=DEVICE), torch.accelerator.Graph()
    with stream, graph:
        inside = torch.full((), 3.0, device=DEVICE)
        result = x * number + inside
    for value in (0.5, 2.0):
        number.fill_(value)
        graph.replay()
        assert result.cpu().tolist() == [value + 3] * 8
