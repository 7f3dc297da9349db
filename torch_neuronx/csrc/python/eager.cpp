#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "neuron/base/error.h"
#include "neuron/eager/recorder.h"
#include "torch_neuronx/csrc/python/bindings.h"
#include "torch_neuronx/csrc/register/knobs.h"

namespace torch_neuronx {
namespace {

namespace nb = nanobind;
namespace eager = neuron::eager;

std::string mode() {
  switch (eager::mode()) {
    case eager::Mode::Immediate:
      return "immediate";
    case eager::Mode::Blocking:
      return "blocking";
    case eager::Mode::Adaptive:
      break;
  }
  return "adaptive";
}

void set_mode(const std::string& name) {
  if (name == "adaptive") return eager::set_mode(eager::Mode::Adaptive);
  if (name == "immediate") return eager::set_mode(eager::Mode::Immediate);
  if (name == "blocking") return eager::set_mode(eager::Mode::Blocking);
  neuron::fail(neuron::ErrorKind::Value, "unknown eager mode '{}': expected adaptive, immediate or blocking", name);
}

nb::dict statistics() {
  const eager::Statistics s = eager::statistics();
  nb::dict flushes;
  for (int i = 0; i < eager::kFlushReasonCount; ++i) {
    flushes[eager::flush_reason_name(static_cast<eager::FlushReason>(i))] = s.flushes[i];
  }
  nb::dict result;
  result["flushes"] = flushes;
  result["commands"] = s.commands;
  result["region_commands"] = s.region_commands;
  result["fused_commands"] = s.fused_commands;
  result["kernel_commands"] = s.kernel_commands;
  result["dropped_commands"] = s.dropped_commands;
  result["regions"] = s.regions;
  result["regions_run"] = s.regions_run;
  result["plan_hits"] = s.plan_hits;
  result["compiled_kernels"] = s.compiled_kernels;
  result["disk_hits"] = s.disk_hits;
  result["compile_seconds"] = s.compile_seconds;
  return result;
}

}  // namespace

void bind_eager(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  module.def("float64_as_float32", &float64_as_float32);
  module.def("set_float64_as_float32", &set_float64_as_float32);
  module.def("eager_mode", &mode);
  module.def("set_eager_mode", &set_mode, unlocked);
  module.def("strict_mode", [] { return eager::strict_mode(); });
  module.def("set_strict_mode", [](bool strict) { eager::set_strict_mode(strict); });
  module.def("set_synchronous_compile", [](bool on) { eager::set_synchronous_compile(on); });
  module.def("set_fusion", [](bool on) { eager::set_fusion(on); }, unlocked);
  module.def("set_interpret", [](bool on) { eager::set_interpret(on); }, unlocked);
  module.def("statistics", &statistics);
  module.def("reset_statistics", [] { eager::reset_statistics(); });
  module.def("wait_for_compiles", [] { eager::wait_for_compiles(); }, unlocked);
  module.def(
      "flush", [](int core) { eager::flush(eager::default_stream(core), eager::FlushReason::Explicit); }, unlocked);
}

}  // namespace torch_neuronx
