// random_bits and random_normal of functions.def as graphs are built.
#pragma once

#include "neuron/ir/builder.h"

namespace neuron::ir {

// Operands of one shape, i64. random_bits: dtype UInt32 or UInt64; random_normal: Float32 or Float64.
Value random_bits(Builder& builder, Value element, Value seed, Value offset, DType dtype);
Value random_normal(Builder& builder, Value element, Value seed, Value offset, DType dtype);

}  // namespace neuron::ir
