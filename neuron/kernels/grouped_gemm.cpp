// Kernel "grouped_gemm": products of matrices that lie one after the other along one dimension, as those of the experts
// of a mixture. Each group is a product of its own: the order of its sums is that of a "gemm" of its sizes.
#include <algorithm>

#include "neuron/base/error.h"
#include "neuron/kernels/gemm.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

GemmOperand matrix(const TensorView& view) {
  int rank = view.rank();
  GemmOperand result;
  result.data = view.data;
  result.row = view.strides[rank - 2];
  result.column = view.strides[rank - 1];
  return result;
}

void advance(GemmOperand& operand, int64_t elements, DType dtype) {
  operand.data = static_cast<char*>(operand.data) + elements * static_cast<int64_t>(dtype_size(dtype));
}

// outputs: result; inputs: a, b, and the end of each group (int32) along the dimension they share:
//   a [rows, k],      b [groups, k, n]: rows of a are divided; result [rows, n], rows behind the last group stay
//   a [groups, m, k], b [k, columns]:   columns of b are divided; result [m, columns]
//   a [m, all],       b [all, n]:       k is divided; result [groups, m, n]
void run_grouped_gemm(const Call& call) {
  const TensorView &result = call.outputs[0], &a = call.inputs[0], &b = call.inputs[1], &ends = call.inputs[2];
  bool a_stacked = a.rank() == 3, b_stacked = b.rank() == 3;
  int64_t extent = b_stacked ? a.sizes[0] : a_stacked ? b.sizes[1] : a.sizes[1];
  int64_t begin = 0;
  for (int64_t group = 0; group < ends.sizes[0]; ++group) {
    int64_t end = ends.as<int32_t>()[group * ends.strides[0]];
    if (end < begin || end > extent)
      fail(ErrorKind::Runtime, "grouped_mm: group {} ends at {}, but it begins at {} and there are {} in all", group,
           end, begin, extent);
    GemmProblem problem;
    problem.dtype = a.dtype;
    problem.result_dtype = result.dtype;
    problem.threads = call.threads;
    problem.a = matrix(a);
    problem.b = matrix(b);
    problem.result = matrix(result);
    problem.m = a.sizes[a.rank() - 2];
    problem.k = a.sizes[a.rank() - 1];
    problem.n = b.sizes[b.rank() - 1];
    if (a_stacked) advance(problem.a, group * a.strides[0], a.dtype);
    if (b_stacked) advance(problem.b, group * b.strides[0], b.dtype);
    if (b_stacked) {
      problem.m = end - begin;
      advance(problem.a, begin * a.strides[0], a.dtype);
      advance(problem.result, begin * result.strides[0], result.dtype);
    } else if (a_stacked) {
      problem.n = end - begin;
      advance(problem.b, begin * b.strides[1], b.dtype);
      advance(problem.result, begin * result.strides[1], result.dtype);
    } else {
      problem.k = end - begin;
      advance(problem.a, begin * a.strides[1], a.dtype);
      advance(problem.b, begin * b.strides[0], b.dtype);
      advance(problem.result, group * result.strides[0], result.dtype);
    }
    run_gemm(problem);
    begin = end;
  }
}

const KernelRegistration registration({.name = "grouped_gemm", .run = run_grouped_gemm, .may_raise = true});

}  // namespace
}  // namespace neuron::kernels
