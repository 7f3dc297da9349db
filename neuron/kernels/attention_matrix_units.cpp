#include "neuron/kernels/attention_matrix_units.h"

#include <immintrin.h>

#include "neuron/kernels/matrix_units.h"

// GCC 12 takes the intrinsics' undefined operands for uses of uninitialised variables.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#define NEURON_TARGET __attribute__((target(NEURON_MATRIX_UNITS)))
#define NEURON_INLINE NEURON_TARGET __attribute__((always_inline)) inline

namespace neuron::kernels {
namespace {

#include "neuron/kernels/attention_vectors_avx512.h"

constexpr float kLog2E = 1.44269504f;
constexpr int64_t kTileDepth = 32;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// --- products

// The compiler does not know that tiles are loaded from memory.
NEURON_INLINE void written() { __asm__ volatile("" ::: "memory"); }

// One block of the target: kRows x kColumns tiles, numbers 0 to 5. A left tile is number 6, a right one number 7.
template <int kRows, int kColumns>
NEURON_INLINE void multiply_block(const char* left, int64_t left_bytes, int64_t steps, const char* right,
                                  int64_t right_bytes, float* target, int64_t target_bytes, bool add) {
  char* place = reinterpret_cast<char*>(target);
  char* below = place + 16 * target_bytes;
  written();
  if (add) {
    _tile_loadd(0, place, target_bytes);
    if constexpr (kColumns > 1) _tile_loadd(1, place + 64, target_bytes);
    if constexpr (kColumns > 2) _tile_loadd(2, place + 128, target_bytes);
    if constexpr (kRows > 1) {
      _tile_loadd(3, below, target_bytes);
      if constexpr (kColumns > 1) _tile_loadd(4, below + 64, target_bytes);
      if constexpr (kColumns > 2) _tile_loadd(5, below + 128, target_bytes);
    }
  } else {
    _tile_zero(0);
    if constexpr (kColumns > 1) _tile_zero(1);
    if constexpr (kColumns > 2) _tile_zero(2);
    if constexpr (kRows > 1) {
      _tile_zero(3);
      if constexpr (kColumns > 1) _tile_zero(4);
      if constexpr (kColumns > 2) _tile_zero(5);
    }
  }
  const char* left_below = left + 16 * left_bytes;
  for (int64_t s = 0; s < steps; ++s) {
    _tile_loadd(7, right, right_bytes);
    _tile_loadd(6, left, left_bytes);
    _tile_dpbf16ps(0, 6, 7);
    if constexpr (kRows == 1) {
      if constexpr (kColumns > 1) {
        _tile_loadd(7, right + 64, right_bytes);
        _tile_dpbf16ps(1, 6, 7);
      }
      if constexpr (kColumns > 2) {
        _tile_loadd(7, right + 128, right_bytes);
        _tile_dpbf16ps(2, 6, 7);
      }
    } else {
      _tile_loadd(6, left_below, left_bytes);
      _tile_dpbf16ps(3, 6, 7);
      if constexpr (kColumns > 1) {
        _tile_loadd(7, right + 64, right_bytes);
        _tile_dpbf16ps(4, 6, 7);
        _tile_loadd(6, left, left_bytes);
        _tile_dpbf16ps(1, 6, 7);
      }
      if constexpr (kColumns > 2) {
        _tile_loadd(7, right + 128, right_bytes);
        _tile_dpbf16ps(2, 6, 7);
        _tile_loadd(6, left_below, left_bytes);
        _tile_dpbf16ps(5, 6, 7);
      }
    }
    left += 64;
    left_below += 64;
    right += 16 * right_bytes;
  }
  _tile_stored(0, place, target_bytes);
  if constexpr (kColumns > 1) _tile_stored(1, place + 64, target_bytes);
  if constexpr (kColumns > 2) _tile_stored(2, place + 128, target_bytes);
  if constexpr (kRows > 1) {
    _tile_stored(3, below, target_bytes);
    if constexpr (kColumns > 1) _tile_stored(4, below + 64, target_bytes);
    if constexpr (kColumns > 2) _tile_stored(5, below + 128, target_bytes);
  }
}

template <int kColumns>
NEURON_TARGET void multiply_columns(const char* left, int64_t left_bytes, int64_t rows, int64_t steps,
                                    const char* right, int64_t right_bytes, float* target, int64_t target_stride,
                                    bool add) {
  for (int64_t i = 0; i < rows; i += 32, left += 32 * left_bytes, target += 32 * target_stride) {
    if (rows - i >= 32) {
      multiply_block<2, kColumns>(left, left_bytes, steps, right, right_bytes, target, target_stride * 4, add);
    } else {
      multiply_block<1, kColumns>(left, left_bytes, steps, right, right_bytes, target, target_stride * 4, add);
    }
  }
}

NEURON_TARGET void multiply(const char* left, int64_t left_bytes, int64_t rows, int64_t depth, const void* right,
                            int64_t right_bytes, int64_t columns, float* target, int64_t target_stride, bool add) {
  const int64_t steps = depth / kTileDepth;
  const char* from = static_cast<const char*>(right);
  for (int64_t j = 0; j < columns;) {
    // Four are two and two.
    const int64_t tiles = (columns - j) / 16, together = tiles == 4 ? 2 : tiles < 3 ? tiles : 3;
    auto* body = together == 3 ? multiply_columns<3> : together == 2 ? multiply_columns<2> : multiply_columns<1>;
    body(left, left_bytes, rows, steps, from + j * 4, right_bytes, target + j, target_stride, add);
    j += 16 * together;
  }
}

template <int kVectors>
NEURON_INLINE void largest(const float* scores, int64_t count, Vector (&best)[kVectors]) {
  for (int64_t k = 0; k < count; ++k) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) best[v] = maximum(load(scores + k * kLanes + 16 * v), best[v]);
  }
}

