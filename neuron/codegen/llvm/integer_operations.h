// Integer arithmetic that the processor has no safe vector instruction for: division, remainder, powers, shifts.
// Nothing traps: division by zero gives all bits set, remainder by zero the dividend.
#pragma once

#include "neuron/codegen/llvm/lanes.h"
#include "neuron/ir/graph.h"

namespace neuron::codegen {

llvm::Value* emit_integer_divide(const Lanes& lanes, DType dtype, llvm::Value* x, llvm::Value* y);
llvm::Value* emit_integer_remainder(const Lanes& lanes, DType dtype, llvm::Value* x, llvm::Value* y);
llvm::Value* emit_integer_power(const Lanes& lanes, DType dtype, llvm::Value* x, llvm::Value* y);
// Amounts outside [0, bits) shift everything out.
llvm::Value* emit_shift(const Lanes& lanes, ir::Opcode opcode, llvm::Value* x, llvm::Value* y);

}  // namespace neuron::codegen
