#include "neuron/kernels/attention_rows.h"

#include <immintrin.h>

#include <cmath>
#include <limits>

#define NEURON_AVX2 __attribute__((target("avx2,fma")))

namespace neuron::kernels {
namespace {

// exp(x) = 2^n * p(r), n = round(x / ln 2), r = x - n ln 2 in two steps, p the Taylor polynomial of degree 7 on
// |r| <= ln(2) / 2: its error is below one unit in the last place.
NEURON_AVX2 inline __m256 exponential(__m256 x) {
  const __m256 smallest = _mm256_set1_ps(-87.33654f), largest = _mm256_set1_ps(88.72283f);
  __m256 vanishes = _mm256_cmp_ps(x, smallest, _CMP_LT_OQ);
  // The bound is the first operand: a NaN in x then survives.
  x = _mm256_min_ps(largest, _mm256_max_ps(smallest, x));
  __m256 n =
      _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-0.693145752f), x);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(-1.42860677e-6f), r);
  __m256 p = _mm256_set1_ps(1.0f / 5040);
  for (float coefficient : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) {
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(coefficient));
  }
  // 2^n in two factors: n = 128 has no float of its own.
  __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  __m256i rest = _mm256_sub_epi32(whole, half), bias = _mm256_set1_epi32(127);
  __m256 first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
  __m256 second = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
  return _mm256_andnot_ps(vanishes, _mm256_mul_ps(_mm256_mul_ps(p, first), second));
}

NEURON_AVX2 inline float reduce_lanes(__m256 low, __m256 high) {
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, _mm256_add_ps(low, high));
  for (int half = 4; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// The last, partial group of 16 as a padded copy.
struct Tail {
  alignas(32) float values[16];
  int64_t count;
  Tail(const float* source, int64_t count, float padding) : count(count) {
    for (int64_t i = 0; i < 16; ++i) values[i] = i < count ? source[i] : padding;
  }
  void store(float* target) const {
    for (int64_t i = 0; i < count; ++i) target[i] = values[i];
  }
};

}  // namespace

NEURON_AVX2 float exponentials(float* row, int64_t count, float maximum) {
  __m256 shift = _mm256_set1_ps(maximum), low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
  int64_t j = 0;
  for (; j + 16 <= count; j += 16) {
    __m256 x = exponential(_mm256_sub_ps(_mm256_loadu_ps(row + j), shift));
    __m256 y = exponential(_mm256_sub_ps(_mm256_loadu_ps(row + j + 8), shift));
    _mm256_storeu_ps(row + j, x);
    _mm256_storeu_ps(row + j + 8, y);
    low = _mm256_add_ps(low, x);
    high = _mm256_add_ps(high, y);
  }
  if (j < count) {
    Tail tail(row + j, count - j, -std::numeric_limits<float>::infinity());
    __m256 x = exponential(_mm256_sub_ps(_mm256_load_ps(tail.values), shift));
    __m256 y = exponential(_mm256_sub_ps(_mm256_load_ps(tail.values + 8), shift));
    _mm256_store_ps(tail.values, x);
    _mm256_store_ps(tail.values + 8, y);
    low = _mm256_add_ps(low, x);
    high = _mm256_add_ps(high, y);
    tail.store(row + j);
  }
  return reduce_lanes(low, high);
}

NEURON_AVX2 float row_maximum(const float* row, int64_t count) {
  float lowest = -std::numeric_limits<float>::infinity();
  __m256 best = _mm256_set1_ps(lowest);
  int64_t j = 0;
  // With the accumulated maximum as the second operand a NaN on the left is passed over.
  for (; j + 8 <= count; j += 8) best = _mm256_max_ps(_mm256_loadu_ps(row + j), best);
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, best);
  for (; j < count; ++j) lowest = row[j] > lowest ? row[j] : lowest;
  for (float lane : lanes) lowest = lane > lowest ? lane : lowest;
  return lowest;
}

NEURON_AVX2 float row_dot(const float* x, const float* y, int64_t count) {
  __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
  int64_t j = 0;
  for (; j + 16 <= count; j += 16) {
    low = _mm256_fmadd_ps(_mm256_loadu_ps(x + j), _mm256_loadu_ps(y + j), low);
    high = _mm256_fmadd_ps(_mm256_loadu_ps(x + j + 8), _mm256_loadu_ps(y + j + 8), high);
  }
  if (j < count) {
    Tail left(x + j, count - j, 0), right(y + j, count - j, 0);
    low = _mm256_fmadd_ps(_mm256_load_ps(left.values), _mm256_load_ps(right.values), low);
    high = _mm256_fmadd_ps(_mm256_load_ps(left.values + 8), _mm256_load_ps(right.values + 8), high);
  }
  return reduce_lanes(low, high);
}

NEURON_AVX2 void scale_row(float* row, int64_t count, float factor) {
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) {
    _mm256_storeu_ps(row + j, _mm256_mul_ps(_mm256_loadu_ps(row + j), _mm256_set1_ps(factor)));
  }
  for (; j < count; ++j) row[j] *= factor;
}

NEURON_AVX2 void score_gradients(float* probabilities, const float* gradients, int64_t count, float correction,
                                 float scale) {
  int64_t j = 0;
  __m256 shift = _mm256_set1_ps(correction), factor = _mm256_set1_ps(scale);
  for (; j + 8 <= count; j += 8) {
    __m256 difference = _mm256_sub_ps(_mm256_loadu_ps(gradients + j), shift);
    __m256 value = _mm256_mul_ps(_mm256_loadu_ps(probabilities + j), _mm256_mul_ps(difference, factor));
    _mm256_storeu_ps(probabilities + j, value);
  }
  for (; j < count; ++j) probabilities[j] *= (gradients[j] - correction) * scale;
}

}  // namespace neuron::kernels
