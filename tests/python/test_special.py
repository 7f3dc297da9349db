"""Special functions against values of 40 digits: Bessel functions, the scaled complement of erf, derivatives of digamma."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch

import torch_neuronx.testing
from reference import check_gradients

Exact = Callable[[Any], Any]
# name: (function, its exact value, ranges, bound in ulp of float32, of float64)
FUNCTIONS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Exact, list[tuple[float, float]], float, float]] = {
    "i0": (torch.special.i0, lambda x: mpmath.besseli(0, x), [(-20, 20), (60, 91)], 2.5, 6),
    "i0e": (torch.special.i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), [(-20, 20), (8, 1000)], 1, 6),
    "i1": (torch.special.i1, lambda x: mpmath.besseli(1, x), [(-20, 20), (-1e-3, 1e-3), (60, 91)], 2.5, 20),
    "i1e": (torch.special.i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), [(-20, 20), (8, 1000)], 1, 20),
    "erfcx": (torch.special.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [(-1, 9), (9, 1e5)], 2, 8),
    "log_ndtr": (torch.special.log_ndtr, lambda x: log_distribution(x), [(-30, 0), (-1000, -30), (0, 5)], 3, 30),
    "trigamma": (lambda x: torch.polygamma(1, x), lambda x: mpmath.psi(1, x), [(0.1, 20), (-5, 0), (20, 1e4)], 4, 16),
    "tetragamma": (lambda x: torch.polygamma(2, x), lambda x: mpmath.psi(2, x), [(0.6, 20), (20, 1e4)], 1, 16),
    "polygamma 7": (lambda x: torch.polygamma(7, x), lambda x: mpmath.psi(7, x), [(0.6, 20)], 1, 24),
    "polygamma 12": (lambda x: torch.polygamma(12, x), lambda x: mpmath.psi(12, x), [(0.6, 20)], 1, 32),
}


def log_distribution(x: Any) -> Any:
    complement = mpmath.erfc(abs(x) / mpmath.sqrt(2)) / 2
    return mpmath.log(complement) if x < 0 else mpmath.log1p(-complement)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, dtype: torch.dtype) -> None:
    function, exact, ranges, single, double = FUNCTIONS[name]
    bound = single if dtype == torch.float32 else double
    for low, high in ranges:
        x = torch.linspace(low, high, 77, dtype=torch.float64)[1:-1].to(dtype)
        with torch_neuronx.testing.no_fallback():
            actual = function(x.to("neuron")).cpu()
        assert actual.dtype == dtype
        with mpmath.workdps(400 if name == "log_ndtr" else 60):
            for at, got in zip(x.tolist(), actual.tolist(), strict=True):
                value = exact(mpmath.mpf(at))
                unit = mpmath.ldexp(torch.finfo(dtype).eps, int(mpmath.floor(mpmath.log(abs(value), 2))))
                assert abs(mpmath.mpf(got) - value) <= bound * unit, f"{name}({at!r}) is {got!r}, not {value}"


NARROW = ("i0", "i0e", "i1", "i1e", "trigamma", "tetragamma")  # what the CPU has for narrow floats


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_are_rounded_once(name: str, dtype: torch.dtype) -> None:
    function = FUNCTIONS[name][0]
    x = torch.linspace(0.5, 9, 50, dtype=torch.float64).to(dtype)
    expected = function(x.double()).to(dtype)
    actual = function(x.to("neuron")).cpu()
    assert actual.dtype == dtype
    torch.testing.assert_close(actual, expected, rtol=torch.finfo(dtype).eps, atol=0)
    assert (actual != expected).sum() <= 1  # ties of what is not exact in float32


SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e", "erfcx", "log_ndtr"])
def test_special_values_are_those_of_the_cpu(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor([*SPECIAL, 1e30, -1e30, 1e-30, 700.0, torch.finfo(dtype).max], dtype=dtype)
    actual, expected = FUNCTIONS[name][0](x.to("neuron")).cpu(), FUNCTIONS[name][0](x)
    torch.testing.assert_close(actual, expected, equal_nan=True)
    assert torch.equal(torch.signbit(actual[3:]), torch.signbit(expected[3:]))


def test_poles_of_polygamma() -> None:
    x = torch.tensor([0.0, -0.0, -1.0, -7.0, math.inf, math.nan], device="neuron")
    assert torch.polygamma(1, x)[:4].tolist() == [math.inf] * 4
    assert torch.polygamma(2, x)[:4].tolist() == [-math.inf] * 4
    assert torch.polygamma(3, x)[:4].tolist() == [math.inf] * 4
    assert torch.polygamma(1, x)[4:].cpu().nan_to_num(5).tolist() == [0, 5]


def test_polygamma_between_its_poles() -> None:
    x = torch.tensor([-225.5, -3.5, -0.5, 0.49, -17.25, -17.75])
    for order in (1, 2, 3, 4):
        actual = torch.polygamma(order, x.to("neuron")).cpu()
        exact = torch.tensor([float(mpmath.psi(order, mpmath.mpf(v))) for v in x.tolist()], dtype=torch.float64)
        torch.testing.assert_close(actual.double(), exact, rtol=1e-6, atol=0)


def test_orders_of_polygamma() -> None:
    x = torch.linspace(0.5, 5, 20)
    for order in (0, 1, 4, 12):
        with torch_neuronx.testing.no_fallback():
            actual = torch.polygamma(order, x.to("neuron"))
        torch.testing.assert_close(actual.cpu(), torch.polygamma(order, x.double()).float(), rtol=1e-6, atol=1e-6)
    with pytest.raises(RuntimeError, match="does not support negative n"):
        torch.polygamma(-1, x.to("neuron"))
    out = torch.empty(0, dtype=torch.float64, device="neuron")
    assert torch.polygamma(1, torch.tensor([3], device="neuron"), out=out) is out
    torch.testing.assert_close(out.cpu(), torch.tensor([math.pi**2 / 6 - 1.25], dtype=torch.float64), rtol=1e-7, atol=0)


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e", "trigamma", "tetragamma", "log_ndtr", "digamma", "lgamma"])
def test_gradients(name: str) -> None:
    functions = {"digamma": torch.digamma, "lgamma": torch.lgamma}
    function = functions.get(name) or FUNCTIONS[name][0]
    with torch_neuronx.testing.no_fallback():
        check_gradients(function, [torch.linspace(0.7, 9, 60)], 32)
