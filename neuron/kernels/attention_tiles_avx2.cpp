// AVX2: sixteen floats in two registers; and which set this processor takes.
#include <immintrin.h>

#include <cstring>

#include "neuron/base/error.h"
#include "neuron/base/processor.h"
#include "neuron/kernels/attention_tiles.h"

#define NEURON_TARGET __attribute__((target("avx2,fma,f16c")))
#define NEURON_INLINE NEURON_TARGET __attribute__((always_inline)) inline

namespace neuron::kernels {
namespace {

constexpr int kTileRows = 6;
constexpr int kTileVectors = 1;
constexpr int kDotSums = 6;  // of registers, two each
constexpr int kDotRegisters = 2;
constexpr int kGroupSums = 12;
constexpr int kMostWeighedAtOnce = 4;
constexpr int weighed_vectors(int count) { return count == 1 ? 2 : 1; }

struct Vector {
  __m256 a, b;  // lanes 0 to 7, 8 to 15
};
struct Integers {
  __m256i a, b;
};

NEURON_INLINE Vector zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
NEURON_INLINE Vector set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
NEURON_INLINE Vector load(const float* x) { return {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)}; }
NEURON_INLINE void store(float* target, Vector x) {
  _mm256_storeu_ps(target, x.a);
  _mm256_storeu_ps(target + 8, x.b);
}
NEURON_INLINE Integers first_lanes(int64_t count) {
  __m256i bound = _mm256_set1_epi32(static_cast<int32_t>(count));
  return {_mm256_cmpgt_epi32(bound, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
          _mm256_cmpgt_epi32(bound, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15))};
}
// The first `count` < 16 elements; the others are zero, or not written.
NEURON_INLINE Vector load_first(const float* x, int64_t count) {
  Integers mask = first_lanes(count);
  return {_mm256_maskload_ps(x, mask.a), _mm256_maskload_ps(x + 8, mask.b)};
}
NEURON_INLINE void store_first(float* target, int64_t count, Vector x) {
  Integers mask = first_lanes(count);
  _mm256_maskstore_ps(target, mask.a, x.a);
  _mm256_maskstore_ps(target + 8, mask.b, x.b);
}
NEURON_INLINE Vector broadcast(const float* x) {
  __m256 value = _mm256_broadcast_ss(x);
  return {value, value};
}
NEURON_INLINE Vector add(Vector x, Vector y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
NEURON_INLINE Vector subtract(Vector x, Vector y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
NEURON_INLINE Vector multiply(Vector x, Vector y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
NEURON_INLINE Vector multiply_add(Vector x, Vector y, Vector z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
// The second operand where the first is NaN.
NEURON_INLINE Vector maximum(Vector x, Vector y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }

// x = n + f with n the nearest integer, halves to even; both are exact.
NEURON_INLINE void split(Vector x, Vector& n, Vector& f) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  n = {_mm256_round_ps(x.a, kMode), _mm256_round_ps(x.b, kMode)};
  f = subtract(x, n);
}
// y, zero where x is below the bound.
NEURON_INLINE Vector zero_where_below(Vector x, float bound, Vector y) {
  __m256 limit = _mm256_set1_ps(bound);
  return {_mm256_and_ps(_mm256_cmp_ps(x.a, limit, _CMP_NLT_UQ), y.a),
          _mm256_and_ps(_mm256_cmp_ps(x.b, limit, _CMP_NLT_UQ), y.b)};
}
NEURON_INLINE __m256 half_times_power_of_two(__m256 x, __m256 n) {
  __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_add_epi32(exponent, _mm256_set1_epi32(0x3f800000))));
}
// x times 2 to the integers n, which is not denormal; zero where y is below the bound.
NEURON_INLINE Vector times_power_of_two(Vector x, Vector n, Vector y, float bound) {
  return zero_where_below(y, bound, {half_times_power_of_two(x.a, n.a), half_times_power_of_two(x.b, n.b)});
}

NEURON_INLINE Integers integers(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
NEURON_INLINE Integers load_integers(const int32_t* x) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + 8))};
}
NEURON_INLINE Integers exclusive_or(Integers x, Integers y) {
  return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)};
}
NEURON_INLINE Integers shift_right_8(Integers x) { return {_mm256_srli_epi32(x.a, 8), _mm256_srli_epi32(x.b, 8)}; }
NEURON_INLINE __m256 where_less(__m256i x, __m256i y, __m256 then, __m256 otherwise) {
  return _mm256_blendv_ps(otherwise, then, _mm256_castsi256_ps(_mm256_cmpgt_epi32(y, x)));
}
// y, -infinity where bound < position.
NEURON_INLINE Vector lowest_where_less(Integers bound, Integers position, Vector y) {
  __m256 lowest = _mm256_set1_ps(-__builtin_inff());
  return {where_less(bound.a, position.a, lowest, y.a), where_less(bound.b, position.b, lowest, y.b)};
}
NEURON_INLINE Vector lowest_from(int64_t count, Vector x) {
  Integers mask = first_lanes(count);
  __m256 lowest = _mm256_set1_ps(-__builtin_inff());
  return {_mm256_blendv_ps(lowest, x.a, _mm256_castsi256_ps(mask.a)),
          _mm256_blendv_ps(lowest, x.b, _mm256_castsi256_ps(mask.b))};
}
// `value` where x < y, else zero.
NEURON_INLINE Vector value_where_less(Integers x, Integers y, Vector value) {
  return {where_less(x.a, y.a, value.a, _mm256_setzero_ps()), where_less(x.b, y.b, value.b, _mm256_setzero_ps())};
}
NEURON_INLINE void half_multiply_wide(__m256i x, uint32_t y, __m256i& low, __m256i& high) {
  __m256i factor = _mm256_set1_epi64x(y);
  __m256i even = _mm256_mul_epu32(x, factor), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), factor);
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
NEURON_INLINE void multiply_wide(Integers x, uint32_t y, Integers& low, Integers& high) {
  half_multiply_wide(x.a, y, low.a, high.a);
  half_multiply_wide(x.b, y, low.b, high.b);
}

