// AVX-512 with products of pairs of bfloat16 (VDPBF16PS: float32 accumulation, denormal operands are zero).
#include <immintrin.h>

#include "neuron/kernels/attention_tiles.h"

// GCC 12 takes the intrinsics' undefined operands for uses of uninitialised variables.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#define NEURON_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512bf16,fma")))
#define NEURON_INLINE NEURON_TARGET __attribute__((always_inline)) inline

namespace neuron::kernels {
namespace {

#include "neuron/kernels/attention_vectors_avx512.h"

// After the vectors it is written on.
#include "neuron/kernels/attention_tile_loops.h"
// After the units it is written on.
#include "neuron/kernels/attention_row_loops.h"
// After the rows ahead of which it asks.
#include "neuron/kernels/attention_group_loops.h"

struct PairUnits {
  static constexpr bool kPairs = true;
  NEURON_INLINE static Vector step(Vector x, Vector y, Vector sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y));
  }
  // Unit i: x[i] rounded to bfloat16 in the low half, y[i] in the high half.
  NEURON_INLINE static Vector pack(Vector x, Vector y) {
    alignas(64) static constexpr uint16_t kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    __m512i both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(y, x));
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(kOrder), both));
  }
  NEURON_INLINE static void store(uint16_t* target, Vector x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
  }
};

struct PairGroup {
  static constexpr int kNear = 2;
  NEURON_INLINE static __m256 step(__m256 x, __m256 y, __m256 sum) {
    return _mm256_dpbf16_ps(sum, reinterpret_cast<__m256bh>(x), reinterpret_cast<__m256bh>(y));
  }
};

struct PairElements : FloatElements {
  static constexpr int kNear = 2;
  NEURON_INLINE static Vector step(Vector x, Vector y, Vector sum) { return PairUnits::step(x, y, sum); }
};

// Elements of two rows of 32 by turns: 16 units from the first halves, 16 from the second.
NEURON_INLINE void interleave(__m512i x, __m512i y, __m512i& low, __m512i& high) {
  alignas(64) static constexpr uint16_t kLow[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                    8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  __m512i order = _mm512_load_si512(kLow);
  low = _mm512_permutex2var_epi16(x, order, y);
  high = _mm512_permutex2var_epi16(x, _mm512_add_epi16(order, _mm512_set1_epi16(16)), y);
}

NEURON_INLINE __m512i load_row(const char* row, int64_t count) {
  if (count >= 32) return _mm512_loadu_si512(row);
  return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << count) - 1), row);
}

NEURON_TARGET void pair_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t width, uint32_t* units,
                             int64_t unit_stride) {
  for (int64_t k = 0; k < count; k += 2, rows += 2 * row_bytes, units += unit_stride) {
    for (int64_t j = 0; j < width; j += 32) {
      int64_t rest = width - j;
      __m512i x = load_row(rows + j * 2, rest), low, high;
      __m512i y = k + 1 < count ? load_row(rows + row_bytes + j * 2, rest) : _mm512_setzero_si512();
      interleave(x, y, low, high);
      _mm512_mask_storeu_epi32(units + j, first_lanes(rest < 16 ? rest : 16), low);
      if (rest > 16) _mm512_mask_storeu_epi32(units + j + 16, first_lanes(rest < 32 ? rest - 16 : 16), high);
    }
  }
}

// Two keys a step: their rows are interleaved in registers. Weights are pairs.
template <int kCount, int kBlocks>
NEURON_TARGET void weigh_pair_rows_tile(const char* rows, int64_t row_bytes, const WeighedPart& part, int64_t width,
                                        const float* weights, int64_t lanes, float* target, int64_t target_stride) {
  Vector sums[kCount][2 * kBlocks];
#pragma GCC unroll 8
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < 2 * kBlocks; ++v) {
      int64_t rest = width - 16 * v;
      const float* sum = target + r * target_stride + 16 * v;
      sums[r][v] = part.begin == 0 || rest <= 0 ? zero() : rest >= 16 ? load(sum) : load_first(sum, rest);
    }
  }
  int64_t last = width - 32 * (kBlocks - 1);  // elements of the last block
  Fetch<kCount <= PairElements::kNear, 64 * kBlocks> fetch(part);
  for (int64_t k = part.begin; k < part.end; k += 2, rows += 2 * row_bytes, weights += lanes) {
    bool paired = k + 1 < part.end;
    __m512i row[2 * kBlocks];
    fetch.row(rows);
    if (paired) fetch.row(rows + row_bytes);
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      int64_t rest = b == kBlocks - 1 ? last : 32;
      __m512i x = load_row(rows + 64 * b, rest);
      __m512i y = paired ? load_row(rows + row_bytes + 64 * b, rest) : _mm512_setzero_si512();
      interleave(x, y, row[2 * b], row[2 * b + 1]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) {
      Vector pair = broadcast(weights + r);
#pragma GCC unroll 8
      for (int v = 0; v < 2 * kBlocks; ++v) sums[r][v] = PairUnits::step(pair, _mm512_castsi512_ps(row[v]), sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < 2 * kBlocks; ++v) {
      int64_t rest = width - 16 * v;
      if (rest >= 16) {
        store(target + r * target_stride + 16 * v, sums[r][v]);
      } else if (rest > 0) {
        store_first(target + r * target_stride + 16 * v, rest, sums[r][v]);
      }
    }
  }
}