// The maxima of a pair of tiles are taken while the next ones are being computed.
template <int kVectors>
NEURON_TARGET void scores_of(const char* rows, int64_t row_bytes, int64_t count, int64_t steps, const char* panel,
                             float* target, float* maxima) {
  Vector best[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) best[v] = maxima == nullptr ? zero() : load(maxima + 16 * v);
  for (int64_t i = 0; i < count; i += 32) {
    float* place = target + i * kLanes;
    if (count - i > 16) {
      multiply_block<2, kVectors>(rows + i * row_bytes, row_bytes, steps, panel, kLanes * 4, place, kLanes * 4, false);
    } else {
      multiply_block<1, kVectors>(rows + i * row_bytes, row_bytes, steps, panel, kLanes * 4, place, kLanes * 4, false);
    }
    if (maxima != nullptr && i > 0) largest<kVectors>(place - 32 * kLanes, 32, best);
  }
  if (maxima == nullptr) return;
  const int64_t last = (count - 1) / 32 * 32;
  largest<kVectors>(target + last * kLanes, count - last, best);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) store(maxima + 16 * v, best[v]);
}

NEURON_TARGET void scores(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const void* panel,
                          int lanes, float* target, float* maxima) {
  auto* body = lanes > 32 ? scores_of<3> : lanes > 16 ? scores_of<2> : scores_of<1>;
  body(rows, row_bytes, count, depth / kTileDepth, static_cast<const char*>(panel), target, maxima);
}

// --- the softmax between products

NEURON_TARGET void mask_scores(float* scores, int64_t count, int lanes, float scale, const float* bias,
                               const int64_t* limits, int64_t first, float* maxima) {
  const Vector factor = set(scale);
  for (int lane = 0; lane < lanes; lane += 16) {
    Vector best = load(maxima + lane);
    __m512i bound = _mm512_set1_epi32(static_cast<int32_t>(count));
    if (limits != nullptr) {
      alignas(64) int32_t relative[16];
      for (int i = 0; i < 16; ++i) {
        int64_t last = limits[lane + i] - first;
        relative[i] = static_cast<int32_t>(last < -1 ? -1 : last > count ? count : last);
      }
      bound = load_integers(relative);
    }
    for (int64_t k = 0; k < count; ++k) {
      float* place = scores + k * kLanes + lane;
      Vector score = multiply(load(place), factor);
      if (bias != nullptr) score = add(score, load(bias + k * kLanes + lane));
      score = lowest_where_less(bound, integers(static_cast<int32_t>(k)), score);
      store(place, score);
      best = maximum(score, best);
    }
    store(maxima + lane, best);
  }
}