NEURON_INLINE void transpose_8(__m256 (&x)[8]) {
  __m256 y[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
    x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
    x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
    x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    y[i] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x20);
    y[i + 4] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x31);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) x[i] = y[i];
}

NEURON_INLINE void transpose(Vector (&x)[16]) {
  __m256 quarters[4][8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    quarters[0][i] = x[i].a;
    quarters[1][i] = x[i].b;
    quarters[2][i] = x[i + 8].a;
    quarters[3][i] = x[i + 8].b;
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) transpose_8(quarters[i]);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    x[i] = {quarters[0][i], quarters[2][i]};
    x[i + 8] = {quarters[1][i], quarters[3][i]};
  }
}

// Units in memory.
struct FloatElements {
  static constexpr int kBytes = 4, kNear = 2;
  NEURON_INLINE static Vector load(const char* x) {
    auto* floats = reinterpret_cast<const float*>(x);
    return {_mm256_loadu_ps(floats), _mm256_loadu_ps(floats + 8)};
  }
  NEURON_INLINE static Vector load_first(const char* x, int64_t count) {
    alignas(32) float first[16] = {};
    std::memcpy(first, x, static_cast<size_t>(count) * sizeof(float));
    return {_mm256_load_ps(first), _mm256_load_ps(first + 8)};
  }
  NEURON_INLINE static Vector step(Vector x, Vector y, Vector sum) { return multiply_add(x, y, sum); }
};
// Of 16 bits: `Widen` makes eight of them floats.
template <typename Widen>
struct NarrowElements : FloatElements {
  static constexpr int kBytes = 2, kNear = 2;
  NEURON_INLINE static Vector load(const char* x) {
    auto* halves = reinterpret_cast<const __m128i*>(x);
    return {Widen::widen(_mm_loadu_si128(halves)), Widen::widen(_mm_loadu_si128(halves + 1))};
  }
  NEURON_INLINE static Vector load_first(const char* x, int64_t count) {
    alignas(16) char first[32] = {};
    std::memcpy(first, x, static_cast<size_t>(count) * 2);
    return load(first);
  }
};
struct WidenHalf {
  NEURON_INLINE static __m256 widen(__m128i x) { return _mm256_cvtph_ps(x); }
};
struct WidenBFloat16 {
  NEURON_INLINE static __m256 widen(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
};
using HalfElements = NarrowElements<WidenHalf>;
using BFloat16Elements = NarrowElements<WidenBFloat16>;

NEURON_INLINE __m256 half_sum(Vector x) { return _mm256_add_ps(x.a, x.b); }
NEURON_INLINE float lane_sum(Vector x) {
  __m256 eight = half_sum(x);
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
// The sums of x's and y's fours, one in each half.
NEURON_INLINE __m256 sums_of_four(__m256 x, __m256 y) {
  return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
}
NEURON_INLINE void four_lane_sums(const Vector* x, float* values) {
  __m256 four = sums_of_four(half_sum(x[0]), half_sum(x[1])), more = sums_of_four(half_sum(x[2]), half_sum(x[3]));
  __m256 two = _mm256_add_ps(_mm256_shuffle_ps(four, more, 0x44), _mm256_shuffle_ps(four, more, 0xee));
  __m256 one = _mm256_add_ps(two, _mm256_movehdup_ps(two));
  one = _mm256_shuffle_ps(one, one, 0x88);  // 0 2 | 1 3
  _mm_storeu_ps(values, _mm_unpacklo_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1)));
}

