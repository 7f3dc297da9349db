// "inner": at most eight rows of a against a transposed b, or at most eight columns of b against a plain a. The few
// vectors are widened once, the matrix is streamed: what a language model does for every token.
//
// The order of summation (gemm_inner_routines.h) depends on the instruction set, the dtype and k.
#include "neuron/kernels/gemm_inner.h"

#include <algorithm>

#include "neuron/base/processor.h"
#include "neuron/base/thread_pool.h"
#include "neuron/kernels/gemm_memory.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

bool rows_are_vectors(const GemmProblem& p) { return p.m <= kInnerVectors && is_transposed(p.b, p.k, p.n); }
bool columns_are_vectors(const GemmProblem& p) { return p.n <= kInnerVectors && !is_transposed(p.a, p.m, p.k); }

constexpr int kPartRows = 64;  // what threads share out, in rows of the matrix
constexpr int64_t kShortSum = 512;

struct Buffers {
  Scratch arranged, widened, rows;
};
thread_local Buffers buffers;

class Streamed {
 public:
  Streamed(const GemmProblem& problem, const InnerProducts& routines)
      : p_(problem),
        routines_(routines),
        type_(packed_source(problem.dtype)),
        padded_(routines.padded_length(type_, problem.k)) {}

  void run(int64_t batch, int64_t begin, int64_t end) {
    float* arranged = buffers.arranged.get<float>(p_.m * padded_);
    float* widened = buffers.widened.get<float>(p_.k);
    for (int64_t v = 0; v < p_.m; ++v) {
      widen_elements(p_.dtype, address(p_.a, p_.dtype, batch, v, 0), p_.a.column, p_.k, widened);
      routines_.arrange(type_, widened, p_.k, arranged + v * padded_);
    }
    const bool dense = p_.b.row == 1 || p_.k <= 1;
    const int64_t rows = dense ? kInnerMatrixRows : kPartRows;
    for (int64_t j = begin; j < end; j += rows) {
      int64_t count = std::min(rows, end - j);
      alignas(64) float sums[kInnerVectors * kInnerMatrixRows];
      const void* matrix = address(p_.b, p_.dtype, batch, 0, j);
      int64_t row_stride = p_.b.column;
      if (!dense) {
        matrix = dense_rows(batch, j, count);
        row_stride = p_.k;
      }
      routines_.compute(type_, static_cast<int>(p_.m), arranged, padded_, matrix, row_stride, count, p_.k, sums);
      for (int64_t v = 0; v < p_.m; ++v) store_sums(p_, batch, v, j, count, sums + v * kInnerMatrixRows);
    }
  }

 private:
  // Rows with gaps between their elements, without them.
  const void* dense_rows(int64_t batch, int64_t j, int64_t count) {
    size_t size = dtype_size(p_.dtype);
    char* dense = buffers.rows.get<char>(count * p_.k * static_cast<int64_t>(size));
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t l = 0; l < p_.k; ++l) {
        const char* from = address(p_.b, p_.dtype, batch, l, j + r);
        std::copy(from, from + size, dense + static_cast<size_t>(r * p_.k + l) * size);
      }
    }
    return dense;
  }

  const GemmProblem& p_;
  const InnerProducts& routines_;
  PackedSource type_;
  int64_t padded_;
};

Refusal refuse(const GemmProblem& p) {
  if (Refusal reason = refuse_streaming(p); !reason.empty()) return reason;
  if (!rows_are_vectors(p) && !columns_are_vectors(p)) {
    return {"takes at most {} rows with a transposed b, or as many columns with a plain a", kInnerVectors};
  }
  if (!rows_are_vectors(p) && p.m <= kInnerVectors && p.n > 1 && p.k <= kShortSum) {
    return {"rows and columns are few, and the sum is short: nothing needs to be turned by the other order"};
  }
  return {};
}

void run(const GemmProblem& p) { run_gemm_inner(p, detected_inner_products()); }

}  // namespace

Refusal refuse_streaming(const GemmProblem& p) {
  if (!is_packed_source(p.dtype) || !is_packed_source(p.result_dtype) ||
      (p.has_addend() && !is_packed_source(p.addend_dtype))) {
    return {"takes float32, bfloat16 and float16; the problem is {} to {}", dtype_name(p.dtype),
            dtype_name(p.result_dtype)};
  }
  if (detected_gemm_microkernel() == nullptr) return "the processor lacks AVX2, FMA or F16C";
  return {};
}

const InnerProducts& detected_inner_products() {
  if (detected_gemm_microkernel() != &gemm_microkernel_avx512) return inner_products_avx2;
  return processor_features().made_by_intel ? inner_products_avx512_few_streams : inner_products_avx512;
}

void run_gemm_inner(const GemmProblem& problem, const InnerProducts& routines) {
  GemmProblem p = rows_are_vectors(problem) ? problem : transposed_problem(problem);
  Streamed streamed(p, routines);
  int64_t blocks = (p.n + kPartRows - 1) / kPartRows;
  int64_t grain = std::max<int64_t>(1, 262144 / std::max<int64_t>(1, p.k * kPartRows));
  parallel_for(p.threads, p.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end;) {
      int64_t batch = index / blocks, first = index % blocks, last = std::min(blocks, first + end - index);
      streamed.run(batch, first * kPartRows, std::min(p.n, last * kPartRows));
      index += last - first;
    }
  });
}

const Implementation<GemmProblem> gemm_inner = {"inner", refuse, run};

}  // namespace neuron::kernels
