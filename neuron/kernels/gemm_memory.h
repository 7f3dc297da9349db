// Operands of a GEMM in memory, and rows of them as float32.
#pragma once

#include <cstdint>

#include "neuron/kernels/gemm.h"
#include "neuron/kernels/gemm_microkernel.h"

namespace neuron::kernels {

inline bool is_packed_source(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::BFloat16 || dtype == DType::Float16;
}

inline PackedSource packed_source(DType dtype) {
  if (dtype == DType::BFloat16) return PackedSource::BFloat16;
  return dtype == DType::Float16 ? PackedSource::Float16 : PackedSource::Float32;
}

inline char* address(const GemmOperand& x, DType dtype, int64_t batch, int64_t row, int64_t column) {
  int64_t offset = batch * x.batch + row * x.row + column * x.column;
  return static_cast<char*>(x.data) + offset * static_cast<int64_t>(dtype_size(dtype));
}

// As recorded, where extents leave a choice; gaps make no difference.
inline bool is_transposed(const GemmOperand& x, int64_t rows, int64_t columns) {
  return rows > 1 && columns > 1 && x.row == 1 && x.column != 1;
}

// The problem of the transposed result: (a b)ᵀ = bᵀ aᵀ.
GemmProblem transposed_problem(GemmProblem problem);

// `count` elements as float32.
void widen_elements(DType dtype, const void* source, int64_t stride, int64_t count, float* target);

// result[batch, row, column + c] = beta * addend + alpha * sums[c], rounded once, for c < count. Overwrites sums.
void store_sums(const GemmProblem& problem, int64_t batch, int64_t row, int64_t column, int64_t count, float* sums);

}  // namespace neuron::kernels
