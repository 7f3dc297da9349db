// Process-wide switches of eager execution, read on the recording path, and its counters.
#pragma once

#include <atomic>

#include "neuron/eager/recorder.h"

namespace neuron::eager {

struct Settings {
  std::atomic<Mode> mode;
  std::atomic<bool> strict;
  std::atomic<bool> synchronous_compile{false};
  std::atomic<bool> fusion{true};
  std::atomic<bool> interpret{false};
  std::atomic<uint32_t> window_limit;
  std::atomic<bool> shut_down{false};
  std::atomic<LocationProvider> location_provider{nullptr};

  Settings();
};

Settings& settings();

struct Counters {
  std::atomic<uint64_t> flushes[kFlushReasonCount] = {};
  std::atomic<uint64_t> commands{0}, region_commands{0}, fused_commands{0}, kernel_commands{0}, dropped_commands{0};
  std::atomic<uint64_t> regions{0}, regions_run{0}, plan_hits{0}, compiled_kernels{0}, disk_hits{0};
  std::atomic<uint64_t> compile_nanoseconds{0};
};

Counters& counters();

}  // namespace neuron::eager
