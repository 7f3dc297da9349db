// AVX512-BF16: a register tile of 14 x 32 whose words are pairs of bfloat16 along k. One instruction adds both products
// of a pair to a float32 sum; it reads denormal operands as zero and flushes denormal sums.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "neuron/base/processor.h"
#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/gemm_pack.h"

// The compiler's own header leaves the unused operand of masked intrinsics undefined and then warns of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define NEURON_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,fma")))
#define NEURON_INLINE __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,fma"), always_inline)) inline

namespace neuron::kernels {
namespace {

struct Units {
  using Register = __m512;
  static constexpr int kLanes = 16, kRows = 14, kNarrowRows = 14;
  NEURON_INLINE static Register zero() { return _mm512_setzero_ps(); }
  NEURON_INLINE static Register fill(float x) { return _mm512_set1_ps(x); }
  NEURON_INLINE static Register load(const void* x) { return _mm512_loadu_ps(x); }
  NEURON_INLINE static void store(float* x, Register value) { _mm512_storeu_ps(x, value); }
  NEURON_INLINE static Register broadcast(const char* word) {
    int32_t pair;
    std::memcpy(&pair, word, sizeof(pair));
    return _mm512_castsi512_ps(_mm512_set1_epi32(pair));
  }
  NEURON_INLINE static Register multiply(Register x, Register y) { return _mm512_mul_ps(x, y); }
  NEURON_INLINE static Register add(Register x, Register y) { return _mm512_add_ps(x, y); }
  // Of pairs.
  NEURON_INLINE static Register multiply_add(Register x, Register y, Register sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y));
  }
};

}  // namespace
}  // namespace neuron::kernels

#include "neuron/kernels/gemm_tile_loops.h"

namespace neuron::kernels {
namespace {

// Words of sixteen lanes, from a row of memory and the next one.
NEURON_INLINE __m512i pair_up(__m256i low, __m256i high) {
  const __m512i order = _mm512_or_si512(
      _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
      _mm512_slli_epi32(_mm512_set_epi32(47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32), 16));
  return _mm512_permutex2var_epi16(_mm512_castsi256_si512(low), order, _mm512_castsi256_si512(high));
}

// Two rows of lanes become one row of pairs.
NEURON_TARGET void pack_adjacent_lanes(const uint16_t* source, int64_t depth_stride, int64_t count, int64_t depth,
                                       int width, uint32_t* panel) {
  auto first = [](int64_t lanes) {
    return static_cast<__mmask16>(lanes >= 16 ? 0xffffu : (1u << std::max<int64_t>(lanes, 0)) - 1);
  };
  int64_t p = 0;
  if (count == width && width % 16 == 0) {
    for (; p + 1 < depth; p += 2, source += 2 * depth_stride, panel += width) {
      for (int lane = 0; lane < width; lane += 16) {
        auto* low = reinterpret_cast<const __m256i*>(source + lane);
        auto* high = reinterpret_cast<const __m256i*>(source + depth_stride + lane);
        _mm512_storeu_si512(panel + lane, pair_up(_mm256_loadu_si256(low), _mm256_loadu_si256(high)));
      }
    }
  } else if (width < 16) {
    // A narrow row goes over the beginning of later ones where the panel has room: masked stores are slow.
    __mmask16 mask = first(count);
    for (; p + 1 < depth && (depth - p + 1) / 2 * width >= 16; p += 2, source += 2 * depth_stride, panel += width) {
      _mm512_storeu_si512(panel, pair_up(_mm256_maskz_loadu_epi16(mask, source),
                                         _mm256_maskz_loadu_epi16(mask, source + depth_stride)));
    }
  }
  for (; p < depth; p += 2, source += 2 * depth_stride, panel += width) {
    for (int lane = 0; lane < width; lane += 16) {
      __mmask16 mask = first(count - lane), pairs = p + 1 < depth ? mask : __mmask16{0};
      __m512i words = pair_up(_mm256_maskz_loadu_epi16(mask, source + lane),
                              _mm256_maskz_loadu_epi16(pairs, source + depth_stride + lane));
      _mm512_mask_storeu_epi32(panel + lane, first(width - lane), words);
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

// To nearest, ties to even, as the other sets do. The unit takes denormal numbers for zeros and keeps a NaN's sign:
// those are left to them.
NEURON_TARGET void store_bfloat16(const float* values, int64_t count, uint16_t* target) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __m512 x = _mm512_loadu_ps(values + i);
    __mmask16 small = _mm512_testn_epi32_mask(_mm512_castps_si512(x), _mm512_set1_epi32(0x7f800000));
    __mmask16 zero = _mm512_testn_epi32_mask(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    if (((small ^ zero) | _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q)) != 0) {
      gemm_microkernel_avx2.store(PackedSource::BFloat16, values + i, 16, target + i);
      continue;
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + i), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
  }
  if (i < count) gemm_microkernel_avx2.store(PackedSource::BFloat16, values + i, count - i, target + i);
}

void store(PackedSource type, const float* values, int64_t count, void* target) {
  if (type == PackedSource::BFloat16) return store_bfloat16(values, count, static_cast<uint16_t*>(target));
  gemm_microkernel_avx2.store(type, values, count, target);
}

}  // namespace

const GemmMicrokernel gemm_microkernel_bfloat16 = {
    "bfloat16", Units::kRows, Units::kNarrowRows, 2 * Units::kLanes, 2, 512, compute, compute_narrow, pack, store};

bool has_bfloat16_units() { return processor_features().runs_avx512_bf16(); }

}  // namespace neuron::kernels
