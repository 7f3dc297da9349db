// "outer": at most eight rows of a against a plain b, or at most eight columns of b against a transposed a: the rows of
// the matrix are added up with the vectors' elements as weights.
//
// Order of summation: one chain of fused multiply-adds over k from zero, the same on every processor.
#include <algorithm>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/gemm_inner.h"
#include "neuron/kernels/gemm_memory.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kColumns = 1024;  // of a task, at most

bool rows_are_vectors(const GemmProblem& p) { return p.m <= kInnerVectors && !is_transposed(p.b, p.k, p.n); }
bool columns_are_vectors(const GemmProblem& p) { return p.n <= kInnerVectors && is_transposed(p.a, p.m, p.k); }

struct Buffers {
  Scratch vectors, dense, sums;
};
thread_local Buffers buffers;

// Columns [begin, end) of a matrix of the batch; the vectors are rows of a.
void run_columns(const GemmProblem& p, const InnerProducts& routines, int64_t batch, int64_t begin, int64_t end) {
  float* vectors = buffers.vectors.get<float>(p.m * p.k);
  for (int64_t v = 0; v < p.m; ++v) {
    widen_elements(p.dtype, address(p.a, p.dtype, batch, v, 0), p.a.column, p.k, vectors + v * p.k);
  }
  int64_t count = end - begin, row_stride = p.b.row;
  const char* matrix = address(p.b, p.dtype, batch, 0, begin);
  if (p.b.column != 1 && p.n > 1) {  // gaps between columns
    auto size = static_cast<int64_t>(dtype_size(p.dtype));
    char* dense = buffers.dense.get<char>(p.k * count * size);
    for (int64_t l = 0; l < p.k; ++l) {
      for (int64_t c = 0; c < count; ++c) {
        const char* from = address(p.b, p.dtype, batch, l, begin + c);
        std::copy(from, from + size, dense + (l * count + c) * size);
      }
    }
    matrix = dense;
    row_stride = count;
  }
  float* sums = buffers.sums.get<float>(p.m * kColumns);
  routines.combine(packed_source(p.dtype), static_cast<int>(p.m), vectors, matrix, row_stride, count, p.k, sums,
                   kColumns);
  for (int64_t v = 0; v < p.m; ++v) store_sums(p, batch, v, begin, count, sums + v * kColumns);
}

Refusal refuse(const GemmProblem& p) {
  if (Refusal reason = refuse_streaming(p); !reason.empty()) return reason;
  if (!rows_are_vectors(p) && !columns_are_vectors(p)) {
    return {"takes at most {} rows with a plain b, or as many columns with a transposed a", kInnerVectors};
  }
  return {};
}

void run(const GemmProblem& p) { run_gemm_outer(p, detected_inner_products()); }

}  // namespace

void run_gemm_outer(const GemmProblem& problem, const InnerProducts& routines) {
  GemmProblem p = rows_are_vectors(problem) ? problem : transposed_problem(problem);
  // How columns are cut changes no bit.
  int64_t threads = std::clamp<int64_t>(p.batch * p.n * p.k / 262144, 1, std::max(1, p.threads));
  int64_t length = std::min(kColumns, ((p.n + threads - 1) / threads + 127) / 128 * 128);
  int64_t blocks = (p.n + length - 1) / length;
  parallel_for(static_cast<int>(threads), p.batch * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      int64_t first = index % blocks * length;
      run_columns(p, routines, index / blocks, first, std::min(p.n, first + length));
    }
  });
}

const Implementation<GemmProblem> gemm_outer = {"outer", refuse, run};

}  // namespace neuron::kernels
