// Errors of the core as torch's classes, so that Python sees IndexError, ValueError, torch.OutOfMemoryError and so on.
//
// Deliberate choices: a device index out of range is a RuntimeError, as for every device of torch (programs written for
// CUDA catch that); a broken invariant of ours is a RuntimeError that asks for a bug report.
#pragma once

#include <utility>

#include "neuron/base/error.h"

namespace torch_neuronx {

[[noreturn]] void rethrow_as_torch(const neuron::Error& error);

// Runs `body`; every call into the core from a torch-facing function goes through this.
template <typename F>
decltype(auto) translate_errors(F&& body) {
  try {
    return std::forward<F>(body)();
  } catch (const neuron::Error& error) {
    rethrow_as_torch(error);
  }
}

}  // namespace torch_neuronx
