#include "neuron/eager/settings.h"

#include <string>

#include "neuron/base/options.h"
#include "neuron/eager/stream.h"

namespace neuron::eager {

Settings::Settings()
    : mode(Mode::Adaptive), strict(false), window_limit(static_cast<uint32_t>(option_integer(Option::WindowSize))) {
  for (const std::string& part : option_list(Option::EagerMode)) {
    if (part == "immediate") mode = Mode::Immediate;
    if (part == "blocking") mode = Mode::Blocking;
    if (part == "strict") strict = true;
  }
  if (!option_flag(Option::EnableConcatenation) && mode == Mode::Adaptive) mode = Mode::Immediate;
  if (option_flag(Option::LaunchBlocking)) mode = Mode::Blocking;
}

Settings& settings() {
  static Settings* instance = new Settings();
  return *instance;
}

Counters& counters() {
  static Counters* instance = new Counters();
  return *instance;
}

const char* flush_reason_name(FlushReason reason) {
  static constexpr const char* names[] = {
      "host_read",     "data_dependent_shape", "event_query",     "synchronize", "collective", "raw_pointer",
      "custom_kernel", "window_full",          "memory_pressure", "exit",        "explicit",   "mode"};
  static_assert(std::size(names) == kFlushReasonCount);
  return names[static_cast<int>(reason)];
}

Mode mode() { return settings().mode; }
bool strict_mode() { return settings().strict; }
void set_strict_mode(bool strict) { settings().strict = strict; }
void set_location_provider(LocationProvider provider) { settings().location_provider = provider; }
void set_synchronous_compile(bool on) { settings().synchronous_compile = on; }

namespace {

void flush_everything() {
  for_each_stream([](Stream& stream) { synchronize(stream, FlushReason::Mode); });
}

}  // namespace

void set_mode(Mode mode) {
  if (settings().mode == mode) return;
  flush_everything();
  settings().mode = mode;
}

void set_fusion(bool on) {
  if (settings().fusion == on) return;
  flush_everything();
  settings().fusion = on;
}

void set_interpret(bool on) {
  if (settings().interpret == on) return;
  flush_everything();
  settings().interpret = on;
}

Statistics statistics() {
  Counters& from = counters();
  Statistics result;
  for (int i = 0; i < kFlushReasonCount; ++i) result.flushes[i] = from.flushes[i];
  result.commands = from.commands;
  result.region_commands = from.region_commands;
  result.fused_commands = from.fused_commands;
  result.kernel_commands = from.kernel_commands;
  result.dropped_commands = from.dropped_commands;
  result.regions = from.regions;
  result.regions_run = from.regions_run;
  result.plan_hits = from.plan_hits;
  result.compiled_kernels = from.compiled_kernels;
  result.disk_hits = from.disk_hits;
  result.compile_seconds = static_cast<double>(from.compile_nanoseconds) * 1e-9;
  return result;
}

void reset_statistics() {
  Counters& to = counters();
  for (auto& count : to.flushes) count = 0;
  for (auto* count :
       {&to.commands, &to.region_commands, &to.fused_commands, &to.kernel_commands, &to.dropped_commands, &to.regions,
        &to.regions_run, &to.plan_hits, &to.compiled_kernels, &to.disk_hits, &to.compile_nanoseconds}) {
    *count = 0;
  }
}

}  // namespace neuron::eager
