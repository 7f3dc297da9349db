// From an LLVM module to machine code, by LLVM's back end alone: the emitters write vector code, so no optimisation
// pipeline runs, which is most of a kernel's compile time saved.
#pragma once

#include <llvm/IR/Module.h>

#include <functional>
#include <memory>
#include <string>

#include "neuron/codegen/region.h"

namespace neuron::codegen {

// Bytes of a vector register.
constexpr int vector_bytes(HostTarget target) { return target == HostTarget::Avx512 ? 64 : 32; }

enum class MachineOutput : uint8_t { Object, Assembly };

// Builds a module with `fill` and compiles it for the target. Thread-safe: back ends are kept and lent to one caller
// each.
std::string compile_module(HostTarget target, MachineOutput output, const std::function<void(llvm::Module&)>& fill);

}  // namespace neuron::codegen
