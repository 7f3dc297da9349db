// What torch_neuronx/compat/autograd_threads.py needs at the end of the interpreter.
#include <nanobind/nanobind.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/python/bindings.h"
#include "torch_neuronx/csrc/register/device.h"

namespace torch_neuronx {
namespace {

bool autograd_threads_exist() {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::string name;
    if (std::getline(std::ifstream(task.path() / "comm"), name) && name.starts_with("pt_autograd")) return true;
  }
  return false;
}

// The gradient of nothing: no Python object takes part, so no thread needs the interpreter's lock to let go of it.
void run_empty_pass(c10::DeviceIndex index) {
  const c10::Device device(kDeviceType, index);
  at::Tensor leaf = neuron::aten::empty({0}, at::kFloat, device);
  leaf.set_requires_grad(true);
  torch::autograd::Engine::get_default_engine().execute({torch::autograd::impl::gradient_edge(leaf)},
                                                        {neuron::aten::empty({0}, at::kFloat, device)},
                                                        /*keep_graph=*/false, /*create_graph=*/false,
                                                        /*accumulate_grad=*/true);
}

}  // namespace

void bind_autograd_threads(nanobind::module_& module) {
  // Returns when the threads of autograd hold nothing of earlier passes: a thread lets go of one before it begins the
  // next.
  module.def(
      "wait_for_autograd_threads",
      [] {
        if (!device_used() || in_bad_fork() || !autograd_threads_exist()) return;
        for (c10::DeviceIndex index = 0; index < device_count(); ++index) run_empty_pass(index);
      },
      nanobind::call_guard<nanobind::gil_scoped_release>());
}

}  // namespace torch_neuronx
