#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/python/bindings.h"

NB_MODULE(_C, module) {
  // Objects alive at exit are torch's to report, not the binding library's.
  nanobind::set_leak_warnings(false);
  module.attr("torch_version") = NEURON_TORCH_VERSION;
  torch_neuronx::translate_exceptions_for_python();
  torch_neuronx::bind_device(module);
  torch_neuronx::bind_memory(module);
  torch_neuronx::bind_random(module);
  torch_neuronx::bind_events(module);
  torch_neuronx::bind_eager(module);
  torch_neuronx::bind_operators(module);
  torch_neuronx::bind_profile(module);
  torch_neuronx::bind_graphs(module);
  neuron::aten::register_operators();
  torch_neuronx::bind_options(module);
  torch_neuronx::bind_diagnostics(module);
  torch_neuronx::bind_source_lines(module);
  torch_neuronx::bind_interpreter_lock();
  torch_neuronx::bind_torch_callers();
  torch_neuronx::bind_autograd_threads(module);
}
