"""Arguments for a pointwise overload, made from its schema: enough to call any row of ops/aten_ops.yaml on any device."""

from __future__ import annotations

import importlib.util
import math
import zlib
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]

NUMBERS = {
    "alpha": 2,
    "beta": 0.7,
    "eps": 1e-3,
    "exponent": 2,
    "lambd": 0.4,
    "max": 1.5,
    "max_val": 1.0,
    "min": -0.5,
    "min_val": -0.6,
    "negative_slope": 0.1,
    "scale": 1.25,
    "threshold": 0.3,
    "value": 0.5,
    "weight": 0.3,
}
UNIT_INTERVAL = ("logit", "erfinv", "asin", "acos", "atanh", "logit_backward")
POSITIVE = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "lgamma", "digamma", "acosh", "xlogy", "special_xlog1py")


def table() -> list[dict[str, str]]:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "ops" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.read_rows()


def overload(name: str) -> torch._ops.OpOverload:
    base, _, suffix = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), suffix or "default")


def values(shape: tuple[int, ...], dtype: torch.dtype, base: str, salt: str, integers_from: int = -5) -> torch.Tensor:
    generator = torch.Generator().manual_seed(zlib.crc32(f"{shape}{dtype}{base}{salt}".encode()))
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if not dtype.is_floating_point:
        low = 0 if dtype == torch.uint8 else integers_from
        return torch.randint(max(low, integers_from), 6, shape, generator=generator).to(dtype)
    numbers = torch.randn(shape, generator=generator, dtype=torch.float64)
    if base in UNIT_INTERVAL:
        numbers = numbers.sigmoid() * 0.98 + 0.01
    elif base in POSITIVE:
        numbers = numbers.abs() + (1.01 if base == "acosh" else 0.05)
    return numbers.to(dtype)


def arguments(op: torch._ops.OpOverload, shapes: list[tuple[int, ...]], dtype: torch.dtype) -> list[Any] | None:
    """Positional arguments on the CPU; None when the schema needs something this cannot make."""
    base = op._schema.name.removeprefix("aten::").rstrip("_")
    made: list[Any] = []
    tensors = 0
    for argument in op._schema.arguments:
        kind = str(argument.type)
        if argument.alias_info is not None and argument.alias_info.is_write and argument.kwarg_only:
            break
        if kind in ("Tensor", "Optional[Tensor]"):
            shape = shapes[min(tensors, len(shapes) - 1)]
            tensors += 1
            if argument.name == "buffer":  # what the forward pass saves: the device recomputes it
                made.append((-made[1].abs()).exp() if dtype.is_floating_point else made[1])
            elif argument.name in ("condition", "mask"):
                made.append(values(shape, torch.bool, base, argument.name))
            elif base == "masked_fill" and argument.name == "value":
                made.append(torch.tensor(1, dtype=dtype))
            elif "shift" in base and argument.name == "other":
                made.append(values(shape, dtype, base, argument.name, integers_from=0))
            elif base in ("div", "floor_divide", "remainder", "fmod") and not dtype.is_floating_point:
                made.append(
                    values(shape, dtype, base, argument.name, integers_from=1 if argument.name == "other" else -5)
                )
            else:
                made.append(values(shape, dtype, base, argument.name))
        elif kind in ("number", "Optional[number]", "float", "Optional[float]"):
            number: Any = NUMBERS.get(argument.name, 2 if argument.name in ("other", "self") else None)
            if number is None:
                number = argument.default_value if argument.has_default_value() else 1
            if not dtype.is_floating_point and isinstance(number, float) and kind in ("number", "Optional[number]"):
                number = max(1, math.ceil(number))
            made.append(number)
        elif kind == "str":
            made.append("none" if argument.name == "approximate" else argument.default_value)
        elif kind == "Optional[str]":
            made.append("floor")
        elif kind == "bool":
            made.append(False)
        elif kind == "int":
            made.append(1)
        else:
            return None
    return made


def on_device(value: Any) -> Any:
    return value.to("neuron") if isinstance(value, torch.Tensor) else value
