// Conversions between dtypes, exactly as neuron/interpret defines them: one rounding, to nearest even; float to integer
// as x86 converts (out of range and NaN give the smallest integer).
#pragma once

#include <utility>

#include "neuron/codegen/llvm/lanes.h"

namespace neuron::codegen {

llvm::Value* emit_convert(const Lanes& lanes, llvm::Value* x, DType from, DType to);

// A value as it lies in memory in the form that registers hold, and back.
llvm::Value* emit_from_memory(const Lanes& lanes, llvm::Value* x, DType dtype);
llvm::Value* emit_to_memory(const Lanes& lanes, llvm::Value* x, DType dtype);

// Two vectors of bfloat16 that lie one behind the other in memory: lanes of i16, twice as many.
std::pair<llvm::Value*, llvm::Value*> emit_two_from_memory(const Lanes& lanes, llvm::Value* x);

// A narrow float, in register form, as float32, and back with one rounding.
llvm::Value* emit_widen(const Lanes& lanes, llvm::Value* x, DType from);
llvm::Value* emit_narrow(const Lanes& lanes, llvm::Value* x, DType to);

// float32 or double to an integer dtype.
llvm::Value* emit_float_to_integer(const Lanes& lanes, llvm::Value* x, DType to);

}  // namespace neuron::codegen
