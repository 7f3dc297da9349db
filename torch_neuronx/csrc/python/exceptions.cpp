// The one file that includes torch's exception header: it brings pybind11.
#include <torch/csrc/Exceptions.h>

#include "neuron/base/error.h"
#include "torch_neuronx/csrc/python/bindings.h"
#include "torch_neuronx/csrc/register/errors.h"

namespace torch_neuronx {

void translate_exceptions_for_python() {
  nanobind::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const neuron::Error& error) {
      try {
        rethrow_as_torch(error);
      } catch (...) {
        torch::translate_exception_to_python(std::current_exception());
      }
    } catch (const c10::Error&) {
      torch::translate_exception_to_python(pointer);
    }
  });
}

}  // namespace torch_neuronx
