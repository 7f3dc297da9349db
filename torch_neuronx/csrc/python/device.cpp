#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "neuron/runtime/platform.h"
#include "torch_neuronx/csrc/python/bindings.h"
#include "torch_neuronx/csrc/register/device.h"

namespace torch_neuronx {

void bind_device(nanobind::module_& module) {
  using nanobind::call_guard, nanobind::gil_scoped_release;
  module.def("is_available", [] { return is_available() && device_count() > 0; });
  module.def("device_count", [] { return static_cast<int>(device_count()); });
  module.def("current_device", [] { return static_cast<int>(current_device()); });
  module.def("unavailable_reason", &unavailable_reason);
  module.def("driver_name", &driver_name);
  // Bytes of one logical core, without beginning the use of the device.
  module.def("core_memory", [] { return neuron::runtime::presented_core_memory(); });
  module.def("set_device", [](int index) { set_device(static_cast<c10::DeviceIndex>(index)); });
  module.def("use_device", [] { use_device(); });
  module.def("device_used", [] { return device_used(); });
  module.def("in_bad_fork", [] { return in_bad_fork(); });
  module.def("shutdown", [] { shutdown_device(); }, call_guard<gil_scoped_release>());
}

}  // namespace torch_neuronx
