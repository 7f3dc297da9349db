#include "neuron/kernels/attention_matrix_units.h"

#include <immintrin.h>

#include "neuron/kernels/matrix_target.h"

namespace neuron::kernels {
namespace {

#include "neuron/kernels/attention_vectors_avx512.h"
// After the vectors it is written on.
#include "neuron/kernels/attention_limits.h"

constexpr float kLog2E = 1.44269504f;
constexpr int64_t kTileDepth = 32;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// --- products

// The compiler does not know that tiles are loaded from memory.
NEURON_INLINE void written() { __asm__ volatile("" ::: "memory"); }

// Sums of at most three tiles side by side: numbers 0 to 2, or 3 to 5. A left tile is number 6, a right one number 7.
template <int kSet, int kColumns>
NEURON_INLINE void begin_sums(const char* place, int64_t bytes, bool add) {
  if constexpr (kSet == 0) {
    if (add) {
      _tile_loadd(0, place, bytes);
      if constexpr (kColumns > 1) _tile_loadd(1, place + 64, bytes);
      if constexpr (kColumns > 2) _tile_loadd(2, place + 128, bytes);
    } else {
      _tile_zero(0);
      if constexpr (kColumns > 1) _tile_zero(1);
      if constexpr (kColumns > 2) _tile_zero(2);
    }
  } else {
    if (add) {
      _tile_loadd(3, place, bytes);
      if constexpr (kColumns > 1) _tile_loadd(4, place + 64, bytes);
      if constexpr (kColumns > 2) _tile_loadd(5, place + 128, bytes);
    } else {
      _tile_zero(3);
      if constexpr (kColumns > 1) _tile_zero(4);
      if constexpr (kColumns > 2) _tile_zero(5);
    }
  }
}

template <int kSet, int kColumns>
NEURON_INLINE void store_sums(char* place, int64_t bytes) {
  if constexpr (kSet == 0) {
    _tile_stored(0, place, bytes);
    if constexpr (kColumns > 1) _tile_stored(1, place + 64, bytes);
    if constexpr (kColumns > 2) _tile_stored(2, place + 128, bytes);
  } else {
    _tile_stored(3, place, bytes);
    if constexpr (kColumns > 1) _tile_stored(4, place + 64, bytes);
    if constexpr (kColumns > 2) _tile_stored(5, place + 128, bytes);
  }
}

template <int kSet, int kColumns>
NEURON_INLINE void add_products(const char* left, int64_t left_bytes, const char* right, int64_t right_bytes) {
  _tile_loadd(6, left, left_bytes);
  _tile_loadd(7, right, right_bytes);
  if constexpr (kSet == 0) {
    _tile_dpbf16ps(0, 6, 7);
  } else {
    _tile_dpbf16ps(3, 6, 7);
  }
  if constexpr (kColumns > 1) {
    _tile_loadd(7, right + 64, right_bytes);
    if constexpr (kSet == 0) {
      _tile_dpbf16ps(1, 6, 7);
    } else {
      _tile_dpbf16ps(4, 6, 7);
    }
  }
  if constexpr (kColumns > 2) {
    _tile_loadd(7, right + 128, right_bytes);
    if constexpr (kSet == 0) {
      _tile_dpbf16ps(2, 6, 7);
    } else {
      _tile_dpbf16ps(5, 6, 7);
    }
  }
}

// Rows of tiles take the sets in turn: the sums of one are stored while those of the next are computed.
template <int kColumns>
NEURON_TARGET void multiply_columns(const LeftTiles& left, int64_t rows, int64_t steps, const char* right,
                                    int64_t right_bytes, float* target, int64_t target_stride, bool add) {
  const int64_t bytes = target_stride * 4, below = 16 * bytes, step = left.step, right_step = 16 * right_bytes;
  const char* from = left.data;
  char* place = reinterpret_cast<char*>(target);
  written();
  for (int64_t i = 0; i < rows; i += 32, from += 32 * left.row_bytes, place += 2 * below) {
    begin_sums<0, kColumns>(place, bytes, add);
    if (steps > 0) add_products<0, kColumns>(from, left.row_bytes, right, right_bytes);
    if (i > 0) store_sums<1, kColumns>(place - below, bytes);
    for (int64_t s = 1; s < steps; ++s) {
      add_products<0, kColumns>(from + s * step, left.row_bytes, right + s * right_step, right_bytes);
    }
    if (rows - i == 16) {
      store_sums<0, kColumns>(place, bytes);
      return;
    }
    const char* second = from + 16 * left.row_bytes;
    begin_sums<1, kColumns>(place + below, bytes, add);
    if (steps > 0) add_products<1, kColumns>(second, left.row_bytes, right, right_bytes);
    store_sums<0, kColumns>(place, bytes);
    for (int64_t s = 1; s < steps; ++s) {
      add_products<1, kColumns>(second + s * step, left.row_bytes, right + s * right_step, right_bytes);
    }
  }
  if (rows > 0) store_sums<1, kColumns>(place - below, bytes);
}

NEURON_TARGET void multiply(const LeftTiles& left, int64_t rows, int64_t depth, const void* right, int64_t right_bytes,
                            int64_t columns, float* target, int64_t target_stride, bool add) {
  const int64_t steps = depth / kTileDepth;
  const char* from = static_cast<const char*>(right);
  for (int64_t j = 0; j < columns;) {
    // Four are two and two.
    const int64_t tiles = (columns - j) / 16, together = tiles == 4 ? 2 : tiles < 3 ? tiles : 3;
    auto* body = together == 3 ? multiply_columns<3> : together == 2 ? multiply_columns<2> : multiply_columns<1>;
    body(left, rows, steps, from + j * 4, right_bytes, target + j, target_stride, add);
    j += 16 * together;
  }
}

NEURON_TARGET void scores(const LeftTiles& rows, int64_t count, int64_t depth, const void* panel, int lanes,
                          float* target) {
  multiply(rows, round_up(count, 16), depth, panel, kLanes * 4, round_up(lanes, 16), target, kLanes, false);
}

// --- the softmax between products

NEURON_TARGET void mask_scores(float* scores, int64_t count, int lanes, float scale, const float* bias,
                               const int64_t* limits, int64_t first) {
  const Vector factor = set(scale);
  for (int lane = 0; lane < lanes; lane += 16) {
    __m512i bound = _mm512_set1_epi32(static_cast<int32_t>(count));
    if (limits != nullptr) bound = relative_limits(limits + lane, first, count);
    for (int64_t k = 0; k < count; ++k) {
      float* place = scores + k * kLanes + lane;
      Vector score = multiply(load(place), factor);
      if (bias != nullptr) score = add(score, load(bias + k * kLanes + lane));
      score = lowest_where_less(bound, integers(static_cast<int32_t>(k)), score);
      store(place, score);
    }
  }
}

// 2^y by its integer below and a polynomial of the rest, the one of least relative error, which is 7.5e-5: results are
// rounded to bfloat16. Those below 2^-125 are zero.
NEURON_INLINE Vector power_of_two(Vector y) {
  constexpr int kBelow = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  Vector f = _mm512_reduce_ps(y, kBelow);
  Vector p = set(0.07802452147006989f);
  p = multiply_add(p, f, set(0.22606715559959412f));
  p = multiply_add(p, f, set(0.6958335638046265f));
  p = multiply_add(p, f, set(0.9999251961708069f));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(y, set(-125.0f), _CMP_NLT_UQ), p, y);
}

// The argument of power_of_two() for factor * (score - shift): one multiply-add, but of large scores, where the
// rounding of the product with the shift would count.
template <bool kLarge>
NEURON_INLINE Vector shift_of(Vector shift, Vector factor) {
  return kLarge ? shift : subtract(zero(), multiply(shift, factor));
}
template <bool kLarge>
NEURON_INLINE Vector argument(Vector score, Vector factor, Vector shift) {
  return kLarge ? multiply(subtract(score, shift), factor) : multiply_add(score, factor, shift);
}

NEURON_INLINE __m512i rounded_pair(Vector low, Vector high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}
// x rounded to bfloat16, halves away from zero, and units of two that are, by integer operations: those run beside the
// multiplications, for which tiles that are at work leave one unit of two.
NEURON_INLINE Vector round_up_half(Vector x) {
  __m512i y = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
  return _mm512_castsi512_ps(_mm512_and_si512(y, _mm512_set1_epi32(static_cast<int32_t>(0xffff0000))));
}
NEURON_INLINE Vector join(Vector x, Vector y) {
  const __m512i down = _mm512_set4_epi32(static_cast<int32_t>(0x80800f0e), static_cast<int32_t>(0x80800b0a),
                                         static_cast<int32_t>(0x80800706), static_cast<int32_t>(0x80800302));
  return _mm512_castsi512_ps(
      _mm512_or_si512(_mm512_shuffle_epi8(_mm512_castps_si512(x), down), _mm512_castps_si512(y)));
}

// Unit i: x[i] rounded in the low half, y[i] in the high half.
NEURON_INLINE Vector pack(Vector x, Vector y) {
  alignas(64) static constexpr uint16_t kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(kOrder), rounded_pair(x, y)));
}

