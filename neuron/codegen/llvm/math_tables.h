// Tables of eight floats in generated code, each looked up by one permutation of a register.
#pragma once

#include <array>

#include "neuron/codegen/llvm/lanes.h"

namespace neuron::codegen {

using Table = std::array<float, 8>;

// table[index % 8] of each lane. `table` is copied into the code.
llvm::Value* emit_one_of_8(const Lanes& lanes, const Table& table, llvm::Value* index);

}  // namespace neuron::codegen
