"""Errors a user can make: the class and the text are those of CPU PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

CASES: dict[str, Callable[[str], object]] = {
    "shapes": lambda d: torch.ones(2, 3, device=d) + torch.ones(2, 4, device=d),
    "in-place shape": lambda d: torch.ones(3, device=d).add_(torch.ones(2, 3, device=d)),
    "in-place dtype": lambda d: torch.ones(3, dtype=torch.long, device=d).add_(1.5),
    "in-place division": lambda d: torch.ones(3, dtype=torch.long, device=d).div_(2),
    "out dtype": lambda d: torch.exp(torch.ones(3, device=d), out=torch.ones(3, dtype=torch.long, device=d)),
    "bool subtraction": lambda d: torch.ones(3, dtype=torch.bool, device=d) - torch.ones(3, dtype=torch.bool, device=d),
    "bool negation": lambda d: -torch.ones(3, dtype=torch.bool, device=d),
    "alpha": lambda d: torch.add(
        torch.ones(3, dtype=torch.long, device=d), torch.ones(3, dtype=torch.long, device=d), alpha=1.5
    ),
    "negative integer power": lambda d: torch.tensor([2, 3], device=d) ** -1,
    "float bitwise": lambda d: torch.ones(3, device=d) & torch.ones(3, device=d),
    "overlapping output": lambda d: torch.ones(1, device=d).expand(3).add_(1),
    "partial overlap": lambda d: (lambda x: torch.add(x[:4], 1, out=x[1:5]))(torch.ones(6, device=d)),
    "zero divisor": lambda d: torch.tensor([1, 2], device=d) // 0,
    "rounding mode": lambda d: torch.div(torch.ones(2, device=d), 2, rounding_mode="up"),
    "gelu approximate": lambda d: torch.nn.functional.gelu(torch.ones(2, device=d), approximate="up"),
    "lerp dtypes": lambda d: torch.lerp(torch.ones(2, device=d), torch.ones(2, dtype=torch.double, device=d), 0.5),
    "item": lambda d: torch.ones(2, device=d).item(),
    "item empty": lambda d: torch.ones(0, device=d).item(),
    "negative size": lambda d: torch.empty(-1, device=d),
    "view": lambda d: torch.ones(2, 3, device=d).view(4),
    "view of transposed": lambda d: torch.ones(2, 3, device=d).t().view(6),
    "copy shape": lambda d: torch.ones(2, device=d).copy_(torch.ones(3, device=d)),
    "copy broadcast": lambda d: torch.ones(3, device=d).copy_(torch.ones(2, 3, device=d)),
    "copy overlap": lambda d: (lambda x: x[:4].copy_(x[1:5]))(torch.ones(6, device=d)),
    "copy into expanded": lambda d: torch.ones(1, device=d).expand(3).copy_(torch.ones(3, device=d)),
    "fill tensor": lambda d: torch.ones(3, device=d).fill_(torch.ones(2, device=d)),
    "fill overflow": lambda d: torch.ones(3, dtype=torch.uint8, device=d).fill_(300),
    "arange step": lambda d: torch.arange(0, 3, -1, device=d),
    "arange zero": lambda d: torch.arange(0, 3, 0, device=d),
    "masked_fill mask": lambda d: torch.ones(3, device=d).masked_fill(torch.ones(3, device=d), 1),
    "where shapes": lambda d: torch.where(torch.ones(2, dtype=torch.bool, device=d), torch.ones(3, device=d), 1.0),
    "as_strided": lambda d: torch.ones(3, device=d).as_strided((4,), (1,)),
    "unfold": lambda d: torch.ones(3, device=d).unfold(0, 5, 1),
    "view_as_complex": lambda d: torch.view_as_complex(torch.ones(3, device=d)),
    "clamp without bounds": lambda d: torch.clamp(torch.ones(3, device=d)),
    "tril": lambda d: torch.ones(3, device=d).tril(),
}


@pytest.mark.parametrize("name", CASES)
def test_text_and_class(name: str):
    with pytest.raises(Exception) as expected:  # noqa: B017, PT011
        CASES[name]("cpu")
    with pytest.raises(type(expected.value)) as actual:
        result = CASES[name]("neuron")
        torch.neuron.synchronize()
        del result
    assert type(actual.value) is type(expected.value)
    assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


def test_two_devices_are_named():
    x = torch.ones(2, device="neuron")
    with pytest.raises(
        RuntimeError,
        match="Expected all tensors to be on the same device, but found at least two devices, neuron:0 and cpu!",
    ):
        x + torch.ones(2)
    with pytest.raises(RuntimeError, match="neuron:0 and neuron:1!"):
        x + torch.ones(2, device="neuron:1")
    assert (x + torch.tensor(1.0)).tolist() == [2, 2]


def test_division_by_a_zero_on_the_device_is_a_late_error():
    x = torch.tensor([4, 5], device="neuron")
    y = x // torch.tensor([2, 0], device="neuron")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        y.cpu()
    assert (x // torch.tensor([2, 5], device="neuron")).tolist() == [2, 1]


def test_meta_source():
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        torch.ones(2, device="neuron").copy_(torch.ones(2, device="meta"))


LATE_ERROR = """
    import torch

    def divide(x):
        return torch.nn.Parameter(x, requires_grad=False).floor_divide(torch.tensor([2, 0], device="neuron"))

    y = divide(torch.tensor([4, 5], device="neuron"))
    z = y + 1
    try:
        z.cpu()
    except RuntimeError as error:
        print(str(error).splitlines()[-1])
"""


def test_late_errors_name_the_line_that_recorded_them(run_python):
    traced = run_python(LATE_ERROR, TORCH_NEURONX_ENABLE_STACK_TRACE="1")
    assert traced.stdout.strip().endswith(", recorded at <string>:5 in divide)"), traced
    plain = run_python(LATE_ERROR, TORCH_NEURONX_ENABLE_STACK_TRACE="0")
    assert "raised by the recorded operation" in plain.stdout and "recorded at" not in plain.stdout, plain
