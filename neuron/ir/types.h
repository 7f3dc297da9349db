// Types of IR values: an element type and dimensions that are static or symbolic.
#pragma once

#include <string>

#include "neuron/base/dtype.h"
#include "neuron/base/small_vector.h"

namespace neuron::ir {

// A dimension: >= 0 is its static size; < 0 names symbol number (-dim - 1) of the graph. Two equal symbols are equal
// sizes; two different symbols may be equal at run time, the IR promises nothing about them.
using Dim = int64_t;

constexpr bool is_symbolic(Dim dim) { return dim < 0; }
constexpr Dim symbolic_dim(int symbol) { return -static_cast<Dim>(symbol) - 1; }
constexpr int symbol_of(Dim dim) { return static_cast<int>(-dim - 1); }

struct Type {
  DType dtype = DType::Float32;
  Dims dims;

  int rank() const { return static_cast<int>(dims.size()); }
  Type with(DType other) const { return {other, dims}; }
  friend bool operator==(const Type&, const Type&) = default;
};

// "tensor<4x?xf32>" in StableHLO's syntax; a symbolic dimension prints as '?'.
std::string to_string(const Type& type);

}  // namespace neuron::ir
