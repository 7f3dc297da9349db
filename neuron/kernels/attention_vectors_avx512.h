// Sixteen floats in one AVX-512 register: what attention_tile_loops.h is written on. Included by the files of the
// AVX-512 sets inside their unnamed namespace, after they have defined NEURON_TARGET and NEURON_INLINE.

using Vector = __m512;
using Integers = __m512i;

constexpr int kTileRows = 8;
constexpr int kTileVectors = 3;
constexpr int kDotSums = 16;  // registers of sums
constexpr int kDotRegisters = 4;
constexpr int kGroupSums = 16;
constexpr int kMostWeighedAtOnce = 8;
constexpr int weighed_vectors(int count) { return count <= 2 ? 8 : count <= 4 ? 4 : 2; }

NEURON_INLINE Vector zero() { return _mm512_setzero_ps(); }
NEURON_INLINE Vector set(float x) { return _mm512_set1_ps(x); }
NEURON_INLINE Vector load(const float* x) { return _mm512_loadu_ps(x); }
NEURON_INLINE void store(float* target, Vector x) { _mm512_storeu_ps(target, x); }
NEURON_INLINE __mmask16 first_lanes(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }
// The first `count` < 16 elements; the others are zero, or not written.
NEURON_INLINE Vector load_first(const float* x, int64_t count) { return _mm512_maskz_loadu_ps(first_lanes(count), x); }
NEURON_INLINE void store_first(float* target, int64_t count, Vector x) {
  _mm512_mask_storeu_ps(target, first_lanes(count), x);
}
NEURON_INLINE Vector broadcast(const float* x) { return _mm512_set1_ps(*x); }
NEURON_INLINE Vector add(Vector x, Vector y) { return _mm512_add_ps(x, y); }
NEURON_INLINE Vector subtract(Vector x, Vector y) { return _mm512_sub_ps(x, y); }
NEURON_INLINE Vector multiply(Vector x, Vector y) { return _mm512_mul_ps(x, y); }
NEURON_INLINE Vector multiply_add(Vector x, Vector y, Vector z) { return _mm512_fmadd_ps(x, y, z); }
// The second operand where the first is NaN.
NEURON_INLINE Vector maximum(Vector x, Vector y) { return _mm512_max_ps(x, y); }
// x = n + f with n the nearest integer, halves to even; both are exact.
NEURON_INLINE void split(Vector x, Vector& n, Vector& f) {
  f = _mm512_reduce_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  n = _mm512_sub_ps(x, f);
}
// x times 2 to the integers n, which is not denormal; zero where y is below the bound.
NEURON_INLINE Vector times_power_of_two(Vector x, Vector n, Vector y, float bound) {
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(y, _mm512_set1_ps(bound), _CMP_NLT_UQ), x, n);
}
// y, zero where x is below the bound.
NEURON_INLINE Vector zero_where_below(Vector x, float bound, Vector y) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(bound), _CMP_NLT_UQ), y);
}

NEURON_INLINE Integers integers(int32_t x) { return _mm512_set1_epi32(x); }
NEURON_INLINE Integers load_integers(const int32_t* x) { return _mm512_load_si512(x); }
NEURON_INLINE Integers exclusive_or(Integers x, Integers y) { return _mm512_xor_si512(x, y); }
NEURON_INLINE Integers shift_right_8(Integers x) { return _mm512_srli_epi32(x, 8); }
// y, -infinity where bound < position.
NEURON_INLINE Vector lowest_where_less(Integers bound, Integers position, Vector y) {
  return _mm512_mask_mov_ps(y, _mm512_cmplt_epi32_mask(bound, position), _mm512_set1_ps(-__builtin_inff()));
}
NEURON_INLINE Vector lowest_from(int64_t count, Vector x) {
  return _mm512_mask_mov_ps(_mm512_set1_ps(-__builtin_inff()), first_lanes(count), x);
}
// `value` where x < y, else zero.
NEURON_INLINE Vector value_where_less(Integers x, Integers y, Vector value) {
  return _mm512_maskz_mov_ps(_mm512_cmplt_epi32_mask(x, y), value);
}
NEURON_INLINE void multiply_wide(Integers x, uint32_t y, Integers& low, Integers& high) {
  __m512i factor = _mm512_set1_epi64(y);
  __m512i even = _mm512_mul_epu32(x, factor), odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), factor);
  low = _mm512_mask_mov_epi32(even, 0xaaaa, _mm512_slli_epi64(odd, 32));
  high = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xaaaa, odd);
}

