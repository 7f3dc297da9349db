#include "torch_neuronx/csrc/register/determinism.h"

#include <ATen/Context.h>

#include <atomic>

#include "neuron/eager/recorder.h"

namespace torch_neuronx {
namespace {

std::atomic<bool> deterministic_seen{false};

}  // namespace

void observe_deterministic_mode() {
  const bool now = at::globalContext().deterministicAlgorithms();
  if (now == deterministic_seen.load(std::memory_order_relaxed)) [[likely]]
    return;
  deterministic_seen.store(now, std::memory_order_relaxed);
  neuron::eager::set_fusion(!now);
}

}  // namespace torch_neuronx
