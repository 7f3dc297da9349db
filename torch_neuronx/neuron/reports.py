"""What the eager layer did: operators run, operators that fell back to the CPU, flushes, fusion, compiles."""

from __future__ import annotations

from typing import Any

from torch_neuronx import _C


def eager_report() -> dict[str, Any]:
    """What the eager layer did since the process began or ``reset_eager_report()``.

    - ``commands``: operations handed to the device; of them ``region_commands`` can be fused, ``kernel_commands`` are
      calls of library kernels, and ``dropped_commands`` were not run because nothing could see their results;
    - ``regions``: loops that were planned, ``regions_run``: loops that ran, ``fused_commands``: region commands that
      shared one with another, ``fused_share``: their part of all region commands, from 0 to 1;
    - ``plan_hits``: windows that were planned before and ran from memory;
    - ``compiled_kernels``, ``compile_seconds``: compiles of this process, in the background too; ``disk_hits``: kernels
      taken from the cache on disk instead;
    - ``flush_reasons``: why recorded operations had to run, with how often (``host_read``: a value was asked for;
      ``window_full``: enough had been recorded; …); ``flushes``: the same with the reasons that did not occur.
    """
    report: dict[str, Any] = _C.statistics()
    report["flush_reasons"] = {reason: count for reason, count in report["flushes"].items() if count}
    report["fused_share"] = report["fused_commands"] / max(report["region_commands"], 1)
    return report


def reset_eager_report() -> None:
    """Starts the counters of ``eager_report()`` anew."""
    _C.reset_statistics()


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
