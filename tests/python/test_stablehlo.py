"""The text that the IR prints means the same to StableHLO's own tools.

Each program of tests/programs (one for every operation and function; tests/core/ir_text_test.cpp keeps them equal to
what the printer writes) is parsed and verified by jaxlib, and its results from StableHLO's reference interpreter and
from XLA's CPU compiler are compared with those of our interpreter, which `neuron-opt --interpret` runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jaxlib")

import jax  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from jax._src.interpreters import mlir as jax_mlir  # noqa: E402  (the context with every dialect has no public name)
from jaxlib import xla_client  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(path.stem for path in (ROOT / "tests" / "programs").glob("*.mlir"))

DTYPES: dict[str, Any] = {
    "i1": np.dtype(bool),
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "complex<f32>": np.dtype(np.complex64),
    "complex<f64>": np.dtype(np.complex128),
}
TENSOR = re.compile(r"tensor<((?:\d+x)*)((?:complex<f\d+>|\w+))>")

# Relative tolerance by dtype: a few units in the last place, for what neither side rounds exactly.
TOLERANCE = {"f8E4M3FN": 0.07, "f8E5M2": 0.13, "bf16": 2**-7, "f16": 2**-9, "f32": 3e-6, "f64": 1e-13}
# What is printed for these is a decomposition of less accuracy than our own function (neuron/ir/decompositions.h).
LOOSE = {"functions_f32": 4e-5, "functions_f64": 1e-11, "functions_c64": 2e-5}
# Sums in another order.
SUMS = {"reduce": 1e-5, "reduce_window": 1e-5, "convolution": 1e-5, "dot_f32": 1e-5, "dot_c64": 1e-5}


def find_neuron_opt() -> Path:
    if "NEURON_OPT" in os.environ:
        return Path(os.environ["NEURON_OPT"])
    found = sorted((ROOT / "build").glob("*/bin/neuron-opt"), key=lambda path: path.stat().st_mtime)
    assert found, "neuron-opt is not built: run `make build`, or set NEURON_OPT to its path"
    return found[-1]


def tensor_type(text: str) -> tuple[Any, tuple[int, ...]]:
    match = TENSOR.fullmatch(text.strip())
    assert match, text
    return DTYPES[match[2]], tuple(int(size) for size in match[1].split("x")[:-1])


def type_name(array: Any) -> str:
    name = next(name for name, dtype in DTYPES.items() if dtype == array.dtype)
    return f"tensor<{''.join(f'{size}x' for size in array.shape)}{name}>"


def make_array(dtype: Any, shape: tuple[int, ...], random: Any, program: str) -> Any:
    count = int(np.prod(shape))
    if dtype == DTYPES["i1"]:
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        if program in ("gather", "scatter", "dynamic_slices"):
            return random.integers(0, 5, shape).astype(dtype)
        low = 0 if dtype.kind == "u" or program.startswith("convert") else -60
        values = random.integers(low, 100, shape)
        # Division by zero is defined here but by no other.
        return np.where(values == 0, 7, values).astype(dtype)
    if dtype.kind == "c":
        return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)
    values = random.normal(size=count) * 2
    if program.startswith(("unary", "functions")):
        values[:9] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5]
    if program.startswith("binary"):
        values[:6] = random.permutation([0.0, np.inf, -np.inf, np.nan, 1.0, 2.0])
    if program.startswith("convert"):
        # Inside the range of every integer: what lies outside is implementation-defined.
        values = np.abs(values) * 10
    return values.reshape(shape).astype(dtype)


def arguments_of(text: str, program: str) -> list[Any]:
    random = np.random.default_rng(zlib.crc32(program.encode()))
    signature = re.search(r"func\.func public @main\((.*?)\) -> ", text)
    assert signature, "no @main"
    types = [tensor_type(match[0]) for match in TENSOR.finditer(signature[1])]
    return [make_array(dtype, shape, random, program) for dtype, shape in types]


def literal(array: Any) -> str:
    """As MLIR text. Bytes, except for i1, whose bytes would be packed."""
    if array.dtype == DTYPES["i1"]:
        return f"dense<{str(array.tolist()).lower()}> : {type_name(array)}"
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"> : {type_name(array)}'


def parse_literal(text: str, packed: bool) -> Any:
    body, _, name = text.rpartition(" : ")
    dtype, shape = tensor_type(name)
    body = re.search(r"dense<(.*)>", body, re.DOTALL)[1].strip()
    count = int(np.prod(shape))
    if body.startswith('"0x'):
        data = bytes.fromhex(body[3:-1])
        if dtype == DTYPES["i1"] and packed:
            return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:count].astype(bool).reshape(shape)
        flat = np.frombuffer(data, dtype)
    else:
        words = re.findall(r"0x[0-9A-F]+|true|false|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?", body)
        flat = np.array([parse_number(word, dtype) for word in words])
        if dtype.kind == "c":
            flat = flat[0::2] + 1j * flat[1::2]
        flat = flat.astype(dtype)
    return np.broadcast_to(flat, count).reshape(shape) if flat.size <= 1 else flat.reshape(shape)


def parse_number(word: str, dtype: Any) -> Any:
    if word in ("true", "false"):
        return word == "true"
    part = np.dtype(f"float{dtype.itemsize * 4}") if dtype.kind == "c" else dtype
    if word.startswith("0x"):
        return np.frombuffer(int(word, 16).to_bytes(part.itemsize, "little"), part)[0]
    if dtype.kind in "iu":
        return int(word)
    return float(word)


def run_ours(path: Path, arguments: list[Any], tmp_path: Path) -> list[Any]:
    file = tmp_path / "arguments.txt"
    file.write_text("".join(literal(argument) + "\n" for argument in arguments))
    command = [str(find_neuron_opt()), "--interpret", "--hexadecimal", f"--arguments={file}", str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [parse_literal(line, packed=False) for line in output.splitlines()]


@pytest.fixture
def context() -> Iterator[Any]:
    created = jax_mlir.make_ir_context()
    stablehlo.register_interpreter_dialect(created)
    with created:
        yield created


def tensor_types(text: str) -> list[str]:
    """The tensor types in a list of them."""
    return re.findall(r"tensor<(?:[^<>]|<[^<>]*>)*>", text)


def closed_program(text: str, arguments: list[Any]) -> str:
    """The program with its arguments as constants and complex results as two real ones: jaxlib passes no complex ones."""
    before, after = text.rsplit("func.func public @main(", 1)
    _, after = after.split(") -> (", 1)
    types, body = after.split(") {\n", 1)
    operations, end = body.rsplit("    return ", 1)
    names = end.split(" : ", 1)[0].split(", ")
    lines = [f"    %arg{i} = stablehlo.constant {literal(argument)}" for i, argument in enumerate(arguments)]
    lines.append(operations.rstrip("\n"))
    values, value_types = [], []
    for i, (name, type_) in enumerate(zip(names, tensor_types(types), strict=True)):
        if "complex" not in type_:
            values.append(name)
            value_types.append(type_)
            continue
        real_type = re.sub(r"complex<(f\d+)>", r"\1", type_)
        for part in ("real", "imag"):
            lines.append(f"    %{part}{i} = stablehlo.{part} {name} : ({type_}) -> {real_type}")
            values.append(f"%{part}{i}")
            value_types.append(real_type)
    listed = ", ".join(value_types)
    lines.append(f"    return {', '.join(values)} : {listed}\n  }}\n}}\n")
    return f"{before}func.func public @main() -> ({listed}) {{\n" + "\n".join(lines)


def run_interpreter(text: str, arguments: list[Any]) -> list[Any]:
    found = stablehlo.eval_module(ir.Module.parse(closed_program(text, arguments)), [])
    parts = [parse_literal(re.search(r"dense<.*>", str(value), re.DOTALL)[0], packed=True) for value in found]
    results = []
    for type_ in tensor_types(text.rsplit("@main(", 1)[1].split(") -> (", 1)[1].split(") {\n", 1)[0]):
        part = parts.pop(0)
        dtype = tensor_type(type_)[0]
        results.append((part + 1j * parts.pop(0)).astype(dtype) if dtype.kind == "c" else part)
    return results


def run_xla(text: str, arguments: list[Any]) -> list[Any]:
    device = jax.devices("cpu")[0]
    with jax.enable_x64(True):
        executable = device.client.compile_and_load(text, xla_client.DeviceList((device,)), xla_client.CompileOptions())
        results = executable.execute_sharded([jax.device_put(argument, device) for argument in arguments])
        return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


def expect_close(got: Any, want: Any, program: str, what: str) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape, what
    if want.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want, what)
        return
    name = next(name for name, dtype in DTYPES.items() if dtype == want.dtype)
    tolerance = TOLERANCE.get({"complex<f32>": "f32", "complex<f64>": "f64"}.get(name, name))
    tolerance = max(tolerance, LOOSE.get(program, 0), SUMS.get(program, 0))
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=tolerance, atol=tolerance, err_msg=what)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: str, context: Any, tmp_path: Path) -> None:
    path = ROOT / "tests" / "programs" / f"{program}.mlir"
    text = path.read_text()
    assert ir.Module.parse(text).operation.verify()
    arguments = arguments_of(text, program)
    ours = run_ours(path, arguments, tmp_path)
    for name, run in (("StableHLO interpreter", run_interpreter), ("XLA", run_xla)):
        theirs = run(text, arguments)
        assert len(theirs) == len(ours)
        for i, (got, want) in enumerate(zip(theirs, ours, strict=True)):
            expect_close(got, want, program, f"{name}, result {i}")
