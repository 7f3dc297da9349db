#include "neuron/kernels/row_conversion.h"

#include <immintrin.h>

#include <cstring>

#include "neuron/base/float_formats.h"

#define NEURON_AVX2 __attribute__((target("avx2,fma,f16c")))

namespace neuron::kernels {
namespace {

NEURON_AVX2 int64_t widen_adjacent_bfloat16(const uint16_t* source, int64_t count, float* values) {
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) {
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + j)));
    _mm256_storeu_ps(values + j, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)));
  }
  return j;
}

NEURON_AVX2 int64_t widen_adjacent_float16(const uint16_t* source, int64_t count, float* values) {
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) {
    __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + j));
    _mm256_storeu_ps(values + j, _mm256_cvtph_ps(halves));
  }
  return j;
}

// A NaN keeps its sign and becomes quiet.
NEURON_AVX2 int64_t round_adjacent_bfloat16(const float* values, int64_t count, uint16_t* target) {
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) {
    __m256 x = _mm256_loadu_ps(values + j);
    __m256i bits = _mm256_castps_si256(x);
    __m256i tie = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i sum = _mm256_add_epi32(_mm256_add_epi32(tie, _mm256_set1_epi32(0x7fff)), bits);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(sum, quiet, is_nan), 16);
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + j), packed);
  }
  return j;
}

NEURON_AVX2 int64_t round_adjacent_float16(const float* values, int64_t count, uint16_t* target) {
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) {
    __m128i packed = _mm256_cvtps_ph(_mm256_loadu_ps(values + j), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + j), packed);
  }
  return j;
}

}  // namespace

void widen_row(DType dtype, const char* source, int64_t stride, int64_t count, float* values) {
  if (dtype == DType::Float32) {
    auto* floats = reinterpret_cast<const float*>(source);
    if (stride == 1) {
      std::memcpy(values, floats, static_cast<size_t>(count) * sizeof(float));
    } else {
      for (int64_t j = 0; j < count; ++j) values[j] = floats[j * stride];
    }
    return;
  }
  auto* narrow = reinterpret_cast<const uint16_t*>(source);
  int64_t j = 0;
  if (dtype == DType::BFloat16) {
    if (stride == 1) j = widen_adjacent_bfloat16(narrow, count, values);
    for (; j < count; ++j) values[j] = bfloat16_to_float(narrow[j * stride]);
  } else {
    if (stride == 1) j = widen_adjacent_float16(narrow, count, values);
    for (; j < count; ++j) values[j] = float16_to_float(narrow[j * stride]);
  }
}

void round_row(DType dtype, const float* values, int64_t count, char* target, int64_t stride) {
  if (dtype == DType::Float32) {
    auto* floats = reinterpret_cast<float*>(target);
    if (stride == 1) {
      std::memcpy(floats, values, static_cast<size_t>(count) * sizeof(float));
    } else {
      for (int64_t j = 0; j < count; ++j) floats[j * stride] = values[j];
    }
    return;
  }
  auto* narrow = reinterpret_cast<uint16_t*>(target);
  int64_t j = 0;
  if (dtype == DType::BFloat16) {
    if (stride == 1) j = round_adjacent_bfloat16(values, count, narrow);
    for (; j < count; ++j) narrow[j * stride] = float_to_bfloat16(values[j]);
  } else {
    if (stride == 1) j = round_adjacent_float16(values, count, narrow);
    for (; j < count; ++j) narrow[j * stride] = float_to_float16(values[j]);
  }
}

}  // namespace neuron::kernels