// 2^y by its integer below and a polynomial of the rest, the one of least relative error, which is 2.7e-6: results are
// rounded to bfloat16, and their sum to no more than its terms are good for. Results below 2^-125 are zero.
NEURON_INLINE Vector power_of_two(Vector y) {
  constexpr int kBelow = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  Vector f = _mm512_reduce_ps(y, kBelow);
  Vector p = set(0.013534167781472206f);
  p = multiply_add(p, f, set(0.052011460065841675f));
  p = multiply_add(p, f, set(0.2414427548646927f));
  p = multiply_add(p, f, set(0.6930038332939148f));
  p = multiply_add(p, f, set(1.0000026226043701f));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(y, set(-125.0f), _CMP_NLT_UQ), p, y);
}

// The argument of power_of_two() for a score: of those still to be scaled one multiply-add. The others may be the
// lowest numbers, which no factor may exceed.
template <bool kScaled>
NEURON_INLINE Vector shift_of(const float* shifts) {
  return kScaled ? multiply(load(shifts), set(-kLog2E)) : load(shifts);
}
template <bool kScaled>
NEURON_INLINE Vector argument(Vector score, Vector factor, Vector shift) {
  return kScaled ? multiply_add(score, factor, shift) : multiply(subtract(score, shift), factor);
}

NEURON_INLINE __m512i rounded_pair(Vector low, Vector high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}
// Unit i: x[i] rounded in the low half, y[i] in the high half.
NEURON_INLINE Vector pack(Vector x, Vector y) {
  alignas(64) static constexpr uint16_t kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(kOrder), rounded_pair(x, y)));
}

template <int kVectors, bool kScaled, bool kKeep>
NEURON_TARGET void exponentials_of(float* scores, int64_t count, float scale, const float* shifts, float* sums,
                                   const float* keep) {
  const Vector factor = set(kScaled ? scale * kLog2E : kLog2E);
  Vector sum[kVectors], shift[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    shift[v] = shift_of<kScaled>(shifts + 16 * v);
    sum[v] = zero();
  }
  auto exponential = [&](int64_t k, int v) NEURON_TARGET __attribute__((always_inline)) {
    return power_of_two(argument<kScaled>(load(scores + k * kLanes + 16 * v), factor, shift[v]));
  };
  auto kept = [&](Vector x, int64_t k, int v) NEURON_TARGET
      __attribute__((always_inline)) { return kKeep ? multiply(x, load(keep + k * kLanes + 16 * v)) : x; };
  int64_t k = 0;
  for (; k + 2 <= count; k += 2) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Vector x = exponential(k, v), y = exponential(k + 1, v);
      sum[v] = add(add(sum[v], x), y);
      store(scores + k / 2 * kLanes + 16 * v, pack(kept(x, k, v), kept(y, k + 1, v)));
    }
  }
  if (k < count) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Vector x = exponential(k, v);
      sum[v] = add(sum[v], x);
      store(scores + k / 2 * kLanes + 16 * v, pack(kept(x, k, v), zero()));
    }
  }
  for (int64_t u = (count + 1) / 2; u < round_up(count, kTileDepth) / 2; ++u) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(scores + u * kLanes + 16 * v, zero());
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) store(sums + 16 * v, add(load(sums + 16 * v), sum[v]));
}

template <int kVectors>
NEURON_TARGET void exponentials_by(float* scores, int64_t count, float scale, const float* shifts, float* sums,
                                   const float* keep) {
  auto* body =
      scale != 0 ? (keep == nullptr ? exponentials_of<kVectors, true, false> : exponentials_of<kVectors, true, true>)
                 : (keep == nullptr ? exponentials_of<kVectors, false, false> : exponentials_of<kVectors, false, true>);
  body(scores, count, scale, shifts, sums, keep);
}

NEURON_TARGET void exponentials(float* scores, int64_t count, int lanes, float scale, const float* shifts, float* sums,
                                const float* keep) {
  auto* body = lanes > 32 ? exponentials_by<3> : lanes > 16 ? exponentials_by<2> : exponentials_by<1>;
  body(scores, count, scale, shifts, sums, keep);
}

// One row of 48 elements from at most three vectors.
template <int kVectors>
NEURON_INLINE void store_row(uint16_t* row, const Vector (&x)[kVectors]) {
  _mm512_storeu_si512(row, rounded_pair(x[0], kVectors > 1 ? x[kVectors > 1 ? 1 : 0] : zero()));
  __m256i last =
      kVectors > 2 ? reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x[kVectors > 2 ? 2 : 0])) : _mm256_setzero_si256();
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + 32), last);
}

