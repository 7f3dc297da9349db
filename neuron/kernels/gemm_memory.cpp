#include "neuron/kernels/gemm_memory.h"

#include <algorithm>
#include <utility>

#include "neuron/base/float_formats.h"

namespace neuron::kernels {

GemmProblem transposed_problem(GemmProblem p) {
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  for (GemmOperand* operand : {&p.a, &p.b, &p.result, &p.addend}) std::swap(operand->row, operand->column);
  return p;
}

void widen_elements(DType dtype, const void* source, int64_t stride, int64_t count, float* target) {
  gemm_microkernel_avx2.pack(packed_source(dtype), source, stride, 0, count, 1, static_cast<int>(count), target);
}

void store_sums(const GemmProblem& p, int64_t batch, int64_t row, int64_t column, int64_t count, float* sums) {
  auto alpha = static_cast<float>(p.alpha.as_double()), beta = static_cast<float>(p.beta.as_double());
  constexpr int64_t kBlock = 64;
  for (int64_t done = 0; done < count; done += kBlock) {
    int64_t part = std::min(kBlock, count - done);
    float* values = sums + done;
    if (p.has_addend()) {
      float addend[kBlock];
      widen_elements(p.addend_dtype, address(p.addend, p.addend_dtype, batch, row, column + done), p.addend.column,
                     part, addend);
      for (int64_t c = 0; c < part; ++c) values[c] = beta * addend[c] + alpha * values[c];
    } else if (alpha != 1.0f) {
      for (int64_t c = 0; c < part; ++c) values[c] *= alpha;
    }
  }
  char* target = address(p.result, p.result_dtype, batch, row, column);
  if (p.result.column == 1) {
    gemm_microkernel_avx2.store(packed_source(p.result_dtype), sums, count, target);
    return;
  }
  if (p.result_dtype == DType::Float32) {
    auto* elements = reinterpret_cast<float*>(target);
    for (int64_t c = 0; c < count; ++c) elements[c * p.result.column] = sums[c];
    return;
  }
  int64_t step = p.result.column * static_cast<int64_t>(dtype_size(p.result_dtype));
  for (int64_t c = 0; c < count; ++c) store_from_double(p.result_dtype, sums[c], target + c * step);
}

}  // namespace neuron::kernels
