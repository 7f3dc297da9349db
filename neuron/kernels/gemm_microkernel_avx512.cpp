// AVX-512: a register tile of 14 x 32, 28 accumulators of the 32 registers. Packing is shared with AVX2.
#include <immintrin.h>

#include "neuron/kernels/gemm_microkernel.h"

#define NEURON_AVX512 __attribute__((target("avx512f,avx512vl,fma")))

namespace neuron::kernels {
namespace {

constexpr int kRows = 14;
constexpr int kColumns = 32;

NEURON_AVX512 void compute(int64_t k, const float* a, const float* b, float alpha, float* tile, int64_t stride,
                           bool accumulate) {
  __m512 sums[kRows][2];
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i) sums[i][0] = sums[i][1] = _mm512_setzero_ps();
  // The tile is touched last; fetch it while the sums are made.
  for (int i = 0; i < kRows; ++i) {
    __builtin_prefetch(tile + i * stride, 1);
    __builtin_prefetch(tile + i * stride + 16, 1);
  }
  for (int64_t p = 0; p < k; ++p) {
    __m512 left = _mm512_loadu_ps(b), right = _mm512_loadu_ps(b + 16);
#pragma GCC unroll 14
    for (int i = 0; i < kRows; ++i) {
      __m512 x = _mm512_set1_ps(a[i]);
      sums[i][0] = _mm512_fmadd_ps(x, left, sums[i][0]);
      sums[i][1] = _mm512_fmadd_ps(x, right, sums[i][1]);
    }
    a += kRows;
    b += kColumns;
  }
  __m512 scale = _mm512_set1_ps(alpha);
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      float* target = tile + i * stride + 16 * j;
      __m512 value = _mm512_mul_ps(scale, sums[i][j]);
      if (accumulate) value = _mm512_add_ps(_mm512_loadu_ps(target), value);
      _mm512_storeu_ps(target, value);
    }
  }
}

}  // namespace

const GemmMicrokernel gemm_microkernel_avx512 = {
    "avx512",
    kRows,
    kColumns,
    compute,
    [](PackedSource type, const void* source, int64_t lane_stride, int64_t depth_stride, int64_t count, int64_t depth,
       int width, float* panel) {
      gemm_microkernel_avx2.pack(type, source, lane_stride, depth_stride, count, depth, width, panel);
    },
    [](PackedSource type, const float* values, int64_t count, void* target) {
      gemm_microkernel_avx2.store(type, values, count, target);
    }};

}  // namespace neuron::kernels
