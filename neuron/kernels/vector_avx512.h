// AVX-512: a register of 16 lanes of float32, for files of kernels that are compiled once per instruction set. Only
// such a file includes this header; its functions carry NEURON_TARGET.
#pragma once

#include <immintrin.h>

#include <cstdint>

// The compiler's own header leaves the unused operand of masked intrinsics undefined and then warns of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define NEURON_TARGET __attribute__((target("avx512f,avx512vl,fma")))
#define NEURON_INLINE __attribute__((target("avx512f,avx512vl,fma"), always_inline)) inline

namespace neuron::kernels {
namespace {

struct Vector {
  using Register = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kSums = 24;  // registers for sums
  NEURON_INLINE static Register zero() { return _mm512_setzero_ps(); }
  NEURON_INLINE static Register load(const float* x) { return _mm512_loadu_ps(x); }
  // Of the first `count` lanes; the others are zero, and not read or written.
  NEURON_INLINE static Register load_first(const float* x, int64_t count) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), x);
  }
  NEURON_INLINE static void store_first(float* x, int64_t count, Register value) {
    _mm512_mask_storeu_ps(x, static_cast<__mmask16>((1u << count) - 1), value);
  }
  using Lanes = __mmask16;
  NEURON_INLINE static Lanes lanes(int64_t begin, int64_t end) {
    return static_cast<Lanes>((1u << end) - (1u << begin));
  }
  // `others` with the given lanes, which are zero there, loaded; only those are read.
  NEURON_INLINE static Register load_lanes(const float* x, Lanes lanes, Register others) {
    return _mm512_mask_loadu_ps(others, lanes, x);
  }
  NEURON_INLINE static Register broadcast(float x) { return _mm512_set1_ps(x); }
  NEURON_INLINE static void store(float* x, Register value) { _mm512_storeu_ps(x, value); }
  NEURON_INLINE static Register load_float16(const uint16_t* x) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  }
  NEURON_INLINE static Register load_bfloat16_in_order(const uint16_t* x) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  NEURON_INLINE static void load_bfloat16(const uint16_t* x, Register& even, Register& odd) {
    __m512i bits = _mm512_loadu_si512(x);
    even = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
    odd = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  // Lanes of pairs of bfloat16: x in the low half, y in the high one. Both hold bfloat16 values.
  NEURON_INLINE static Register pair(Register x, Register y) {
    __m512i high = _mm512_and_si512(_mm512_castps_si512(y), _mm512_set1_epi32(static_cast<int>(0xffff0000u)));
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(x), 16), high));
  }
  NEURON_INLINE static Register multiply_add(Register x, Register y, Register z) { return _mm512_fmadd_ps(x, y, z); }
  NEURON_INLINE static Register add(Register x, Register y) { return _mm512_add_ps(x, y); }
  NEURON_INLINE static float sum(Register x) {
    x = _mm512_add_ps(x, _mm512_shuffle_f32x4(x, x, 0x4e));
    x = _mm512_add_ps(x, _mm512_shuffle_f32x4(x, x, 0xb1));
    x = _mm512_add_ps(x, _mm512_permute_ps(x, 0x4e));
    x = _mm512_add_ps(x, _mm512_permute_ps(x, 0xb1));
    return _mm512_cvtss_f32(x);
  }
};

}  // namespace
}  // namespace neuron::kernels
