"""Measures the neuron device against CPU eager: in one process, pinned to one core, in turns.

Each case is set up on both devices with the same numbers. A measurement runs it `count` times, keeps every result until the
device has finished, and reads a checksum afterwards, which must agree. Two times are taken, both of the CPU clock, so that
other work on the machine does not count: `host`, of the calling thread alone until the last call has returned, and
`total`, of all threads of the process until the results are there. The best of several rounds counts.
"""

from __future__ import annotations

import gc
import itertools
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

Step = Callable[[], "Tensor | Sequence[Tensor]"]


@dataclass
class Case:
    """`setup(device)` returns a step; a step returns what it computed. `count` steps make a measurement."""

    name: str
    setup: Callable[[str], Step]
    count: int = 1
    group: str = ""
    tolerance: float = 1e-3  # of the checksum, relative; infinity for a training step, whose numbers drift apart
    warm_up: int = 6
    bytes: int = 0  # that a step must read and write at least; 0: not said
    # What a step must compute at least, by its kind: multiply-adds of a dtype ("f32"), exponentials ("exp").
    work: dict[str, float] = field(default_factory=dict)


def in_turn(setup: Callable[[str], Step], count: int) -> Callable[[str], Step]:
    """As many operands as steps: of equal operations on one tensor the device would compute only the first."""

    def setup_all(device: str) -> Step:
        steps = itertools.cycle([setup(device) for _ in range(count)])
        return lambda: next(steps)()

    return setup_all


@dataclass
class Times:
    host: float = math.inf  # seconds per step
    total: float = math.inf

    def take(self, host: float, total: float) -> None:
        self.host, self.total = min(self.host, host), min(self.total, total)


@dataclass
class Row:
    case: Case
    times: dict[str, Times] = field(default_factory=dict)
    checksums: dict[str, float] = field(default_factory=dict)

    def ratio(self, what: str) -> float:
        """CPU eager's time over neuron's: above 1 neuron is faster."""
        return getattr(self.times["cpu"], what) / max(getattr(self.times["neuron"], what), 1e-12)


def pin_to_one_core() -> int:
    """Pins the whole process, threads started later included; returns the core."""
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    return core


def synchronize(device: str) -> None:
    if device == "neuron":
        torch.neuron.synchronize()


def checksum(results: list) -> float:
    last = results[-1]
    tensors = [last] if isinstance(last, Tensor) else list(last)
    return sum(tensor.detach().double().abs().mean().item() for tensor in tensors)


def measure(device: str, step: Step, count: int, times: Times) -> float:
    kept = []
    synchronize(device)
    gc.disable()
    host, total = time.thread_time(), time.process_time()
    for _ in range(count):
        kept.append(step())
    host_end = time.thread_time()
    synchronize(device)
    total_end = time.process_time()
    gc.enable()
    times.take((host_end - host) / count, (total_end - total) / count)
    return checksum(kept)


def run_case(case: Case, rounds: int, devices: Sequence[str] = ("cpu", "neuron")) -> Row:
    row = Row(case)
    steps = {}
    for device in devices:
        torch.manual_seed(0)
        steps[device] = case.setup(device)
        row.times[device] = Times()
        scratch = Times()
        for _ in range(max(case.warm_up // min(case.count, 3), 2)):  # learn the sequence, compile, fill the caches
            measure(device, steps[device], min(case.count, 3), scratch)
        measure(device, steps[device], case.count, scratch)
        if device == "neuron":
            from torch_neuronx.testing import wait_for_compiles

            wait_for_compiles()
            measure(device, steps[device], case.count, scratch)
    for _ in range(rounds):
        for device in devices:
            row.checksums[device] = measure(device, steps[device], case.count, row.times[device])
    if len(devices) > 1:
        expected, actual = row.checksums["cpu"], row.checksums["neuron"]
        if not abs(actual - expected) <= case.tolerance * max(abs(expected), 1e-6) and math.isfinite(case.tolerance):
            raise AssertionError(f"{case.name}: checksum {actual} on neuron, {expected} on the CPU")
    return row


def duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def verdict(ratio: float) -> str:
    """Differences below five per cent are noise."""
    return "=" if abs(math.log(ratio)) < 0.05 else ("faster" if ratio > 1 else "slower")


def copy_rates(rows: list[Row]) -> dict[str, float]:
    """Bytes per second of the device's own copy, by the end of the case's name: size and dtype."""
    copies = [row for row in rows if row.case.name.startswith("copy, ")]
    return {row.case.name[len("copy") :]: row.case.bytes / row.times["neuron"].total for row in copies}


def share_of_copy(row: Row, rates: dict[str, float]) -> str:
    """The rate at which a case moves the bytes it must, of the rate of a copy of the same size."""
    for end, rate in rates.items():
        if row.case.bytes and row.case.name.endswith(end):
            return f"{row.case.bytes / row.times['neuron'].total / rate:.0%}"
    return ""


def share_of_small(row: Row, rows: list[Row]) -> str:
    """The rate of a case of 16 MB, of its own rate with 256 KB: near 100 % its arithmetic is the limit, not memory."""
    name = row.case.name.replace("16 MB", "256 KB")
    for small in rows:
        if name != row.case.name and small.case.name == name and row.case.bytes and small.case.bytes:
            seconds = small.times["neuron"].total * row.case.bytes / small.case.bytes
            return f"{seconds / row.times['neuron'].total:.0%}"
    return ""


def work_rates(rows: list[Row]) -> dict[str, float]:
    """Work per second of the device's own products and exponentials, which do nothing else."""
    rates = {}
    for row in rows:
        if row.case.name.startswith("arithmetic, "):
            ((kind, amount),) = row.case.work.items()
            rates[kind] = amount / row.times["neuron"].total
    return rates


def share_of_arithmetic(row: Row, rates: dict[str, float]) -> str:
    """The time that a case's arithmetic takes at the device's rates, of its own time."""
    if not row.case.work or not rates.keys() >= row.case.work.keys():
        return ""
    return f"{sum(amount / rates[kind] for kind, amount in row.case.work.items()) / row.times['neuron'].total:.0%}"


def table(rows: list[Row]) -> str:
    lines = [
        "| case | neuron host | cpu host | ratio | neuron total | cpu total | ratio | | of copy | of 256 KB | of arithmetic |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    copies, work = copy_rates(rows), work_rates(rows)
    for row in rows:
        neuron, cpu = row.times["neuron"], row.times["cpu"]
        lines.append(
            f"| {row.case.name} | {duration(neuron.host)} | {duration(cpu.host)} | {row.ratio('host'):.2f} | "
            f"{duration(neuron.total)} | {duration(cpu.total)} | {row.ratio('total'):.2f} | {verdict(row.ratio('total'))} | "
            f"{share_of_copy(row, copies)} | {share_of_small(row, rows)} | {share_of_arithmetic(row, work)} |"
        )
    return "\n".join(lines)
