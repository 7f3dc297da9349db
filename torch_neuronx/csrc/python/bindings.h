// The extension module torch_neuronx._C: thin functions over the registration layer and the core. Python code of the
// package is the only caller; nothing here is public. Functions that may wait release the GIL.
#pragma once

#include <nanobind/nanobind.h>

namespace torch_neuronx {

// Makes every exception of ours and of torch arrive in Python as torch's own bindings would raise it.
void translate_exceptions_for_python();

void bind_device(nanobind::module_& module);
void bind_memory(nanobind::module_& module);
void bind_random(nanobind::module_& module);
void bind_events(nanobind::module_& module);
void bind_eager(nanobind::module_& module);
void bind_operators(nanobind::module_& module);
void bind_profile(nanobind::module_& module);
void bind_graphs(nanobind::module_& module);
void bind_options(nanobind::module_& module);
void bind_diagnostics(nanobind::module_& module);
void bind_source_lines(nanobind::module_& module);
void bind_torch_callers();
void bind_interpreter_lock();
void bind_autograd_threads(nanobind::module_& module);

}  // namespace torch_neuronx
