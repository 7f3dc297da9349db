"""Operands of another dtype than a narrow common one are rounded to it first, as CPU does: every binary operator, every
pair of dtypes, tensors, tensors without dimensions and numbers on either side."""

import pytest
import torch

NARROW = (torch.bfloat16, torch.float16)
OTHERS = (torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool, *NARROW)
SIZE = 256  # whole vectors: CPU's sums with alpha round once more in the elements that are left over

BINARY = {
    "add": torch.add,
    "add_scaled": lambda x, y: torch.add(x, y, alpha=1.2345),
    "sub": torch.sub,
    "sub_scaled": lambda x, y: torch.sub(x, y, alpha=1.2345),
    "rsub": torch.rsub,
    "mul": torch.mul,
    "div": torch.div,
    "div_trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "pow": torch.pow,
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "copysign": torch.copysign,
    "logaddexp": torch.logaddexp,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "where": lambda x, y: torch.where(torch.ones(SIZE, dtype=torch.bool, device=_device(x, y)), y, x),
}
# Operators whose float32 value is rounded once on both devices. For the others a last digit may differ: CPU fuses the
# multiplication by alpha, and rounds a quotient before it truncates it.
EXACT = set(BINARY) - {"pow", "atan2", "hypot", "logaddexp", "add_scaled", "sub_scaled", "div_trunc"}


def _device(*operands):
    return next(operand.device for operand in operands if isinstance(operand, torch.Tensor))


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Of a size at which narrow floats are coarse."""
    generator = torch.Generator().manual_seed(len(shape))
    if dtype == torch.bool:
        return torch.randint(2, shape, generator=generator).bool()
    if not dtype.is_floating_point:
        low, high = (129, 250) if dtype == torch.uint8 else (2049, 6000)
        return torch.randint(low, high, shape, generator=generator).to(dtype)
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * 3 + 0.5).to(dtype)


def exactness(name: str) -> bool | None:
    """None: a quotient may be truncated to the next integer."""
    return None if name == "div_trunc" else name in EXACT


def to_device(operand):
    return operand.to("neuron") if isinstance(operand, torch.Tensor) else operand


def compare(function, x, y, exact: bool | None) -> None:
    try:
        expected = function(x, y)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        with pytest.raises(type(error)):
            function(to_device(x), to_device(y))
        return
    actual = function(to_device(x), to_device(y)).cpu()
    assert actual.dtype == expected.dtype
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    if not exact and expected.dtype.is_floating_point:
        wide = expected.double()
        unit = 1.0 if exact is None else 0.0
        same |= (actual.double() - wide).abs() <= 2 * torch.finfo(expected.dtype).eps * (wide.abs() + 1) + unit
    assert bool(same.all()), f"{int((~same).sum())} of {same.numel()} differ"


@pytest.mark.parametrize("other", OTHERS, ids=str)
@pytest.mark.parametrize("narrow", NARROW, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_tensors_of_two_dtypes(name, narrow, other):
    function, exact = BINARY[name], exactness(name)
    x = values(narrow, SIZE)
    for y in (values(other, SIZE), values(other, 1), values(other)):
        compare(function, x, y, exact)
        compare(function, y.expand(SIZE) if y.dim() else y, x, exact)


@pytest.mark.parametrize("number", [1.23456789, 4099, -0.1, True], ids=str)
@pytest.mark.parametrize("narrow", NARROW, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_numbers(name, narrow, number):
    x = values(narrow, SIZE)
    compare(BINARY[name], x, number, exactness(name))
    compare(BINARY[name], number, x, exactness(name))


@pytest.mark.parametrize("narrow", NARROW, ids=str)
@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_", "copysign_", "remainder_", "fmod_", "pow_", "eq_"])
def test_in_place(name, narrow):
    def function(x, y):
        return getattr(x.clone(), name)(y)

    x = values(narrow, SIZE)
    for y in (values(torch.int64, SIZE), values(torch.float32), values(torch.int64), 1.23456789):
        compare(function, x, y, name != "pow_")


@pytest.mark.parametrize("narrow", NARROW, ids=str)
def test_more_than_two_operands(narrow):
    """The scale of a product is a parameter: it takes no part in type promotion, and is not rounded."""
    x, y, z = (values(narrow, SIZE) + shift for shift in (0, 0.25, 0.75))
    for function in (
        lambda x, y, z: torch.addcmul(x, y, z, value=1.2345),
        lambda x, y, z: torch.addcdiv(x, y, z, value=1.2345),
        lambda x, y, z: torch.lerp(x, y, 0.3456),
        lambda x, y, z: torch.clamp(x, 1.2345, 2.3456),
        lambda x, y, z: torch.clamp(x, min=y.min(), max=z.max()),
    ):
        expected, actual = function(x, y, z), function(*(t.to("neuron") for t in (x, y, z))).cpu()
        assert torch.equal(actual, expected)
