// Conversions between dtypes, exactly as neuron/interpret defines them: one rounding, to nearest even; float to integer
// as x86 converts (out of range and NaN give the smallest integer).
#pragma once

#include "neuron/codegen/llvm/lanes.h"

namespace neuron::codegen {

llvm::Value* emit_convert(const Lanes& lanes, llvm::Value* x, DType from, DType to);

// A narrow float (its bits) as float32, and back with one rounding.
llvm::Value* emit_widen(const Lanes& lanes, llvm::Value* x, DType from);
llvm::Value* emit_narrow(const Lanes& lanes, llvm::Value* x, DType to);

// float32 or double to an integer dtype.
llvm::Value* emit_float_to_integer(const Lanes& lanes, llvm::Value* x, DType to);

}  // namespace neuron::codegen
