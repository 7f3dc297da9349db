"""Softmax and log-softmax against float64."""

from __future__ import annotations

import math

import pytest
import torch

import torch_neuronx.testing
from reference import DEVICE, FLOATS, check, check_gradients

# The exponential's argument, up to 25 here, is rounded before it: half a unit of it is so many of the result.
EPSILONS = 20


def values(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    return (torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64) * 3).to(dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_values(function, dim: int, dtype: torch.dtype) -> None:  # type: ignore[no-untyped-def]
    with torch_neuronx.testing.no_fallback():
        check(
            lambda x: function(x, dim), [values(dtype, (4, 7, 33))], EPSILONS, 0.0 if function is torch.softmax else 1.0
        )
        check(
            lambda x: function(x, -1), [values(dtype, (2, 5000))], EPSILONS, 0.0 if function is torch.softmax else 1.0
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_gradients(function, dim: int, dtype: torch.dtype) -> None:  # type: ignore[no-untyped-def]
    with torch_neuronx.testing.no_fallback():
        check_gradients(lambda x: function(x, dim), [values(dtype, (4, 7, 33))], 16)


def test_layouts_and_corners() -> None:
    x = values(torch.float32, (6, 9))
    with torch_neuronx.testing.no_fallback():
        torch.testing.assert_close(x.to(DEVICE).t().softmax(0).cpu(), x.t().softmax(0))
        torch.testing.assert_close(x.to(DEVICE)[::2, ::3].softmax(1).cpu(), x[::2, ::3].softmax(1))
        assert torch.tensor(4.0, device=DEVICE).softmax(0).item() == 1
        assert torch.empty(0, 3, device=DEVICE).softmax(1).shape == (0, 3)
        masked = torch.tensor([[1.0, -math.inf], [-math.inf, -math.inf], [1e4, 1e4]])
        torch.testing.assert_close(masked.to(DEVICE).softmax(1).cpu(), masked.softmax(1), equal_nan=True)
        torch.testing.assert_close(masked.to(DEVICE).log_softmax(1).cpu(), masked.log_softmax(1), equal_nan=True)
        wide = torch.softmax(x.half().to(DEVICE), 1, dtype=torch.float32)
        assert wide.dtype == torch.float32
        torch.testing.assert_close(wide.cpu(), torch.softmax(x.half(), 1, dtype=torch.float32))
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.to(DEVICE).softmax(2)


def test_bits_do_not_depend_on_strides() -> None:
    x = values(torch.float32, (37, 501)).to(DEVICE)
    assert torch.equal(x.softmax(1).cpu(), x.t().contiguous().t().softmax(1).cpu())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [1, 7, 32, 100, 5000])
def test_a_nan_anywhere_makes_the_row_nan(length: int, dtype: torch.dtype) -> None:
    """The maximum of a row need not see it: the sum does, whatever stands before and behind."""
    places = sorted({place % length for place in (0, 1, 6, 31, 33, 99, 4095, 4096, length - 1)})
    x = values(dtype, (3 * len(places) + 1, length))
    for i, place in enumerate(places):
        x[3 * i : 3 * i + 3, place] = math.nan
        x[3 * i + 1, (place + 1) % length] = math.inf if length > 1 else math.nan
        x[3 * i + 2, (place - 1) % length] = -math.inf if length > 1 else math.nan
    for function in (torch.softmax, torch.log_softmax):
        result = function(x.to(DEVICE), 1).cpu()
        assert result[:-1].isnan().all()
        assert result[-1].isfinite().all()
    assert x.to(DEVICE).logsumexp(1).cpu()[:-1].isnan().all()
