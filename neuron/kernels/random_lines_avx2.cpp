// AVX2: eight words to a register.
#include "neuron/kernels/vector_avx2.h"
// The formula is a template over the lanes: after the macros.
#include "neuron/base/box_muller.h"

namespace neuron::kernels {
namespace {

struct Lanes {
  using Words = __m256i;
  using Floats = __m256;
  static constexpr int kCount = 8;
  NEURON_INLINE static Words load64(const uint64_t* x) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  }
  NEURON_INLINE static void store(void* to, Words x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }
  NEURON_INLINE static Words splat64(uint64_t x) { return _mm256_set1_epi64x(static_cast<int64_t>(x)); }
  NEURON_INLINE static Words add64(Words x, Words y) { return _mm256_add_epi64(x, y); }
  template <int bits>
  NEURON_INLINE static Words shift_left64(Words x) {
    return _mm256_slli_epi64(x, bits);
  }
  template <int bits>
  NEURON_INLINE static Words shift_right64(Words x) {
    return _mm256_srli_epi64(x, bits);
  }
  NEURON_INLINE static Words product(Words x, Words y) { return _mm256_mul_epu32(x, y); }
  NEURON_INLINE static Words joined(Words x, Words y) { return _mm256_blend_epi32(x, _mm256_slli_epi64(y, 32), 0xaa); }
  NEURON_INLINE static Words chosen(Words x, Words y, Words sign) {
    return as_words(_mm256_blendv_ps(as_floats(x), as_floats(y), as_floats(sign)));
  }
  NEURON_INLINE static Words words(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  NEURON_INLINE static Floats floats(float x) { return _mm256_set1_ps(x); }
  NEURON_INLINE static Words as_words(Floats x) { return _mm256_castps_si256(x); }
  NEURON_INLINE static Floats as_floats(Words x) { return _mm256_castsi256_ps(x); }
  NEURON_INLINE static Floats to_floats(Words x) { return _mm256_cvtepi32_ps(x); }
  NEURON_INLINE static Words add(Words x, Words y) { return _mm256_add_epi32(x, y); }
  NEURON_INLINE static Words subtract(Words x, Words y) { return _mm256_sub_epi32(x, y); }
  NEURON_INLINE static Words both(Words x, Words y) { return _mm256_and_si256(x, y); }
  NEURON_INLINE static Words either(Words x, Words y) { return _mm256_or_si256(x, y); }
  NEURON_INLINE static Words differ(Words x, Words y) { return _mm256_xor_si256(x, y); }
  NEURON_INLINE static Words differ(Words x, Words y, Words z) { return differ(x, differ(y, z)); }
  template <int bits>
  NEURON_INLINE static Words shift_left(Words x) {
    return _mm256_slli_epi32(x, bits);
  }
  template <int bits>
  NEURON_INLINE static Words shift_right(Words x) {
    return _mm256_srli_epi32(x, bits);
  }
  template <int bits>
  NEURON_INLINE static Words shift_right_signed(Words x) {
    return _mm256_srai_epi32(x, bits);
  }
  NEURON_INLINE static Floats subtract(Floats x, Floats y) { return _mm256_sub_ps(x, y); }
  NEURON_INLINE static Floats multiply(Floats x, Floats y) { return _mm256_mul_ps(x, y); }
  NEURON_INLINE static Floats multiply_add(Floats x, Floats y, Floats z) { return _mm256_fmadd_ps(x, y, z); }
  NEURON_INLINE static Floats square_root(Floats x) { return _mm256_sqrt_ps(x); }
};

}  // namespace
}  // namespace neuron::kernels

// The loops are written over Lanes.
#include "neuron/kernels/random_line_loops.h"

namespace neuron::kernels {

const RandomLines random_lines_avx2 = kRandomLines;

}  // namespace neuron::kernels
