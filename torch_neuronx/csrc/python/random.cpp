// Plain C API: torch.Generator crosses here, and its Python class is torch's own.
#include <nanobind/nanobind.h>
#include <torch/csrc/Generator.h>

#include "torch_neuronx/csrc/python/bindings.h"
#include "torch_neuronx/csrc/register/generator.h"
#include "torch_neuronx/csrc/register/storage.h"

namespace torch_neuronx {

void bind_random(nanobind::module_& module) {
  // The torch.Generator of a device's default generator.
  module.def("default_generator", [](int index) {
    const at::Generator& generator = default_generator(static_cast<c10::DeviceIndex>(index));
    return nanobind::steal<nanobind::object>(THPGenerator_Wrap(generator));
  });
}

}  // namespace torch_neuronx