template <int kCount>
NEURON_TARGET void weigh_pair_rows_of(const char* rows, int64_t row_bytes, WeighedPart& part, int64_t width,
                                      const float* weights, int64_t lanes, float* target, int64_t target_stride) {
  constexpr int kBlocks = weighed_vectors(kCount) / 2, kSome = kBlocks > 2 ? 2 : kBlocks;
  int64_t j = 0;
  for (; width - j >= 32 * kBlocks; j += 32 * kBlocks, part.next_tile()) {
    weigh_pair_rows_tile<kCount, kBlocks>(rows + j * 2, row_bytes, part, 32 * kBlocks, weights, lanes, target + j,
                                          target_stride);
  }
  for (; width - j >= 32 * kSome; j += 32 * kSome, part.next_tile()) {
    weigh_pair_rows_tile<kCount, kSome>(rows + j * 2, row_bytes, part, 32 * kSome, weights, lanes, target + j,
                                        target_stride);
  }
  for (; j < width; j += 32, part.next_tile()) {
    weigh_pair_rows_tile<kCount, 1>(rows + j * 2, row_bytes, part, width - j < 32 ? width - j : 32, weights, lanes,
                                    target + j, target_stride);
  }
}

// pairs[k / 2][lane] = weights of keys k and k + 1, rounded; a missing last one is zero.
NEURON_TARGET void pair_weights(const float* weights, int64_t keys, int lanes, float* pairs) {
  alignas(64) uint16_t order[32];
  for (int i = 0; i < 32; ++i) {
    const int unit = i / 2;
    order[i] = static_cast<uint16_t>((unit / lanes * 2 + i % 2) * lanes + unit % lanes);
  }
  const __m512i by = _mm512_load_si512(order);
  const int64_t count = keys * lanes;
  for (int64_t j = 0; j < count; j += 32) {
    auto at = [&](int64_t first) NEURON_TARGET {
      int64_t rest = count - first;
      return rest >= 16 ? load(weights + first) : rest <= 0 ? zero() : load_first(weights + first, rest);
    };
    __m512i rounded = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(at(j + 16), at(j)));
    store(pairs + j / 2, _mm512_castsi512_ps(_mm512_permutexvar_epi16(by, rounded)));
  }
}

struct WeighPairRows {
  const char* rows;
  int64_t row_bytes;
  WeighedPart& part;
  int64_t width;
  const float* pairs;
  int64_t lanes;
  float* target;
  int64_t target_stride;
  template <int kCount>
  NEURON_INLINE void run(int r) const {
    weigh_pair_rows_of<kCount>(rows, row_bytes, part, width, pairs + r, lanes, target + r * target_stride,
                               target_stride);
  }
};

NEURON_TARGET void weigh_pair_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t width,
                                   const float* weights, int lanes, int vectors, float* target, int64_t target_stride,
                                   const char* next) {
  alignas(64) float pairs[kMostVectors * kMostWeighed / 2];
  pair_weights(weights, count, lanes, pairs);
  over_parts(rows, row_bytes, count, width * 2, vectors <= PairElements::kNear, weighing_tiles(vectors, width), next,
             [&](const char* first, WeighedPart& part) NEURON_TARGET {
               over_vectors(vectors, WeighPairRows{first, row_bytes, part, width, pairs + part.begin / 2 * lanes, lanes,
                                                   target, target_stride});
             });
}

}  // namespace

const AttentionTiles attention_tiles_avx512_bf16 = {
    .name = "avx512_bf16",
    .floats = {rows_by_panel<FloatUnits>, columns_by_panel<FloatUnits>, rows_by_rows<FloatUnits>,
               exponentials<FloatUnits>, softmax_gradient<FloatUnits>},
    .pairs = {rows_by_panel<PairUnits>, columns_by_panel<PairUnits>, rows_by_rows<PairUnits>, exponentials<PairUnits>,
              softmax_gradient<PairUnits>},
    .float_rows = {dot_rows<FloatElements>, dot_groups<FloatGroup>, weigh_rows<FloatElements>},
    .half_rows = {dot_rows<HalfElements>, dot_groups_widened<HalfElements>, weigh_rows<HalfElements>},
    .bfloat16_rows = {dot_rows<BFloat16Elements>, dot_groups_widened<BFloat16Elements>, weigh_rows<BFloat16Elements>},
    .bfloat16_pair_rows = {dot_rows<PairElements>, dot_groups<PairGroup>, weigh_pair_rows},
    .mask = mask_scores,
    .advance = advance,
    .scale_lanes = scale_lanes,
    .dropout = dropout,
    .to_lanes = to_lanes,
    .from_lanes = from_lanes,
    .pair_rows = pair_rows,
    .row_exponentials = row_exponentials,
    .row_maximum = row_maximum,
    .lane_exponentials = lane_exponentials,
    .lane_maxima = lane_maxima,
    .row_dot = row_dot};

}  // namespace neuron::kernels
