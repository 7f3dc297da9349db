// AVX-512: sixteen words to a register.
#include "neuron/kernels/vector_avx512.h"
// The formula is a template over the lanes: after the macros.
#include "neuron/base/box_muller.h"

namespace neuron::kernels {
namespace {

struct Lanes {
  using Words = __m512i;
  using Floats = __m512;
  static constexpr int kCount = 16;
  NEURON_INLINE static Words load64(const uint64_t* x) { return _mm512_loadu_si512(x); }
  NEURON_INLINE static void store(void* to, Words x) { _mm512_storeu_si512(to, x); }
  NEURON_INLINE static Words splat64(uint64_t x) { return _mm512_set1_epi64(static_cast<int64_t>(x)); }
  NEURON_INLINE static Words add64(Words x, Words y) { return _mm512_add_epi64(x, y); }
  template <int bits>
  NEURON_INLINE static Words shift_left64(Words x) {
    return _mm512_slli_epi64(x, bits);
  }
  template <int bits>
  NEURON_INLINE static Words shift_right64(Words x) {
    return _mm512_srli_epi64(x, bits);
  }
  NEURON_INLINE static Words product(Words x, Words y) { return _mm512_mul_epu32(x, y); }
  NEURON_INLINE static Words joined(Words x, Words y) { return _mm512_mask_shuffle_epi32(x, 0xaaaa, y, _MM_PERM_CCAA); }
  NEURON_INLINE static Words chosen(Words x, Words y, Words sign) {
    return _mm512_mask_blend_epi32(_mm512_cmplt_epi32_mask(sign, _mm512_setzero_si512()), x, y);
  }
  NEURON_INLINE static Words words(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  NEURON_INLINE static Floats floats(float x) { return _mm512_set1_ps(x); }
  NEURON_INLINE static Words as_words(Floats x) { return _mm512_castps_si512(x); }
  NEURON_INLINE static Floats as_floats(Words x) { return _mm512_castsi512_ps(x); }
  NEURON_INLINE static Floats to_floats(Words x) { return _mm512_cvtepi32_ps(x); }
  NEURON_INLINE static Words add(Words x, Words y) { return _mm512_add_epi32(x, y); }
  NEURON_INLINE static Words subtract(Words x, Words y) { return _mm512_sub_epi32(x, y); }
  NEURON_INLINE static Words both(Words x, Words y) { return _mm512_and_si512(x, y); }
  NEURON_INLINE static Words either(Words x, Words y) { return _mm512_or_si512(x, y); }
  NEURON_INLINE static Words differ(Words x, Words y) { return _mm512_xor_si512(x, y); }
  NEURON_INLINE static Words differ(Words x, Words y, Words z) { return _mm512_ternarylogic_epi32(x, y, z, 0x96); }
  template <int bits>
  NEURON_INLINE static Words shift_left(Words x) {
    return _mm512_slli_epi32(x, bits);
  }
  template <int bits>
  NEURON_INLINE static Words shift_right(Words x) {
    return _mm512_srli_epi32(x, bits);
  }
  template <int bits>
  NEURON_INLINE static Words shift_right_signed(Words x) {
    return _mm512_srai_epi32(x, bits);
  }
  NEURON_INLINE static Floats subtract(Floats x, Floats y) { return _mm512_sub_ps(x, y); }
  NEURON_INLINE static Floats multiply(Floats x, Floats y) { return _mm512_mul_ps(x, y); }
  NEURON_INLINE static Floats multiply_add(Floats x, Floats y, Floats z) { return _mm512_fmadd_ps(x, y, z); }
  NEURON_INLINE static Floats square_root(Floats x) { return _mm512_sqrt_ps(x); }
};

}  // namespace
}  // namespace neuron::kernels

// The loops are written over Lanes.
#include "neuron/kernels/random_line_loops.h"

namespace neuron::kernels {

const RandomLines random_lines_avx512 = kRandomLines;

}  // namespace neuron::kernels
