"""The names of ``torch_neuronx`` itself: those of ``torch.neuron`` that scripts use through the package, and extras."""

from __future__ import annotations

from pathlib import Path

from torch_neuronx.neuron import (
    EagerReport,
    Event,
    NeuronGraph,
    Stream,
    clear_op_tracking,
    current_device,
    current_stream,
    default_stream,
    device_count,
    eager_report,
    empty_cache,
    fallback_report,
    get_executed_ops,
    get_fallback_ops,
    graph,
    graph_pool_handle,
    is_available,
    is_neuron_runtime_initialized,
    kernel_times,
    make_graphed_callables,
    manual_seed,
    manual_seed_all,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_eager_report,
    reset_peak_memory_stats,
    set_device,
    set_stream,
    stream,
    synchronize,
)


def get_include() -> str:
    """Directory of the headers for foreign kernels: ``#include "neuron/foreign.h"``."""
    return str(Path(__file__).parent / "include")


def get_library_dir() -> str:
    """Directory of libneuron.so, which has the functions of ``neuron/foreign.h``: ``-L<dir> -lneuron``."""
    return str(Path(__file__).parent / "lib")


__all__ = [
    "EagerReport",
    "Event",
    "NeuronGraph",
    "Stream",
    "clear_op_tracking",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "eager_report",
    "empty_cache",
    "fallback_report",
    "get_executed_ops",
    "get_fallback_ops",
    "get_include",
    "get_library_dir",
    "graph",
    "graph_pool_handle",
    "is_available",
    "is_neuron_runtime_initialized",
    "kernel_times",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_eager_report",
    "reset_peak_memory_stats",
    "set_device",
    "set_stream",
    "stream",
    "synchronize",
]
