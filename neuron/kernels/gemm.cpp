// The "gemm" kernel: from a Call to a problem, and the list of implementations.
#include "neuron/kernels/gemm.h"

#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

GemmOperand operand(const TensorView& view) {
  int rank = view.rank();
  GemmOperand result;
  result.data = view.data;
  result.batch = rank == 3 && view.sizes[0] != 1 ? view.strides[0] : 0;
  result.row = view.sizes[rank - 2] != 1 ? view.strides[rank - 2] : 0;
  result.column = view.sizes[rank - 1] != 1 ? view.strides[rank - 1] : 0;
  return result;
}

// A column of a matrix, for the vectors of mv and dot.
TensorView as_column(TensorView view) {
  view.sizes.push_back(1);
  view.strides.push_back(1);
  return view;
}

TensorView as_row(TensorView view) {
  size_t last = view.sizes.empty() ? 0 : view.sizes.size() - 1;
  view.sizes.insert(last, 1);
  view.strides.insert(last, 1);
  return view;
}

// outputs: result [m, n] or [batch, m, n]; inputs: a, b, optional addend that broadcasts from the right. A vector a is
// a row and its dimension is missing in the result, a vector b a column whose dimension is missing in result and
// addend. scalars: alpha, beta (optional, 1). No attributes.
void run(const Call& call) {
  TensorView result = call.outputs[0], a = call.inputs[0], b = call.inputs[1];
  bool column = b.rank() == 1;
  if (column) {
    b = as_column(b);
    result = as_column(result);
  }
  if (a.rank() == 1) {
    a = as_row(a);
    result = as_row(result);
  }
  int rank = result.rank();
  check_internal((rank == 2 || rank == 3) && a.rank() == rank && b.rank() == rank,
                 "gemm: ranks {}, {} and {} where all must be 2 or all 3", rank, a.rank(), b.rank());
  GemmProblem problem;
  problem.dtype = a.dtype;
  problem.result_dtype = result.dtype;
  problem.batch = rank == 3 ? result.sizes[0] : 1;
  problem.m = result.sizes[rank - 2];
  problem.n = result.sizes[rank - 1];
  problem.k = a.sizes[rank - 1];
  check_internal(a.dtype == b.dtype && a.sizes[rank - 2] == problem.m && b.sizes[rank - 2] == problem.k &&
                     b.sizes[rank - 1] == problem.n,
                 "gemm: a [{}, {}] of {} and b [{}, {}] of {} do not give [{}, {}]", a.sizes[rank - 2], problem.k,
                 dtype_name(a.dtype), b.sizes[rank - 2], b.sizes[rank - 1], dtype_name(b.dtype), problem.m, problem.n);
  problem.a = operand(a);
  problem.b = operand(b);
  problem.result = operand(result);
  if (call.inputs.size() > 2) {
    TensorView addend = column && call.inputs[2].rank() > 0 ? as_column(call.inputs[2]) : call.inputs[2];
    problem.addend_dtype = addend.dtype;
    problem.addend.data = addend.data;
    int64_t* strides[] = {&problem.addend.column, &problem.addend.row, &problem.addend.batch};
    for (int d = 0; d < addend.rank(); ++d) {
      int from_right = addend.rank() - 1 - d;
      if (addend.sizes[d] != 1) *strides[from_right] = addend.strides[d];
    }
  }
  if (call.scalars.size() > 0) problem.alpha = call.scalars[0];
  if (call.scalars.size() > 1) problem.beta = call.scalars[1];
  problem.threads = call.threads;
  run_gemm(problem);
}

const KernelRegistration registration({.name = "gemm", .run = run});

}  // namespace

const ImplementationList<GemmProblem>& gemm_implementations() {
  static const Implementation<GemmProblem> entries[] = {
      gemm_matrix_units, gemm_inner, gemm_outer, gemm_packed_bfloat16, gemm_process_blas, gemm_packed, gemm_plain};
  static const ImplementationList<GemmProblem> list("gemm", entries);
  return list;
}

void run_gemm(const GemmProblem& problem) {
  if (problem.batch == 0 || problem.m == 0 || problem.n == 0) return;
  if (problem.k == 0) {
    gemm_plain.run(problem);
    return;
  }
  gemm_implementations().run(problem);
}

}  // namespace neuron::kernels
