// AVX2: a register of 8 lanes of float32, for files of kernels that are compiled once per instruction set. Only such a
// file includes this header; its functions carry NEURON_TARGET.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define NEURON_TARGET __attribute__((target("avx2,fma,f16c")))
#define NEURON_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline

namespace neuron::kernels {
namespace {

struct Vector {
  using Register = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kSums = 12;  // registers for sums
  NEURON_INLINE static Register zero() { return _mm256_setzero_ps(); }
  NEURON_INLINE static Register load(const float* x) { return _mm256_loadu_ps(x); }
  // Of the first `count` lanes; the others are zero, and not read or written.
  NEURON_INLINE static __m256i first(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  NEURON_INLINE static Register load_first(const float* x, int64_t count) {
    return _mm256_maskload_ps(x, first(count));
  }
  NEURON_INLINE static void store_first(float* x, int64_t count, Register value) {
    _mm256_maskstore_ps(x, first(count), value);
  }
  using Lanes = __m256i;
  NEURON_INLINE static Lanes lanes(int64_t begin, int64_t end) { return _mm256_andnot_si256(first(begin), first(end)); }
  // `others` with the given lanes, which are zero there, loaded; only those are read.
  NEURON_INLINE static Register load_lanes(const float* x, Lanes lanes, Register others) {
    return _mm256_or_ps(others, _mm256_maskload_ps(x, lanes));
  }
  NEURON_INLINE static Register broadcast(float x) { return _mm256_set1_ps(x); }
  NEURON_INLINE static void store(float* x, Register value) { _mm256_storeu_ps(x, value); }
  NEURON_INLINE static Register load_float16(const uint16_t* x) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
  }
  NEURON_INLINE static Register load_bfloat16_in_order(const uint16_t* x) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  NEURON_INLINE static void load_bfloat16(const uint16_t* x, Register& even, Register& odd) {
    __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
    even = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
    odd = _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  // Lanes of pairs of bfloat16: x in the low half, y in the high one. Both hold bfloat16 values.
  NEURON_INLINE static Register pair(Register x, Register y) {
    __m256i high = _mm256_and_si256(_mm256_castps_si256(y), _mm256_set1_epi32(static_cast<int>(0xffff0000u)));
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_srli_epi32(_mm256_castps_si256(x), 16), high));
  }
  NEURON_INLINE static Register multiply_add(Register x, Register y, Register z) { return _mm256_fmadd_ps(x, y, z); }
  NEURON_INLINE static Register add(Register x, Register y) { return _mm256_add_ps(x, y); }
  NEURON_INLINE static float sum(Register x) {
    x = _mm256_add_ps(x, _mm256_permute2f128_ps(x, x, 0x01));
    x = _mm256_add_ps(x, _mm256_permute_ps(x, 0x4e));
    x = _mm256_add_ps(x, _mm256_permute_ps(x, 0xb1));
    return _mm256_cvtss_f32(x);
  }
};

}  // namespace
}  // namespace neuron::kernels
