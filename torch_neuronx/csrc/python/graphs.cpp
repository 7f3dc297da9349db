// Command graphs: what torch.accelerator.Graph and torch.neuron.graph ask for.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include "torch_neuronx/csrc/python/bindings.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/graph.h"
#include "torch_neuronx/csrc/register/stream.h"

namespace torch_neuronx {

namespace nb = nanobind;

void bind_graphs(nb::module_& module) {
  module.def("register_graph", &register_graph);
  module.def("new_graph_pool", &new_graph_pool);
  module.def("stream_is_capturing", [](int device) {
    if (!device_used()) return false;
    const auto index = device < 0 ? current_device() : static_cast<c10::DeviceIndex>(device);
    return neuron::eager::capturing_graph(uncaptured_stream_of(current_c10_stream(index))) != nullptr;
  });
}

}  // namespace torch_neuronx
