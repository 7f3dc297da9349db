// Plain C API: torch.Event crosses here.
#include <nanobind/nanobind.h>
#include <torch/csrc/Event.h>

#include "torch_neuronx/csrc/python/bindings.h"

namespace torch_neuronx {

void bind_events(nanobind::module_& module) {
  // Event.elapsed_time of torch 2.13 takes no subclass of torch.Event for its argument.
  module.def("elapsed_milliseconds", [](nanobind::handle start, nanobind::handle end) {
    TORCH_CHECK_TYPE(THPEvent_Check(start.ptr()) && THPEvent_Check(end.ptr()), "expected two torch.Event objects");
    return reinterpret_cast<THPEvent*>(start.ptr())->event.elapsedTime(reinterpret_cast<THPEvent*>(end.ptr())->event);
  });
}

}  // namespace torch_neuronx