// --- the forward pass of one panel and one block of keys

constexpr int64_t kTogether = 32;  // keys whose scores are computed before their exponentials: few stay near

template <int kVectors, bool kLarge, bool kKeep>
NEURON_INLINE void exponentials_of(const float* scores, int64_t count, float scale, const float* shifts,
                                   const float* keep, float* units, Vector (&sum)[kVectors],
                                   Vector (&weight)[kVectors]) {
  const Vector factor = set(scale * kLog2E);
  Vector shift[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    shift[v] = shift_of<kLarge>(load(shifts + 16 * v), factor);
    sum[v] = weight[v] = zero();
  }
  auto rounded = [&](int64_t k, int v) NEURON_TARGET __attribute__((always_inline)) {
    Vector x = power_of_two(argument<kLarge>(load(scores + k * kLanes + 16 * v), factor, shift[v]));
    sum[v] = add(sum[v], x);
    if constexpr (kKeep) {
      weight[v] = add(weight[v], x);
      return round_up_half(multiply(x, load(keep + k * kLanes + 16 * v)));
    } else {
      x = round_up_half(x);
      weight[v] = add(weight[v], x);
      return x;
    }
  };
  int64_t k = 0;
  for (; k + 2 <= count; k += 2) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Vector x = rounded(k, v);
      store(units + k / 2 * kLanes + 16 * v, join(x, rounded(k + 1, v)));
    }
  }
  if (k < count) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(units + k / 2 * kLanes + 16 * v, join(rounded(k, v), zero()));
  }
  for (int64_t u = (count + 1) / 2; u < round_up(count, 32) / 2; ++u) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(units + u * kLanes + 16 * v, zero());
  }
}

