"""The device module ``torch.neuron``: what ``torch.cuda`` is to CUDA, over the same C++ functions ``torch.accelerator``
uses, so that the two cannot disagree."""

from __future__ import annotations

from typing import Any

from torch_neuronx import amp
from torch_neuronx.neuron import _utils, memory, random, streams
from torch_neuronx.neuron.device import (
    NeuronDeviceProperties,
    _exchange_device,
    _is_compiled,
    _is_in_bad_fork,
    _lazy_init,
    _maybe_exchange_device,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_amp_supported_dtype,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_neuron_runtime_initialized,
    set_device,
    synchronize,
)
from torch_neuronx.neuron.memory import (
    empty_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from torch_neuronx.neuron.random import (
    _get_generator,
    _get_rng_state_offset,
    _set_rng_state_offset,
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_neuronx.neuron.reports import (
    clear_op_tracking,
    eager_report,
    get_executed_ops,
    get_fallback_ops,
    reset_eager_report,
)
from torch_neuronx.neuron.streams import (
    Event,
    Stream,
    StreamContext,
    _set_stream_by_id,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "Event",
    "NeuronDeviceProperties",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "clear_op_tracking",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "eager_report",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_executed_ops",
    "get_fallback_ops",
    "get_memory_info",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_neuron_runtime_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "random",
    "reset_accumulated_memory_stats",
    "reset_eager_report",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]


def __getattr__(name: str) -> Any:
    # Activation checkpointing asks this before it saves and restores the generators' states.
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module 'torch.neuron' has no attribute {name!r}")


# Names with an underscore that torch itself looks up here.
_TORCH_INTERNAL = (
    _utils,
    _exchange_device,
    _maybe_exchange_device,
    _is_compiled,
    _is_in_bad_fork,
    _lazy_init,
    _get_generator,
    _get_rng_state_offset,
    _set_rng_state_offset,
    _set_stream_by_id,
)
