"""What the eager layer did: operators run, operators that fell back to the CPU, flushes, fusion, compiles."""

from __future__ import annotations

from typing import Any

from torch_neuronx import _C
from torch_neuronx.neuron.device import is_initialized, synchronize


class EagerReport(dict[str, Any]):
    """What ``eager_report()`` found: a dictionary whose text is made for reading."""

    def __str__(self) -> str:
        return "\n".join(_report_lines(self))


def eager_report(as_dict: bool = False) -> dict[str, Any]:
    """What the eager layer did since the process began or ``reset_eager_report()``; ``print()`` shows it as text.

    Reads what has run: synchronize first to see everything that was recorded. ``as_dict``: a plain dictionary.

    - ``commands``: operations handed to the device; of them ``region_commands`` can be fused, ``kernel_commands`` are
      calls of library kernels, and ``dropped_commands`` were not run because nothing could see their results;
    - ``regions``: loops that were planned, ``regions_run``: loops that ran, ``fused_commands``: region commands that
      shared one with another, ``fused_share``: their part of all region commands, from 0 to 1;
    - ``not_fused``: why a region command ran alone, with how often: ``nothing_before`` (first of its kind in a window,
      and nothing later joined it), ``library_kernel`` (it depends on one), ``different_space`` (another number of
      elements), ``reduction_axis``, ``column_reduction``, ``hazard`` (the same memory in another layout), ``region_full``,
      ``fusion_off``; ``seen_once`` and ``awaiting_compile``: commands that ran one by one because their fused kernel was
      not worth compiling yet, or was being compiled;
    - ``plan_hits``: windows that were planned before and ran from memory, ``plan_misses``: windows that had to be planned;
    - ``compiled_kernels``, ``compile_seconds``: compiles of this process, in the background too, ``pending_compiles``: of
      now; ``disk_hits``: kernels taken from the cache on disk instead;
    - ``flush_reasons``: why recorded operations had to run, with how often (``host_read``: a value was asked for;
      ``window_full``: enough had been recorded; ...); ``flushes``: the same with the reasons that did not occur;
    - ``fallbacks``: operators that ran on the CPU (``fallback_report()``);
    - ``kernels``: while ``kernel_times()`` is on, per kernel, the slowest first: its operators (``name``), whether it is a
      ``library`` kernel, ``runs``, ``commands``, ``seconds``, ``bytes`` it read and wrote, and ``unfused_bytes`` its
      commands would have moved one by one; ``moved_bytes`` and ``unfused_bytes`` are the sums, ``needed_bytes`` what had to
      be moved had each window been a single kernel.
    """
    report: dict[str, Any] = {**_C.statistics(), **_C.profile()}
    report["flush_reasons"] = {reason: count for reason, count in report["flushes"].items() if count}
    report["fused_share"] = report["fused_commands"] / max(report["region_commands"], 1)
    report["moved_bytes"] = sum(kernel["bytes"] for kernel in report["kernels"])
    report["unfused_bytes"] = sum(kernel["unfused_bytes"] for kernel in report["kernels"])
    report["fallbacks"] = fallback_report()
    return report if as_dict else EagerReport(report)


def reset_eager_report() -> None:
    """Starts the counters and kernel times of ``eager_report()`` anew. ``clear_op_tracking()`` forgets the fallbacks."""
    _C.reset_statistics()
    _C.reset_profile()


class kernel_times:  # noqa: N801  (used like torch.no_grad)
    """Measures every kernel: ``with torch_neuronx.kernel_times(): ...``, or ``kernel_times.enable()`` and ``disable()``.

    What was recorded before the block is not measured, and the block ends by waiting for the device. Costs about a
    microsecond per kernel while it is on, nothing otherwise.
    """

    @staticmethod
    def enable() -> None:
        _C.set_profiling(True)

    @staticmethod
    def disable() -> None:
        _C.set_profiling(False)

    def __enter__(self) -> None:
        _synchronize()
        self._previous = _C.profiling()
        _C.set_profiling(True)

    def __exit__(self, *exception: object) -> None:
        try:
            _synchronize()
        finally:
            _C.set_profiling(self._previous)


def _synchronize() -> None:
    if is_initialized():
        synchronize()


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def _counts(counts: dict[str, int]) -> str:
    present = sorted(((count, name) for name, count in counts.items() if count), reverse=True)
    return ", ".join(f"{name} {count}" for count, name in present) or "none"


def _report_lines(report: dict[str, Any]) -> list[str]:
    waiting = {name: report[name] for name in ("seen_once", "awaiting_compile")}
    lines = [
        f"recorded    {report['commands']} operations: {report['region_commands']} that can be fused, "
        f"{report['kernel_commands']} library kernels; {report['dropped_commands']} not run, as nothing saw their results",
        f"fused       {report['fused_commands']} ({100 * report['fused_share']:.0f} %), {report['regions_run']} loops ran",
        f"not fused   {_counts({**report['not_fused'], **waiting})}",
        f"plans       {report['plan_hits']} windows ran from memory, {report['plan_misses']} were planned",
        f"compiles    {report['compiled_kernels']} in {1000 * report['compile_seconds']:.0f} ms, "
        f"{report['disk_hits']} from the cache on disk, {report['pending_compiles']} pending",
        f"flushes     {_counts(report['flushes'])}",
        f"fallbacks   {_counts({name: row['calls'] for name, row in report['fallbacks'].items()})}",
    ]
    if not report["kernels"]:
        return [*lines, "kernels     not measured: with torch_neuronx.kernel_times(): ..."]
    lines += [
        f"memory      {_bytes(report['moved_bytes'])} moved, {_bytes(report['unfused_bytes'])} without fusion, "
        f"{_bytes(report['needed_bytes'])} needed if each window were one kernel",
        "",
        f"{'ms':>10} {'runs':>8} {'GB/s':>7} {'moved':>11} {'unfused':>11}  kernel",
    ]
    for kernel in report["kernels"]:
        rate = kernel["bytes"] / kernel["seconds"] * 1e-9 if kernel["seconds"] else 0.0
        name = kernel["name"] if len(kernel["name"]) <= 60 else kernel["name"][:57] + "..."
        lines.append(
            f"{1000 * kernel['seconds']:>10.3f} {kernel['runs']:>8} {rate:>7.1f} {_bytes(kernel['bytes']):>11} "
            f"{_bytes(kernel['unfused_bytes']):>11}  {name}{' (library)' if kernel['library'] else ''}"
        )
    return lines


def get_fallback_ops() -> list[str]:
    """Names of the operators that ran on the CPU because the device has no kernel for them, sorted. How often, and how many
    bytes that moved: ``fallback_report()``."""
    return _C.fallback_operators()


def get_executed_ops() -> list[str]:
    """Names of the operators that ran on the device, sorted."""
    return _C.executed_operators()


def fallback_report() -> dict[str, dict[str, int]]:
    """Per operator that ran on the CPU: ``calls``, and ``bytes`` copied between the device and the host, both ways."""
    return {name: {"calls": calls, "bytes": moved} for name, calls, moved in _C.fallback_counts()}


def clear_op_tracking() -> None:
    """Forgets what both lists hold."""
    _C.clear_operator_tracking()