template <int kVectors, bool kScaled, bool kKeep>
NEURON_TARGET void softmax_gradient_of(const float* scores, const float* gradients, int64_t count, float score_scale,
                                       const SoftmaxGradient& inputs, uint16_t* probabilities,
                                       uint16_t* score_gradients, int64_t row_elements, float* units) {
  const Vector factor = set(kScaled ? score_scale * kLog2E : kLog2E);
  Vector shift[kVectors], inverse[kVectors], correction[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    shift[v] = shift_of<kScaled>(inputs.maxima + 16 * v);
    inverse[v] = load(inputs.inverse_sums + 16 * v);
    correction[v] = load(inputs.corrections + 16 * v);
  }
  auto key = [&](int64_t k, Vector(&g)[kVectors]) NEURON_TARGET __attribute__((always_inline)) {
    Vector x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t place = k * kLanes + 16 * v;
      Vector gradient = load(gradients + place);
      Vector p = multiply(power_of_two(argument<kScaled>(load(scores + place), factor, shift[v])), inverse[v]);
      x[v] = p;
      if constexpr (kKeep) {
        Vector keep = load(inputs.keep + place);
        x[v] = multiply(p, keep);
        gradient = multiply(gradient, keep);
      }
      g[v] = multiply(p, subtract(gradient, correction[v]));
    }
    store_row<kVectors>(probabilities + k * row_elements, x);
    store_row<kVectors>(score_gradients + k * row_elements, g);
  };
  for (int64_t k = 0; k < count; k += 2) {
    Vector g[kVectors], h[kVectors];
    key(k, g);
    if (k + 1 < count) {
      key(k + 1, h);
    } else {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) h[v] = zero();
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(units + k / 2 * kLanes + 16 * v, pack(g[v], h[v]));
  }
  const int64_t padded = round_up(count, kTileDepth);
  for (int64_t u = (count + 1) / 2; u < padded / 2; ++u) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(units + u * kLanes + 16 * v, zero());
  }
  const Vector none[kVectors] = {};
  for (int64_t k = count; k < padded; ++k) {
    store_row<kVectors>(probabilities + k * row_elements, none);
    store_row<kVectors>(score_gradients + k * row_elements, none);
  }
}

template <int kVectors>
NEURON_TARGET void softmax_gradient_by(const float* scores, const float* gradients, int64_t count, float score_scale,
                                       const SoftmaxGradient& inputs, uint16_t* probabilities,
                                       uint16_t* score_gradients, int64_t row_elements, float* units) {
  auto* body = score_scale != 0 ? (inputs.keep == nullptr ? softmax_gradient_of<kVectors, true, false>
                                                          : softmax_gradient_of<kVectors, true, true>)
                                : (inputs.keep == nullptr ? softmax_gradient_of<kVectors, false, false>
                                                          : softmax_gradient_of<kVectors, false, true>);
  body(scores, gradients, count, score_scale, inputs, probabilities, score_gradients, row_elements, units);
}

NEURON_TARGET void softmax_gradient(const float* scores, const float* gradients, int64_t count, int lanes,
                                    float score_scale, const SoftmaxGradient& inputs, uint16_t* probabilities,
                                    uint16_t* score_gradients, int64_t row_elements, float* units) {
  auto* body = lanes > 32 ? softmax_gradient_by<3> : lanes > 16 ? softmax_gradient_by<2> : softmax_gradient_by<1>;
  body(scores, gradients, count, score_scale, inputs, probabilities, score_gradients, row_elements, units);
}

// --- layout

NEURON_INLINE __m512i load_elements(const char* row, int64_t count) {
  if (count >= 32) return _mm512_loadu_si512(row);
  return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << count) - 1), row);
}

NEURON_INLINE void store_elements(char* row, int64_t count, Vector low, Vector high) {
  __m512i x = rounded_pair(low, high);
  if (count >= 32) {
    _mm512_storeu_si512(row, x);
  } else {
    _mm512_mask_storeu_epi16(row, static_cast<__mmask32>((uint64_t{1} << count) - 1), x);
  }
}

