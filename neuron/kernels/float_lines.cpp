#include "neuron/kernels/float_lines.h"

#include <immintrin.h>

#include "neuron/kernels/avx2.h"

namespace neuron::kernels {

namespace {

// Eight lanes of a narrow format.
struct BFloat16Lanes {
  using Element = BFloat16Element;
  NEURON_AVX2 static __m256 load(const uint16_t* from) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  NEURON_AVX2 static void store(uint16_t* to, __m256 value) {
    const __m256i one = _mm256_set1_epi32(1), half = _mm256_set1_epi32(0x7fff), nan = _mm256_set1_epi32(0x7fc0);
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), one);
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, half), last), 16);
    const __m256i unordered = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    rounded = _mm256_blendv_epi8(rounded, nan, unordered);
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed);
  }
};
struct Float16Lanes {
  using Element = Float16Element;
  NEURON_AVX2 static __m256 load(const uint16_t* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  NEURON_AVX2 static void store(uint16_t* to, __m256 value) {
    const __m128i packed = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed);
  }
};

template <typename Lanes>
NEURON_AVX2 void widen(const uint16_t* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(to + i, Lanes::load(from + i));
  for (; i < count; ++i) to[i] = Lanes::Element::load(from[i]);
}

template <typename Lanes>
NEURON_AVX2 void narrow(const float* from, uint16_t* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) Lanes::store(to + i, _mm256_loadu_ps(from + i));
  for (; i < count; ++i) to[i] = Lanes::Element::store(from[i]);
}

template <typename Lanes>
NEURON_AVX2 void add_lines(uint16_t* sums, std::span<const uint16_t* const> lines, float scale, int64_t count) {
  const __m256 scales = _mm256_set1_ps(scale);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m256 sum = Lanes::load(sums + i);
    for (const uint16_t* line : lines) sum = _mm256_add_ps(sum, _mm256_mul_ps(scales, Lanes::load(line + i)));
    Lanes::store(sums + i, sum);
  }
  for (; i < count; ++i) {
    float sum = Lanes::Element::load(sums[i]);
    for (const uint16_t* line : lines) sum += scale * Lanes::Element::load(line[i]);
    sums[i] = Lanes::Element::store(sum);
  }
}

}  // namespace

void widen_bfloat16(const uint16_t* from, float* to, int64_t count) { widen<BFloat16Lanes>(from, to, count); }
void narrow_bfloat16(const float* from, uint16_t* to, int64_t count) { narrow<BFloat16Lanes>(from, to, count); }
void widen_float16(const uint16_t* from, float* to, int64_t count) { widen<Float16Lanes>(from, to, count); }
void narrow_float16(const float* from, uint16_t* to, int64_t count) { narrow<Float16Lanes>(from, to, count); }
void add_lines_bfloat16(uint16_t* sums, std::span<const uint16_t* const> lines, float scale, int64_t count) {
  add_lines<BFloat16Lanes>(sums, lines, scale, count);
}
void add_lines_float16(uint16_t* sums, std::span<const uint16_t* const> lines, float scale, int64_t count) {
  add_lines<Float16Lanes>(sums, lines, scale, count);
}

void widen_row(DType dtype, const char* source, int64_t stride, int64_t count, float* values) {
  auto widen = [&]<typename E>(E) {
    load_line<E>(reinterpret_cast<const typename E::Storage*>(source), stride, values, count);
  };
  if (dtype == DType::BFloat16) return widen(BFloat16Element{});
  if (dtype == DType::Float16) return widen(Float16Element{});
  widen(NativeElement<float>{});
}

void round_row(DType dtype, const float* values, int64_t count, char* target, int64_t stride) {
  auto round = [&]<typename E>(E) {
    store_line<E>(values, reinterpret_cast<typename E::Storage*>(target), stride, count);
  };
  if (dtype == DType::BFloat16) return round(BFloat16Element{});
  if (dtype == DType::Float16) return round(Float16Element{});
  round(NativeElement<float>{});
}

}  // namespace neuron::kernels