// A sum of exponentials that has grown beyond this asks for a new shift: until then exponentials are as exact as
// others.
constexpr float kMostSum = 1024;

template <int kVectors, bool kLarge, bool kKeep>
NEURON_TARGET void meet_of(const AttentionMeeting& m, AttentionLanes& lanes) {
  constexpr int kWidth = 16 * kVectors;
  const bool masked = m.bias != nullptr || !(m.scale > 0);
  const float scale = masked ? 1 : m.scale;
  float *own = m.scratch, *units = m.scratch + kTogether * kLanes;
  auto weigh = [&](int64_t begin, int64_t end) NEURON_TARGET {
    if (begin == end) return;
    multiply(m.values.from_element(begin), m.width, end - begin, units + begin / 2 * kLanes, kLanes * 4, kWidth,
             lanes.result, kLanes, lanes.started);
    lanes.started = true;
  };
  int64_t weighed = 0;
  for (int64_t k = 0; k < m.count; k += kTogether) {
    const int64_t count = m.count - k < kTogether ? m.count - k : kTogether;
    scores(m.keys.from_row(k), count, m.depth, m.panel, kWidth, own);
    const int64_t* limits = k + count > m.open ? m.limits : nullptr;
    if (masked || limits != nullptr) {
      mask_scores(own, count, kWidth, masked ? m.scale : 1, m.bias == nullptr ? nullptr : m.bias + k * kLanes, limits,
                  m.first + k);
    }
    const float* keep = kKeep ? m.keep + k * kLanes : nullptr;
    Vector sum[kVectors], weight[kVectors];
    __mmask16 changed[kVectors];
    unsigned any = 0;
    exponentials_of<kVectors, kLarge, kKeep>(own, count, scale, lanes.shifts, keep, units + k / 2 * kLanes, sum,
                                             weight);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      changed[v] = _mm512_cmp_ps_mask(sum[v], set(kMostSum), _CMP_NLE_UQ) |
                   _mm512_cmp_ps_mask(load(lanes.largest + 16 * v), set(-__FLT_MAX__), _CMP_LT_OQ);
      any |= changed[v];
    }
    if (any != 0) {
      // Lanes without keys so far have no shift either.
      weigh(weighed, k);
      weighed = k;
      alignas(64) float fades[kLanes];
      bool large = false;
      for (int v = 0; v < kVectors; ++v) {
        Vector before = load(lanes.largest + 16 * v), best = before;
        for (int64_t i = 0; i < count; ++i) best = maximum(load(own + i * kLanes + 16 * v), best);
        Vector now = _mm512_mask_mov_ps(before, changed[v], best);
        Vector fade = power_of_two(multiply(multiply(subtract(before, now), set(scale)), set(kLog2E)));
        fade = _mm512_mask_mov_ps(set(1), _mm512_cmp_ps_mask(before, now, _CMP_NEQ_UQ), fade);
        store(lanes.largest + 16 * v, now);
        store(lanes.shifts + 16 * v, zero_where_below(now, -__FLT_MAX__, now));
        store(lanes.sums + 16 * v, multiply(load(lanes.sums + 16 * v), fade));
        store(lanes.weights + 16 * v, multiply(load(lanes.weights + 16 * v), fade));
        store(fades + 16 * v, fade);
        Vector size = _mm512_abs_ps(multiply(load(lanes.shifts + 16 * v), set(scale)));
        large |= _mm512_cmp_ps_mask(size, set(kLargeScore), _CMP_GE_OQ) != 0;
      }
      for (int64_t j = 0; j < m.width && lanes.started; ++j) {
        for (int v = 0; v < kVectors; ++v) {
          float* place = lanes.result + j * kLanes + 16 * v;
          store(place, multiply(load(place), load(fades + 16 * v)));
        }
      }
      lanes.large |= large;
      if (lanes.large) {
        exponentials_of<kVectors, true, kKeep>(own, count, scale, lanes.shifts, keep, units + k / 2 * kLanes, sum,
                                               weight);
      } else {
        exponentials_of<kVectors, kLarge, kKeep>(own, count, scale, lanes.shifts, keep, units + k / 2 * kLanes, sum,
                                                 weight);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store(lanes.sums + 16 * v, add(load(lanes.sums + 16 * v), sum[v]));
      store(lanes.weights + 16 * v, add(load(lanes.weights + 16 * v), weight[v]));
    }
  }
  weigh(weighed, round_up(m.count, 32));
}

