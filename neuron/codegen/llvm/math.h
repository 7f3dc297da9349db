// Mathematical functions. float32: inline polynomials on whole vectors, made of operations that have the same bits on
// every instruction set; error bounds stand beside each. float64 and rare functions: the C library, lane by lane.
#pragma once

#include <span>
#include <string_view>

#include "neuron/codegen/llvm/lanes.h"
#include "neuron/ir/graph.h"

namespace neuron::codegen {

// Name of the function an opcode stands for ("exp" for Exponential), or empty when it is not a mathematical function.
std::string_view math_function_of(ir::Opcode opcode);

// `name` is one of math_function_of()'s or of functions.def; operands are float or double.
llvm::Value* emit_math(const Lanes& lanes, std::string_view name, std::span<llvm::Value* const> operands);

// Cost per lane in units of one vector addition.
int math_cost(std::string_view name, DType dtype);

}  // namespace neuron::codegen
