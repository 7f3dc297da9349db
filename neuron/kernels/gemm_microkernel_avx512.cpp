// AVX-512: a register tile of 14 x 32, 28 accumulators of the 32 registers.
#include <immintrin.h>

#include <array>
#include <utility>

#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/gemm_pack.h"

#define NEURON_AVX512 __attribute__((target("avx512f,avx512vl,fma")))

namespace neuron::kernels {
namespace {

constexpr int kRows = 14;
constexpr int kColumns = 32;

template <int kHeight>
NEURON_AVX512 void compute_tile(int64_t k, const float* a, const float* b, float alpha, float* tile, int64_t stride,
                                bool accumulate) {
  __m512 sums[kHeight][2];
#pragma GCC unroll 14
  for (int i = 0; i < kHeight; ++i) sums[i][0] = sums[i][1] = _mm512_setzero_ps();
  // The tile is touched last; fetch it while the sums are made.
#pragma GCC unroll 1
  for (int i = 0; i < kHeight; ++i) {
    __builtin_prefetch(tile + i * stride, 1);
    __builtin_prefetch(tile + i * stride + 16, 1);
  }
  // The sums leave no register for what the loop does not need: it waits in memory.
  const volatile float kept_alpha = alpha;
  for (int64_t p = 0; p < k; ++p) {
    __m512 left = _mm512_loadu_ps(b), right = _mm512_loadu_ps(b + 16);
#pragma GCC unroll 14
    for (int i = 0; i < kHeight; ++i) {
      __m512 x = _mm512_set1_ps(a[i]);
      sums[i][0] = _mm512_fmadd_ps(x, left, sums[i][0]);
      sums[i][1] = _mm512_fmadd_ps(x, right, sums[i][1]);
    }
    a += kHeight;
    b += kColumns;
  }
  asm volatile("" : "+r"(tile), "+r"(stride));
  __m512 scale = _mm512_set1_ps(kept_alpha);
#pragma GCC unroll 14
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      float* target = tile + i * stride + 16 * j;
      __m512 value = _mm512_mul_ps(scale, sums[i][j]);
      if (accumulate) value = _mm512_add_ps(_mm512_loadu_ps(target), value);
      _mm512_storeu_ps(target, value);
    }
  }
}

template <size_t... kIndex>
constexpr auto make_tiles(std::index_sequence<kIndex...>) {
  return std::array{&compute_tile<static_cast<int>(kIndex) + 1>...};
}

void compute(int rows, int64_t words, const float* a, const float* b, float alpha, float* tile, int64_t stride,
             bool accumulate) {
  static constexpr auto kTiles = make_tiles(std::make_index_sequence<kRows>());
  kTiles[rows - 1](words, a, b, alpha, tile, stride, accumulate);
}

void store(PackedSource type, const float* values, int64_t count, void* target) {
  gemm_microkernel_avx2.store(type, values, count, target);
}

}  // namespace

const GemmMicrokernel gemm_microkernel_avx512 = {"avx512", kRows, kColumns, 1, 256, compute, pack_avx512, store};

}  // namespace neuron::kernels
