#include <nanobind/nanobind.h>

#include <array>
#include <string>
#include <utility>

#include "neuron/eager/recorder.h"
#include "neuron/runtime/allocator.h"
#include "torch_neuronx/csrc/python/bindings.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/memory_history.h"

namespace torch_neuronx {
namespace {

namespace nb = nanobind;
namespace runtime = neuron::runtime;

void check(int core) { check_device_index(static_cast<c10::DeviceIndex>(core)); }

// CUDA's flat names: "<statistic>.<pool>.<metric>".
void add_statistic(nb::dict& result, const char* name, const runtime::Stat (&stat)[3]) {
  constexpr std::array<const char*, 3> pools = {"all", "small_pool", "large_pool"};
  for (size_t i = 0; i < pools.size(); ++i) {
    const std::string prefix = std::string(name) + "." + pools[i] + ".";
    result[(prefix + "current").c_str()] = stat[i].current;
    result[(prefix + "peak").c_str()] = stat[i].peak;
    result[(prefix + "allocated").c_str()] = stat[i].allocated;
    result[(prefix + "freed").c_str()] = stat[i].freed;
  }
}

nb::dict memory_statistics(int core) {
  check(core);
  const runtime::MemoryStatistics s = runtime::memory_statistics(core);
  nb::dict result;
  add_statistic(result, "allocation", s.allocation);
  add_statistic(result, "segment", s.segment);
  add_statistic(result, "active", s.active);
  add_statistic(result, "inactive_split", s.inactive_split);
  add_statistic(result, "allocated_bytes", s.allocated_bytes);
  add_statistic(result, "reserved_bytes", s.reserved_bytes);
  add_statistic(result, "active_bytes", s.active_bytes);
  add_statistic(result, "inactive_split_bytes", s.inactive_split_bytes);
  add_statistic(result, "requested_bytes", s.requested_bytes);
  // The allocator has no separate class of oversize blocks.
  for (const char* name : {"oversize_allocations", "oversize_segments"}) {
    for (const char* metric : {"current", "peak", "allocated", "freed"}) {
      result[(std::string(name) + "." + metric).c_str()] = 0;
    }
  }
  result["num_alloc_retries"] = s.num_alloc_retries;
  result["num_ooms"] = s.num_ooms;
  result["num_sync_all_streams"] = s.num_sync_all_streams;
  result["num_device_alloc"] = s.num_device_alloc;
  result["num_device_free"] = s.num_device_free;
  result["max_split_size"] = -1;
  return result;
}

nb::list segments(int core) {
  nb::list result;
  for (const runtime::SegmentInfo& segment : runtime::memory_snapshot(core)) {
    nb::dict entry;
    nb::list blocks;
    size_t allocated = 0;
    size_t requested = 0;
    auto address = reinterpret_cast<uintptr_t>(segment.address);
    for (const runtime::SegmentInfo::BlockInfo& block : segment.blocks) {
      nb::dict item;
      item["address"] = reinterpret_cast<uintptr_t>(block.address);
      item["size"] = block.size;
      item["requested_size"] = block.requested;
      item["state"] = block.allocated ? "active_allocated" : "inactive";
      item["frames"] = nb::list();
      if (block.allocated) {
        allocated += block.size;
        requested += block.requested;
      }
      blocks.append(item);
    }
    entry["device"] = core;
    entry["address"] = address;
    entry["total_size"] = segment.size;
    entry["allocated_size"] = allocated;
    entry["active_size"] = allocated;
    entry["requested_size"] = requested;
    entry["stream"] = segment.stream;
    entry["segment_type"] = segment.large ? "large" : "small";
    entry["segment_pool_id"] = nb::make_tuple(0, 0);
    entry["is_expandable"] = false;
    entry["frames"] = nb::list();
    entry["blocks"] = blocks;
    result.append(entry);
  }
  return result;
}

// The dictionary torch's memory_viz reads.
nb::dict memory_snapshot() {
  nb::dict result;
  nb::list all_segments;
  nb::list traces;
  const int count = device_count();
  for (int core = 0; core < count; ++core) {
    if (device_used()) all_segments.extend(segments(core));
    traces.append(nb::list());
  }
  for (const MemoryEvent& event : memory_history()) {
    nb::dict entry;
    entry["action"] = nb::str(event.action.data(), event.action.size());
    entry[event.action == "oom" ? "device_free" : "addr"] = event.address;
    entry["size"] = event.size;
    entry["stream"] = event.stream;
    entry["time_us"] = event.microseconds;
    entry["compile_context"] = "N/A";
    entry["frames"] = nb::list();
    nb::cast<nb::list>(traces[event.core]).append(entry);
  }
  result["segments"] = all_segments;
  result["device_traces"] = traces;
  result["allocator_settings"] = nb::dict();
  result["external_annotations"] = nb::list();
  return result;
}

void empty_cache() {
  if (!device_used()) return;
  for (int core = 0; core < device_count(); ++core) {
    neuron::eager::synchronize_core(core, neuron::eager::FlushReason::Synchronize);
    runtime::empty_cache(core);
  }
}

}  // namespace

void bind_memory(nb::module_& module) {
  module.def("memory_statistics", &memory_statistics);
  module.def("memory_snapshot", &memory_snapshot);
  module.def("set_memory_history", &set_memory_history);
  module.def("memory_info", [](int core) {
    check(core);
    const auto [free, total] = runtime::memory_info(core);
    return nb::make_tuple(free, total);
  });
  module.def("set_memory_limit", [](int core, size_t bytes) {
    check(core);
    runtime::set_memory_limit(core, bytes);
  });
  module.def("reset_peak_statistics", [](int core) {
    check(core);
    runtime::reset_peak_statistics(core);
  });
  module.def("reset_accumulated_statistics", [](int core) {
    check(core);
    runtime::reset_accumulated_statistics(core);
  });
  module.def("empty_cache", &empty_cache, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace torch_neuronx
