#include "torch_neuronx/csrc/register/knobs.h"

#include <atomic>

namespace torch_neuronx {
namespace {

std::atomic<bool> float64_in_float32{false};

}  // namespace

bool float64_as_float32() noexcept { return float64_in_float32.load(std::memory_order_relaxed); }
void set_float64_as_float32(bool on) noexcept { float64_in_float32.store(on, std::memory_order_relaxed); }

}  // namespace torch_neuronx
