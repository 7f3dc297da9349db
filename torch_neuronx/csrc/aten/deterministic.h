// torch.use_deterministic_algorithms(): what it asks of memory that nothing has been written to.
#pragma once

#include <ATen/Context.h>

namespace neuron::aten {

// New memory is filled with a value that shows.
inline bool fills_new_memory() {
  return at::globalContext().deterministicAlgorithms() && at::globalContext().deterministicFillUninitializedMemory();
}

}  // namespace neuron::aten
