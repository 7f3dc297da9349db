"""Device memory: the caching allocator's statistics, in CUDA's names, and its snapshots, in CUDA's format."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import Any

from torch_neuronx import _C
from torch_neuronx.neuron._utils import _get_device_index


def empty_cache() -> None:
    """Waits for the device and gives unused segments back."""
    _C.empty_cache()


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """Flat names such as ``allocated_bytes.all.peak``. Synchronise first: frees count when recorded, like CUDA's."""
    return OrderedDict(sorted(_C.memory_statistics(_get_device_index(device, optional=True)).items()))


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        level = nested
        for part in path:
            level = level.setdefault(part, {})
        level[last] = value
    return nested


def _statistic(name: str, device: Any) -> int:
    return memory_stats(device)[name]


def memory_allocated(device: Any = None) -> int:
    """Bytes of live tensors."""
    return _statistic("allocated_bytes.all.current", device)


def max_memory_allocated(device: Any = None) -> int:
    return _statistic("allocated_bytes.all.peak", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes of the segments taken from the device."""
    return _statistic("reserved_bytes.all.current", device)


def max_memory_reserved(device: Any = None) -> int:
    return _statistic("reserved_bytes.all.peak", device)


memory_cached = memory_reserved
max_memory_cached = max_memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    _C.reset_peak_statistics(_get_device_index(device, optional=True))


reset_max_memory_allocated = reset_peak_memory_stats
reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    _C.reset_accumulated_statistics(_get_device_index(device, optional=True))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of the logical core."""
    return _C.memory_info(_get_device_index(device, optional=True))


get_memory_info = mem_get_info


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limits the device's memory to a part of what it has now."""
    if not 0.0 < fraction <= 1.0:
        raise ValueError(f"fraction must be in (0, 1], got {fraction}")
    index = _get_device_index(device, optional=True)
    _, total = _C.memory_info(index)
    _C.set_memory_limit(index, int(total * fraction))


def _format_bytes(count: int) -> str:
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024 or unit == "GiB":
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


_SUMMARY_ROWS = (
    ("allocated_bytes", "Allocated memory", True),
    ("active_bytes", "Active memory", True),
    ("requested_bytes", "Requested memory", True),
    ("reserved_bytes", "Reserved memory", True),
    ("inactive_split_bytes", "Non-releasable memory", True),
    ("allocation", "Allocations", False),
    ("active", "Active blocks", False),
    ("segment", "Segments", False),
    ("inactive_split", "Non-releasable blocks", False),
)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of the allocator's statistics."""
    index = _get_device_index(device, optional=True)
    statistics = memory_stats(index)
    pools = (
        [("all", "")] if abbreviated else [("all", ""), ("small_pool", "  small pool"), ("large_pool", "  large pool")]
    )
    width = 80
    lines = [
        "=" * width,
        f"  neuron memory summary, device neuron:{index}",
        f"  OOMs: {statistics['num_ooms']}    retries: {statistics['num_alloc_retries']}",
        "=" * width,
        f"  {'Metric':<22} {'Current':>13} {'Peak':>13} {'Total alloc':>13} {'Total freed':>13}",
    ]
    for key, title, is_bytes in _SUMMARY_ROWS:
        lines.append("-" * width)
        for pool, label in pools:
            cells = []
            for metric in ("current", "peak", "allocated", "freed"):
                value = statistics[f"{key}.{pool}.{metric}"]
                cells.append(f"{_format_bytes(value) if is_bytes else value:>13}")
            lines.append(f"  {label or title:<22} " + " ".join(cells))
    lines.append("=" * width)
    return "\n".join(lines) + "\n"


def memory_snapshot() -> list[dict[str, Any]]:
    """The segments of all devices with their blocks."""
    return _C.memory_snapshot()["segments"]


def _record_memory_history(
    enabled: str | None = "all", context: Any = None, stacks: str = "all", max_entries: int = 2**63 - 1, **_: Any
) -> None:
    """Keeps a history of allocations for ``_snapshot``; ``enabled=None`` stops and forgets it. Python frames are not kept."""
    if enabled not in (None, "state", "all"):
        raise ValueError(f"enabled must be None, 'state' or 'all', got {enabled!r}")
    _C.set_memory_history(0 if enabled is None else max_entries)


def _snapshot(device: Any = None) -> dict[str, Any]:
    """Segments and the recorded history, in the format torch's memory_viz reads."""
    return _C.memory_snapshot()


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)