template <int kVectors>
NEURON_TARGET void meet_by(const AttentionMeeting& m, AttentionLanes& lanes) {
  if (m.keep == nullptr) {
    if (lanes.large) return meet_of<kVectors, true, false>(m, lanes);
    return meet_of<kVectors, false, false>(m, lanes);
  }
  if (lanes.large) return meet_of<kVectors, true, true>(m, lanes);
  return meet_of<kVectors, false, true>(m, lanes);
}

NEURON_TARGET void meet(const AttentionMeeting& m, AttentionLanes& lanes) {
  auto* body = m.lanes > 32 ? meet_by<3> : m.lanes > 16 ? meet_by<2> : meet_by<1>;
  body(m, lanes);
}

// --- the backward pass

// One row of 48 elements from at most three vectors.
template <int kVectors>
NEURON_INLINE void store_row(uint16_t* row, const Vector (&x)[kVectors]) {
  _mm512_storeu_si512(row, rounded_pair(x[0], kVectors > 1 ? x[kVectors > 1 ? 1 : 0] : zero()));
  __m256i last =
      kVectors > 2 ? reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x[kVectors > 2 ? 2 : 0])) : _mm256_setzero_si256();
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + 32), last);
}

template <int kVectors, bool kLarge, bool kKeep>
NEURON_TARGET void softmax_gradient_of(const float* scores, const float* gradients, int64_t count, float score_scale,
                                       const SoftmaxGradient& inputs, uint16_t* probabilities,
                                       uint16_t* score_gradients, int64_t row_elements, float* units) {
  const Vector factor = set((kLarge ? 1 : score_scale) * kLog2E), one = set(kLog2E);
  Vector shift[kVectors], inverse[kVectors], correction[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    shift[v] = shift_of<kLarge>(load(inputs.maxima + 16 * v), one);
    inverse[v] = load(inputs.inverse_sums + 16 * v);
    correction[v] = load(inputs.corrections + 16 * v);
  }
  auto key = [&](int64_t k, Vector(&g)[kVectors]) NEURON_TARGET __attribute__((always_inline)) {
    Vector x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t place = k * kLanes + 16 * v;
      Vector gradient = load(gradients + place);
      Vector p = multiply(power_of_two(argument<kLarge>(load(scores + place), factor, shift[v])), inverse[v]);
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
  auto* body = score_scale == 0 ? (inputs.keep == nullptr ? softmax_gradient_of<kVectors, true, false>
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

NEURON_TARGET void transpose_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t width, char* target) {
  alignas(64) static constexpr uint16_t kLow[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                    8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i low_order = _mm512_load_si512(kLow), high_order = _mm512_add_epi16(low_order, _mm512_set1_epi16(16));
  const int64_t step = round_up(width, 16) * 64;
  for (int64_t k = 0; k < count; k += 32, target += step) {
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
      char* place = target + j * 64;
      transpose(low);
      for (int i = 0; i < 16; ++i) store(reinterpret_cast<float*>(place + i * 64), low[i]);
      if (width - j <= 16) break;
      transpose(high);
      for (int i = 0; i < 16; ++i) store(reinterpret_cast<float*>(place + (16 + i) * 64), high[i]);
    }
  }
}

NEURON_TARGET void turn(const float* scores, int64_t keys, int count, float scale, float* rows, int64_t stride) {
  const Vector factor = set(scale);
  for (int64_t k = 0; k < keys; k += 16) {
    const int64_t rest = keys - k;
    Vector block[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) block[i] = i < rest ? multiply(load(scores + (k + i) * 16), factor) : zero();
    transpose(block);
    for (int i = 0; i < count; ++i) {
      if (rest >= 16) {
        store(rows + i * stride + k, block[i]);
      } else {
        store_first(rows + i * stride + k, rest, block[i]);
      }
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
                                                     .meet = meet,
                                                     .softmax_gradient = softmax_gradient,
                                                     .copy_rows = copy_rows,
                                                     .transpose_rows = transpose_rows,
                                                     .turn = turn,
                                                     .store_lanes = store_lanes,
                                                     .store_rows = store_rows};

}  // namespace neuron::kernels
