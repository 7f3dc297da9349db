// Which operators ran on the device and which on the CPU.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "torch_neuronx/csrc/aten/tracking.h"
#include "torch_neuronx/csrc/python/bindings.h"

namespace torch_neuronx {

void bind_operators(nanobind::module_& module) {
  module.def("executed_operators", &neuron::aten::executed_operators);
  module.def("fallback_operators", [] {
    std::vector<std::string> names;
    for (const neuron::aten::FallbackCount& count : neuron::aten::fallback_operators()) names.push_back(count.name);
    return names;
  });
  // (name, calls, bytes copied between the device and the host)
  module.def("fallback_counts", [] {
    std::vector<std::tuple<std::string, uint64_t, uint64_t>> counts;
    for (const neuron::aten::FallbackCount& count : neuron::aten::fallback_operators()) {
      counts.emplace_back(count.name, count.calls, count.bytes);
    }
    return counts;
  });
  module.def("clear_operator_tracking", &neuron::aten::clear_operator_tracking);
}

}  // namespace torch_neuronx