NEURON_INLINE void transpose(Vector (&x)[16]) {
  Vector y[16];
  // Pairs and fours of rows within each quarter of a register, then the quarters.
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_shuffle_ps(y[i], y[i + 2], 0x44);
    x[i + 1] = _mm512_shuffle_ps(y[i], y[i + 2], 0xee);
    x[i + 2] = _mm512_shuffle_ps(y[i + 1], y[i + 3], 0x44);
    x[i + 3] = _mm512_shuffle_ps(y[i + 1], y[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    Vector low = _mm512_shuffle_f32x4(x[i], x[i + 4], 0x88), high = _mm512_shuffle_f32x4(x[i], x[i + 4], 0xdd);
    Vector low2 = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0x88);
    Vector high2 = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0xdd);
    y[i] = _mm512_shuffle_f32x4(low, low2, 0x88);
    y[i + 8] = _mm512_shuffle_f32x4(low, low2, 0xdd);
    y[i + 4] = _mm512_shuffle_f32x4(high, high2, 0x88);
    y[i + 12] = _mm512_shuffle_f32x4(high, high2, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = y[i];
}

// Units in memory.
struct FloatElements {
  static constexpr int kBytes = 4, kNear = 4;
  NEURON_INLINE static Vector load(const char* x) { return _mm512_loadu_ps(x); }
  NEURON_INLINE static Vector load_first(const char* x, int64_t count) {
    return _mm512_maskz_loadu_ps(first_lanes(count), x);
  }
  NEURON_INLINE static Vector step(Vector x, Vector y, Vector sum) { return multiply_add(x, y, sum); }
};
struct HalfElements : FloatElements {
  static constexpr int kBytes = 2, kNear = 2;
  NEURON_INLINE static Vector load(const char* x) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  }
  NEURON_INLINE static Vector load_first(const char* x, int64_t count) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(count), x));
  }
};
struct BFloat16Elements : FloatElements {
  static constexpr int kBytes = 2, kNear = 2;
  NEURON_INLINE static Vector widen(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
  }
  NEURON_INLINE static Vector load(const char* x) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  }
  NEURON_INLINE static Vector load_first(const char* x, int64_t count) {
    return widen(_mm256_maskz_loadu_epi16(first_lanes(count), x));
  }
};

// values[i]: the sum of the lanes of sums[i], halves added in turn: 8, 4, 2, 1.
template <int kRows>
NEURON_INLINE void reduce_lanes(Vector* sums, float* values) {
  if constexpr (kRows > 1 && kRows < 16) {
    Vector padded[16];
    float all[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) padded[i] = i < kRows ? sums[i] : zero();
    reduce_lanes<16>(padded, all);
    for (int i = 0; i < kRows; ++i) values[i] = all[i];
  } else if constexpr (kRows == 16) {
    // Two registers become one that holds sums of both. What can be blended is not shuffled: there are twice as many
    // units for it.
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      Vector x = sums[2 * i], y = sums[2 * i + 1];
      sums[i] = add(_mm512_mask_blend_ps(0xff00, x, y), _mm512_shuffle_f32x4(x, y, 0x4e));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      Vector x = sums[2 * i], y = sums[2 * i + 1], rest = _mm512_mask_blend_ps(0x0f0f, x, y);
      sums[i] = add(_mm512_mask_blend_ps(0xf0f0, x, y), _mm512_shuffle_f32x4(rest, rest, 0xb1));
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      Vector x = sums[2 * i], y = sums[2 * i + 1];
      sums[i] = add(_mm512_mask_blend_ps(0xcccc, x, y), _mm512_shuffle_ps(x, y, 0x4e));
    }
    Vector x = sums[0], y = sums[1], rest = _mm512_mask_blend_ps(0x5555, x, y);
    Vector mixed = add(_mm512_mask_blend_ps(0xaaaa, x, y), _mm512_permute_ps(rest, 0xb1));
    // Bits 0 and 1 of a row's number, in reverse, say in which quarter of the register its sum is, bits 2 and 3 where
    // in the quarter.
    __m512i order = _mm512_setr_epi32(0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15);
    _mm512_storeu_ps(values, _mm512_permutexvar_ps(order, mixed));
  } else {
    for (int i = 0; i < kRows; ++i) {
      alignas(64) float lanes[16];
      _mm512_store_ps(lanes, sums[i]);
      for (int half = 8; half > 0; half /= 2) {
        for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
      }
      values[i] = lanes[0];
    }
  }
}
