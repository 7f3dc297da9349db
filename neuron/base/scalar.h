// A number given at run time: the operand form of Python numbers and 0-dimensional host values.
#pragma once

#include <bit>
#include <cstdint>

#include "neuron/base/dtype.h"

namespace neuron {

struct Scalar {
  DType dtype = DType::Float64;  // Float64 or Int64 (bool is Int64 0 or 1)
  uint64_t bits = 0;

  static Scalar of(double value) { return {DType::Float64, std::bit_cast<uint64_t>(value)}; }
  static Scalar of(int64_t value) { return {DType::Int64, static_cast<uint64_t>(value)}; }
  double as_double() const {
    return dtype == DType::Float64 ? std::bit_cast<double>(bits) : static_cast<double>(static_cast<int64_t>(bits));
  }
  int64_t as_int() const {
    return dtype == DType::Int64 ? static_cast<int64_t>(bits) : static_cast<int64_t>(std::bit_cast<double>(bits));
  }
};

}  // namespace neuron
