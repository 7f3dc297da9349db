// Matrix products: result = beta * addend + alpha * (a @ b), for batches of matrices with any strides.
//
// The order of summation is a function of (dtype, batch, m, n, k, transposition) and of the implementation, which is
// chosen by the same facts and by the machine; never of strides, alignment or threads.
#pragma once

#include <cstdint>
#include <string>

#include "neuron/base/dtype.h"
#include "neuron/base/scalar.h"
#include "neuron/kernels/implementation_list.h"

namespace neuron::kernels {

// Strides in elements; 0 broadcasts. For an operand of extent 1 along a dimension that stride is ignored.
struct GemmOperand {
  void* data = nullptr;
  int64_t batch = 0, row = 0, column = 0;
};

struct GemmProblem {
  DType dtype = DType::Float32;         // of a and b
  DType result_dtype = DType::Float32;  // equal to dtype, or float32 for narrower floats
  DType addend_dtype = DType::Float32;  // any float for float problems, else equal to dtype
  int64_t batch = 1, m = 0, n = 0, k = 0;
  GemmOperand a, b, result;  // a [batch, m, k], b [batch, k, n], result [batch, m, n]
  GemmOperand addend;        // [batch, m, n]; data null: none. May be the result itself.
  Scalar alpha = Scalar::of(int64_t{1}), beta = Scalar::of(int64_t{1});
  int threads = 1;

  bool has_addend() const { return addend.data != nullptr && beta.as_double() != 0.0; }
};

const ImplementationList<GemmProblem>& gemm_implementations();

// Handles empty problems, then runs the first implementation that accepts.
void run_gemm(const GemmProblem& problem);

// The implementations, also callable by name in tests.
extern const Implementation<GemmProblem> gemm_inner;
extern const Implementation<GemmProblem> gemm_outer;
extern const Implementation<GemmProblem> gemm_matrix_units;
extern const Implementation<GemmProblem> gemm_packed_bfloat16;
extern const Implementation<GemmProblem> gemm_process_blas;
extern const Implementation<GemmProblem> gemm_packed;
extern const Implementation<GemmProblem> gemm_plain;

}  // namespace neuron::kernels
