"""Runs one program in every mode of the device and compares bits."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from fuzz.generate import Program, run_on_cpu
from fuzz.namespace import Machine, execute, same_bits
from torch_neuronx import _C

ROUNDS = 3  # a sequence that comes back is fused from its second or third time on


@dataclass
class Outcome:
    """What a program left behind: tensors still alive and everything the host read, or the exception."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    reads: list = field(default_factory=list)
    error: str = ""
    fused: int = (
        0  # commands of the program that ran in a region with others, of those that can (reading the results apart)
    )
    fusible: int = 0


@dataclass
class Variant:
    name: str
    mode: str = "adaptive"
    threads: int = 2
    interpret: bool = False
    fusion: bool = True
    cpu: bool = False


REFERENCE = Variant("immediate", mode="immediate", threads=1)
ADAPTIVE = [Variant(f"adaptive, round {i + 1}", threads=2 if i == 1 else 1) for i in range(ROUNDS)]
OTHERS = [
    Variant("blocking", mode="blocking"),
    Variant("immediate with two threads", mode="immediate"),
    Variant("fusion off", fusion=False),
]
INTERPRETER = Variant("interpreter", mode="immediate", interpret=True)
CPU = Variant("torch on the CPU", cpu=True)


@contextlib.contextmanager
def settings(variant: Variant) -> Iterator[None]:
    previous, threads = _C.eager_mode(), torch.get_num_threads()
    _C.set_eager_mode(variant.mode)
    _C.set_synchronous_compile(True)
    _C.set_fusion(variant.fusion)
    _C.set_interpret(variant.interpret)
    torch.set_num_threads(variant.threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        _C.set_interpret(False)
        _C.set_fusion(True)
        _C.set_synchronous_compile(False)
        _C.set_eager_mode(previous)


def run(program: Program, variant: Variant | None, pointers: bool = True) -> Outcome:
    """None: with the settings of the process."""
    if variant and variant.cpu:
        machine = run_on_cpu(program)
        return Outcome(machine.tensors(), machine.reads)
    machine = Machine("neuron", pointers)
    statement = ""

    def watch(text: str) -> None:
        nonlocal statement
        statement = text

    with settings(variant) if variant else contextlib.nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _C.reset_statistics()
            execute(program.statements, machine, watch)
            statement = "waiting for the results"
            machine.synchronize()
            counted = _C.statistics()
            tensors = {name: tensor.cpu() for name, tensor in machine.tensors().items()}
            return Outcome(tensors, machine.reads, fused=counted["fused_commands"], fusible=counted["region_commands"])
        except Exception as error:
            return Outcome(
                error=f"{type(error).__name__} at `{statement}`: {str(error).splitlines()[0] if str(error) else ''}"
            )


def same_read(a: object, b: object, signed_zeros: bool) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return same_bits(a, b, signed_zeros)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same_read(x, y, signed_zeros) for x, y in zip(a, b, strict=True))
    if (
        isinstance(a, bytes)
        and isinstance(b, bytes)
        and not signed_zeros
        and {a.strip(b"\0"), b.strip(b"\0")} == {b"", b"\x80"}
    ):
        return True
    return (
        a == b
        or (a != a and b != b)
        or (isinstance(a, bytes) and isinstance(b, bytes) and len(a) == len(b) and is_nan(a, b))
    )


def is_nan(a: bytes, b: bytes) -> bool:
    """Bytes of one element read through a pointer: any NaN of the dtypes that long equals any other."""

    def nan(text: bytes) -> bool:
        dtypes = {2: (torch.float16, torch.bfloat16), 4: (torch.float32,), 8: (torch.float64,)}.get(len(text), ())
        return any(bool(torch.frombuffer(bytearray(text), dtype=dtype).isnan()) for dtype in dtypes)

    return nan(a) and nan(b)


def digest(outcome: Outcome) -> str:
    """Equal for outcomes without a difference; compares runs of different processes."""
    state = hashlib.sha256(outcome.error.encode())

    def take(value: object) -> None:
        if isinstance(value, Tensor):
            state.update(f"{tuple(value.shape)} {value.dtype}".encode())
            if value.is_floating_point():
                state.update(value.isnan().numpy().tobytes())
                integers = {8: torch.int64, 4: torch.int32, 2: torch.int16}[value.element_size()]
                value = value.masked_fill(value.isnan(), 1).view(integers)
            state.update(value.numpy().tobytes())
        else:
            state.update(repr(value).encode())

    for name in sorted(outcome.tensors):
        state.update(name.encode())
        take(outcome.tensors[name])
    for value in outcome.reads:
        take(value)
    return state.hexdigest()


def show(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype} {tensor.flatten()[:4].tolist()}"


def difference(expected: Outcome, actual: Outcome, signed_zeros: bool = True) -> str | None:
    if expected.error or actual.error:
        return f"raised: {expected.error or actual.error}" if expected.error != actual.error or expected.error else None
    if expected.tensors.keys() != actual.tensors.keys():
        return f"other tensors alive: {sorted(expected.tensors)} against {sorted(actual.tensors)}"
    for name, tensor in expected.tensors.items():
        other = actual.tensors[name]
        if not same_bits(tensor, other, signed_zeros):
            if tensor.shape == other.shape and tensor.dtype == other.dtype:
                differs = (
                    ~((tensor == other) | (tensor.isnan() & other.isnan()))
                    if tensor.is_floating_point()
                    else tensor != other
                )
                where = differs.flatten().nonzero()[:3].flatten()
                return (
                    f"{name} {tuple(tensor.shape)} {tensor.dtype} differs in {int(differs.sum())} elements, first at "
                    f"{where.tolist()}: expected {tensor.flatten()[where].tolist()}, got {other.flatten()[where].tolist()}"
                )
            return f"{name}: expected {show(tensor)}, got {show(other)}"
    for index, (a, b) in enumerate(zip(expected.reads, actual.reads, strict=True)):
        if not same_read(a, b, signed_zeros):
            return f"host read {index}: expected {a!r}, got {b!r}"
    return None


@dataclass
class Verdict:
    fault: str | None = None
    variant: str = ""
    fused: int = 0  # commands of round three that ran in a region with others
    fusible: int = 0


def variants(program: Program, thorough: bool) -> list[Variant]:
    """Round three must come last of the adaptive ones. One of the others is taken in turn unless `thorough`."""
    others = [*OTHERS, INTERPRETER] if program.exact else OTHERS
    if not thorough:
        others = [others[program.seed // 3 % len(others)]]
    return ([CPU] if program.exact else []) + others + ADAPTIVE


def check(program: Program, thorough: bool = False) -> Verdict:
    expected = run(program, REFERENCE)
    if expected.error:
        return Verdict(fault=f"raised: {expected.error}", variant=REFERENCE.name)
    verdict = Verdict()
    for variant in variants(program, thorough):
        actual = run(program, variant)
        # Which zero the larger of 0 and -0 is, PyTorch's CPU kernels decide by the position in a vector.
        found = difference(expected, actual, signed_zeros=not variant.cpu)
        if found:
            return Verdict(fault=found, variant=f"{variant.name} against {REFERENCE.name}")
        if variant is ADAPTIVE[-1]:
            verdict.fused, verdict.fusible = actual.fused, actual.fusible
    return verdict
