// Elementwise operations of the IR on bundles of lanes. The meaning of each is neuron/interpret's.
#pragma once

#include <span>

#include "neuron/codegen/llvm/lanes.h"
#include "neuron/ir/graph.h"

namespace neuron::codegen {

// Emits one elementwise operation (Unary, Binary or Ternary category, or a function of functions.def) on operand values
// in register form. Throws Error(Internal) naming the operation when there is no such rule.
llvm::Value* emit_operation(const Lanes& lanes, const ir::Graph& graph, const ir::Operation& operation,
                            std::span<llvm::Value* const> operands);

// One binary opcode on values of one dtype, narrow floats as float32; also the reducers.
llvm::Value* emit_binary(const Lanes& lanes, ir::Opcode opcode, DType dtype, llvm::Value* x, llvm::Value* y);

// The value that changes nothing when combined by the reducer.
llvm::Constant* reducer_identity(llvm::LLVMContext& context, ir::Opcode reducer, DType dtype);

// A constant of the dtype in register form from a splat literal.
llvm::Constant* literal_constant(llvm::LLVMContext& context, const ir::Literal& literal);

// Relative cost of an operation per lane, in units of one vector addition: decides unrolling, recomputation and grain.
int operation_cost(const ir::Graph& graph, const ir::Operation& operation);

// random_bits or random_normal.
bool is_random(const ir::Operation& operation);
// The function of runtime_functions.h that makes one such number of a dtype, or those of a line.
std::string_view random_routine(DType dtype, bool line);

// Whether it can be emitted by emit_operation.
bool is_elementwise(const ir::Operation& operation);

}  // namespace neuron::codegen