NEURON_TARGET void copy_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t width, char* target,
                             int64_t target_bytes, int64_t padded_rows) {
  for (int64_t at = 0; at < target_bytes; at += 64) {
    const int64_t rest = width - at / 2;
    const auto mask = static_cast<__mmask32>(rest >= 32 ? ~uint32_t{0} : (uint32_t{1} << (rest < 0 ? 0 : rest)) - 1);
    for (int64_t k = 0; k < count; ++k) {
      _mm512_storeu_si512(target + k * target_bytes + at, _mm512_maskz_loadu_epi16(mask, rows + k * row_bytes + at));
    }
    for (int64_t k = count; k < padded_rows; ++k) {
      _mm512_storeu_si512(target + k * target_bytes + at, _mm512_setzero_si512());
    }
  }
}

NEURON_TARGET void transpose_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t width, char* target,
                                  int64_t target_bytes) {
  alignas(64) static constexpr uint16_t kLow[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                    8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i low_order = _mm512_load_si512(kLow), high_order = _mm512_add_epi16(low_order, _mm512_set1_epi16(16));
  for (int64_t k = 0; k < count; k += 32) {
    for (int64_t j = 0; j < width; j += 32) {
      Vector low[16], high[16];
#pragma GCC unroll 16
      for (int u = 0; u < 16; ++u) {
        const char* row = rows + (k + 2 * u) * row_bytes + j * 2;
        __m512i x = k + 2 * u < count ? load_elements(row, width - j) : _mm512_setzero_si512();
        __m512i y = k + 2 * u + 1 < count ? load_elements(row + row_bytes, width - j) : _mm512_setzero_si512();
        low[u] = _mm512_castsi512_ps(_mm512_permutex2var_epi16(x, low_order, y));
        high[u] = _mm512_castsi512_ps(_mm512_permutex2var_epi16(x, high_order, y));
      }
      char* place = target + j * target_bytes + k * 2;
      transpose(low);
      for (int i = 0; i < 16; ++i) store(reinterpret_cast<float*>(place + i * target_bytes), low[i]);
      if (width - j <= 16) break;
      transpose(high);
      for (int i = 0; i < 16; ++i) store(reinterpret_cast<float*>(place + (16 + i) * target_bytes), high[i]);
    }
  }
}

NEURON_TARGET void store_lanes(const float* panel, int lanes, int64_t units, const float* factors, char* const* rows) {
  for (int lane = 0; lane < lanes; lane += 16) {
    const Vector factor = load(factors + lane);
    for (int64_t u = 0; u < units; u += 32) {
      Vector low[16], high[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        low[i] = u + i < units ? multiply(load(panel + (u + i) * kLanes + lane), factor) : zero();
        high[i] = u + 16 + i < units ? multiply(load(panel + (u + 16 + i) * kLanes + lane), factor) : zero();
      }
      transpose(low);
      transpose(high);
      const int64_t rest = units - u;
      for (int i = 0; i < 16 && lane + i < lanes; ++i) store_elements(rows[lane + i] + u * 2, rest, low[i], high[i]);
    }
  }
}

NEURON_TARGET void store_rows(const float* values, int64_t stride, int64_t count, int64_t width, float factor,
                              char* target, int64_t target_bytes) {
  const Vector by = set(factor);
  for (int64_t i = 0; i < count; ++i, values += stride, target += target_bytes) {
    for (int64_t j = 0; j < width; j += 32) {
      const int64_t rest = width - j;
      Vector low = multiply(rest < 16 ? load_first(values + j, rest) : load(values + j), by), high = zero();
      if (rest >= 32) {
        high = multiply(load(values + j + 16), by);
      } else if (rest > 16) {
        high = multiply(load_first(values + j + 16, rest - 16), by);
      }
      store_elements(target + j * 2, rest, low, high);
    }
  }
}

}  // namespace

const AttentionMatrixUnits attention_matrix_units = {.scores = scores,
                                                     .multiply = multiply,
                                                     .mask = mask_scores,
                                                     .exponentials = exponentials,
                                                     .softmax_gradient = softmax_gradient,
                                                     .copy_rows = copy_rows,
                                                     .transpose_rows = transpose_rows,
                                                     .store_lanes = store_lanes,
                                                     .store_rows = store_rows};

}  // namespace neuron::kernels
