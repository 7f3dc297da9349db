// AVX512-BF16: a register tile of 14 x 32 whose words are pairs of bfloat16 along k. One instruction adds both products
// of a pair to a float32 sum; it reads denormal operands as zero and flushes denormal sums.
#include <immintrin.h>

#include <array>
#include <cstring>
#include <utility>

#include "neuron/base/processor.h"
#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/gemm_pack.h"

// The compiler's own header leaves the unused operand of masked intrinsics undefined and then warns of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define NEURON_BFLOAT16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,fma")))

namespace neuron::kernels {
namespace {

constexpr int kRows = 14;
constexpr int kColumns = 32;

template <int kHeight>
NEURON_BFLOAT16 void compute_tile(int64_t words, const float* a, const float* b, float alpha, float* tile,
                                  int64_t stride, bool accumulate) {
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
  for (int64_t p = 0; p < words; ++p) {
    __m512bh left = reinterpret_cast<__m512bh>(_mm512_loadu_ps(b));
    __m512bh right = reinterpret_cast<__m512bh>(_mm512_loadu_ps(b + 16));
#pragma GCC unroll 14
    for (int i = 0; i < kHeight; ++i) {
      __m512bh x = reinterpret_cast<__m512bh>(_mm512_set1_ps(a[i]));
      sums[i][0] = _mm512_dpbf16_ps(sums[i][0], x, left);
      sums[i][1] = _mm512_dpbf16_ps(sums[i][1], x, right);
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

// Two rows of lanes become one row of pairs.
NEURON_BFLOAT16 void pack_adjacent_lanes(const uint16_t* source, int64_t depth_stride, int64_t count, int64_t depth,
                                         int width, uint32_t* panel) {
  for (int64_t p = 0; p < depth; p += 2, source += 2 * depth_stride, panel += width) {
    const uint16_t* second = source + depth_stride;
    bool pair = p + 1 < depth;
    for (int lane = 0; lane < width; lane += 16) {
      int64_t valid = count - lane < 0 ? 0 : count - lane < 16 ? count - lane : 16;
      auto mask = static_cast<__mmask16>((1u << valid) - 1);
      auto room = static_cast<__mmask16>(width - lane < 16 ? (1u << (width - lane)) - 1 : 0xffffu);
      __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, source + lane));
      __m512i high = _mm512_setzero_si512();
      if (pair) high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, second + lane)), 16);
      // A narrow row goes over the beginning of later ones where the panel has room: masked stores are slow.
      if (room == 0xffffu || (width < 16 && (depth - p + 1) / 2 * width >= 16)) {
        _mm512_storeu_si512(panel + lane, _mm512_or_si512(low, high));
      } else {
        _mm512_mask_storeu_epi32(panel + lane, room, _mm512_or_si512(low, high));
      }
    }
  }
}

void pack_strided(const uint16_t* source, int64_t lane_stride, int64_t depth_stride, int64_t count, int64_t depth,
                  int width, uint32_t* panel) {
  for (int64_t p = 0; p < depth; p += 2, panel += width) {
    for (int64_t lane = 0; lane < width; ++lane) {
      uint32_t word = 0;
      if (lane < count) {
        word = source[lane * lane_stride + p * depth_stride];
        if (p + 1 < depth) word |= uint32_t{source[lane * lane_stride + (p + 1) * depth_stride]} << 16;
      }
      panel[lane] = word;
    }
  }
}

// Where depth is adjacent, pairs are words of the source: a transposition of words, as for float32. A last element
// without a partner is packed apart.
void pack(PackedSource, const void* source, int64_t lane_stride, int64_t depth_stride, int64_t count, int64_t depth,
          int width, float* panel) {
  auto* values = static_cast<const uint16_t*>(source);
  auto* words = reinterpret_cast<uint32_t*>(panel);
  if (lane_stride == 1) {
    pack_adjacent_lanes(values, depth_stride, count, depth, width, words);
  } else if (depth_stride == 1) {
    int64_t pairs = depth / 2;
    pack_pairs_avx512(values, lane_stride, count, pairs, width, panel);
    if (depth % 2 != 0) {
      pack_strided(values + 2 * pairs, lane_stride, 1, count, 1, width, words + pairs * width);
    }
  } else {
    pack_strided(values, lane_stride, depth_stride, count, depth, width, words);
  }
}

void store(PackedSource type, const float* values, int64_t count, void* target) {
  gemm_microkernel_avx2.store(type, values, count, target);
}

}  // namespace

const GemmMicrokernel gemm_microkernel_bfloat16 = {"bfloat16", kRows, kColumns, 2, 512, compute, pack, store};

bool has_bfloat16_units() { return processor_features().runs_avx512_bf16(); }

bool has_bfloat16_matrix_units() { return processor_features().amx_bf16; }

}  // namespace neuron::kernels
