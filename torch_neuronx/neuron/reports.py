"""What the eager layer did: operators run, operators that fell back to the CPU, flushes, fusion, compiles."""

from __future__ import annotations

from typing import Any

from torch_neuronx import _C


def eager_report() -> dict[str, Any]:
    """Counters since the process began or ``reset_eager_report()``: commands recorded and dropped, regions run, how many
    commands were fused, compiles, and flushes by reason."""
    return _C.statistics()


def reset_eager_report() -> None:
    _C.reset_statistics()


def get_fallback_ops() -> list[str]:
    """Names of the operators that ran on the CPU because the device has no kernel, one entry per call."""
    return _C.fallback_operators()


def get_executed_ops() -> list[str]:
    """Names of the operators that ran on the device, one entry per call."""
    return _C.executed_operators()


def clear_op_tracking() -> None:
    """Forgets what both lists hold."""
    _C.clear_operator_tracking()