// values[i]: the sum of the lanes of sums[i], halves added in turn: 8, 4, 2, 1.
template <int kRows>
NEURON_INLINE void reduce_lanes(Vector* sums, float* values) {
  constexpr int kFours = kRows / 4 * 4;
#pragma GCC unroll 4
  for (int i = 0; i < kFours; i += 4) four_lane_sums(sums + i, values + i);
#pragma GCC unroll 4
  for (int i = kFours; i < kRows; ++i) values[i] = lane_sum(sums[i]);
}

// After the vectors it is written on.
#include "neuron/kernels/attention_tile_loops.h"
// After the units it is written on.
#include "neuron/kernels/attention_row_loops.h"
// After the rows ahead of which it asks.
#include "neuron/kernels/attention_group_loops.h"

}  // namespace

const AttentionTiles attention_tiles_avx2 = {
    .name = "avx2",
    .floats = {rows_by_panel<FloatUnits>, columns_by_panel<FloatUnits>, rows_by_rows<FloatUnits>,
               exponentials<FloatUnits>, softmax_gradient<FloatUnits>},
    .pairs = {},
    .float_rows = {dot_rows<FloatElements>, dot_groups<FloatGroup>, weigh_rows<FloatElements>},
    .half_rows = {dot_rows<HalfElements>, dot_groups_widened<HalfElements>, weigh_rows<HalfElements>},
    .bfloat16_rows = {dot_rows<BFloat16Elements>, dot_groups_widened<BFloat16Elements>, weigh_rows<BFloat16Elements>},
    .bfloat16_pair_rows = {},
    .mask = mask_scores,
    .advance = advance,
    .scale_lanes = scale_lanes,
    .dropout = dropout,
    .to_lanes = to_lanes,
    .from_lanes = from_lanes,
    .pair_rows = nullptr,
    .row_exponentials = row_exponentials,
    .row_maximum = row_maximum,
    .lane_exponentials = lane_exponentials,
    .lane_maxima = lane_maxima,
    .row_dot = row_dot};

const AttentionTiles& detected_attention_tiles() {
  static const AttentionTiles* const best = []() -> const AttentionTiles* {
    const ProcessorFeatures& processor = processor_features();
    if (processor.runs_avx512_bf16()) return &attention_tiles_avx512_bf16;
    if (processor.runs_avx512()) return &attention_tiles_avx512;
    return processor.runs_avx2() ? &attention_tiles_avx2 : nullptr;
  }();
  if (best == nullptr) {
    fail(ErrorKind::NotImplemented,
         "attention needs a processor with AVX2, FMA and F16C, which this one lacks; run on another machine");
  }
  return *best;
}

}  // namespace neuron::kernels
