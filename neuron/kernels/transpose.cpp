#include "neuron/kernels/transpose.h"

#include <immintrin.h>

#include "neuron/kernels/avx2.h"

namespace neuron::kernels {
namespace {

// 8 x 8 elements of 4 bytes: pairs of rows, pairs of pairs, halves.
NEURON_AVX2 inline void transpose_8x8(uint32_t* target, int64_t target_row, const uint32_t* source,
                                      int64_t source_column) {
  __m256 rows[8], pairs[8];
  // Each register takes four elements of two source lines, so that halves need no exchange at the end.
  for (int i = 0; i < 4; ++i) {
    const auto* upper = reinterpret_cast<const float*>(source + i * source_column);
    const auto* lower = reinterpret_cast<const float*>(source + (i + 4) * source_column);
    rows[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(upper)), _mm_loadu_ps(lower), 1);
    rows[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(upper + 4)), _mm_loadu_ps(lower + 4), 1);
  }
  for (int half = 0; half < 8; half += 4) {
    pairs[half] = _mm256_unpacklo_ps(rows[half], rows[half + 1]);
    pairs[half + 1] = _mm256_unpackhi_ps(rows[half], rows[half + 1]);
    pairs[half + 2] = _mm256_unpacklo_ps(rows[half + 2], rows[half + 3]);
    pairs[half + 3] = _mm256_unpackhi_ps(rows[half + 2], rows[half + 3]);
    const __m256 columns[4] = {_mm256_shuffle_ps(pairs[half], pairs[half + 2], 0x44),
                               _mm256_shuffle_ps(pairs[half], pairs[half + 2], 0xee),
                               _mm256_shuffle_ps(pairs[half + 1], pairs[half + 3], 0x44),
                               _mm256_shuffle_ps(pairs[half + 1], pairs[half + 3], 0xee)};
    for (int i = 0; i < 4; ++i)
      _mm256_storeu_ps(reinterpret_cast<float*>(target + (half + i) * target_row), columns[i]);
  }
}

// 8 x 8 elements of 2 bytes.
NEURON_AVX2 inline void transpose_8x8(uint16_t* target, int64_t target_row, const uint16_t* source,
                                      int64_t source_column) {
  __m128i rows[8], pairs[8], fours[8];
  for (int i = 0; i < 8; ++i) rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i * source_column));
  for (int i = 0; i < 4; ++i) {
    pairs[i] = _mm_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
    pairs[i + 4] = _mm_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
  }
  for (int half = 0; half < 8; half += 4) {
    fours[half] = _mm_unpacklo_epi32(pairs[half], pairs[half + 1]);
    fours[half + 1] = _mm_unpackhi_epi32(pairs[half], pairs[half + 1]);
    fours[half + 2] = _mm_unpacklo_epi32(pairs[half + 2], pairs[half + 3]);
    fours[half + 3] = _mm_unpackhi_epi32(pairs[half + 2], pairs[half + 3]);
    const __m128i columns[4] = {
        _mm_unpacklo_epi64(fours[half], fours[half + 2]), _mm_unpackhi_epi64(fours[half], fours[half + 2]),
        _mm_unpacklo_epi64(fours[half + 1], fours[half + 3]), _mm_unpackhi_epi64(fours[half + 1], fours[half + 3])};
    for (int i = 0; i < 4; ++i)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(target + (half + i) * target_row), columns[i]);
  }
}

// 4 x 4 elements of 8 bytes.
NEURON_AVX2 inline void transpose_4x4(uint64_t* target, int64_t target_row, const uint64_t* source,
                                      int64_t source_column) {
  __m256d rows[4];
  for (int i = 0; i < 2; ++i) {
    const auto* upper = reinterpret_cast<const double*>(source + i * source_column);
    const auto* lower = reinterpret_cast<const double*>(source + (i + 2) * source_column);
    rows[i] = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(upper)), _mm_loadu_pd(lower), 1);
    rows[i + 2] = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(upper + 2)), _mm_loadu_pd(lower + 2), 1);
  }
  auto* to = reinterpret_cast<double*>(target);
  _mm256_storeu_pd(to, _mm256_unpacklo_pd(rows[0], rows[1]));
  _mm256_storeu_pd(to + target_row, _mm256_unpackhi_pd(rows[0], rows[1]));
  _mm256_storeu_pd(to + 2 * target_row, _mm256_unpacklo_pd(rows[2], rows[3]));
  _mm256_storeu_pd(to + 3 * target_row, _mm256_unpackhi_pd(rows[2], rows[3]));
}

}  // namespace

NEURON_AVX2 void transpose_small_square(uint16_t* target, int64_t target_row, const uint16_t* source,
                                        int64_t source_column) {
  transpose_8x8(target, target_row, source, source_column);
}

NEURON_AVX2 void transpose_small_square(uint32_t* target, int64_t target_row, const uint32_t* source,
                                        int64_t source_column) {
  transpose_8x8(target, target_row, source, source_column);
}

NEURON_AVX2 void transpose_square(uint16_t* target, int64_t target_row, const uint16_t* source, int64_t source_column) {
  for (int64_t i = 0; i < 16; i += 8) {
    for (int64_t j = 0; j < 16; j += 8)
      transpose_8x8(target + i * target_row + j, target_row, source + i + j * source_column, source_column);
  }
}

NEURON_AVX2 void transpose_square(uint32_t* target, int64_t target_row, const uint32_t* source, int64_t source_column) {
  for (int64_t i = 0; i < 16; i += 8) {
    for (int64_t j = 0; j < 16; j += 8)
      transpose_8x8(target + i * target_row + j, target_row, source + i + j * source_column, source_column);
  }
}

NEURON_AVX2 void transpose_square(uint64_t* target, int64_t target_row, const uint64_t* source, int64_t source_column) {
  for (int64_t i = 0; i < 16; i += 4) {
    for (int64_t j = 0; j < 16; j += 4)
      transpose_4x4(target + i * target_row + j, target_row, source + i + j * source_column, source_column);
  }
}

}  // namespace neuron::kernels
