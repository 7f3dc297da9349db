// Packing for the AVX-512 register tiles: whole cache lines of sixteen lanes are transposed at a time.
#include <immintrin.h>

#include <algorithm>

#include "neuron/base/float_formats.h"
#include "neuron/kernels/gemm_pack.h"

// The compiler's own header leaves the unused operand of masked intrinsics undefined and then warns of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define NEURON_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,fma")))
#define NEURON_AVX512_INLINE __attribute__((target("avx512f,avx512bw,avx512vl,fma"), always_inline)) inline

namespace neuron::kernels {
namespace {

constexpr int kLanes = 16;

__mmask16 first(int64_t count) { return static_cast<__mmask16>(count >= kLanes ? 0xffffu : (1u << count) - 1); }

// Up to sixteen consecutive elements as float32; the others are zero and not read.
struct LoadFloat32 {
  using Element = float;
  static constexpr int kPerWord = 1;
  NEURON_AVX512_INLINE static __m512 all(const float* x) { return _mm512_loadu_ps(x); }
  NEURON_AVX512_INLINE static __m512 some(const float* x, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, x); }
};
struct LoadBFloat16 {
  using Element = uint16_t;
  static constexpr int kPerWord = 1;
  NEURON_AVX512_INLINE static __m512 widen(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  NEURON_AVX512_INLINE static __m512 all(const uint16_t* x) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  }
  NEURON_AVX512_INLINE static __m512 some(const uint16_t* x, __mmask16 mask) {
    return widen(_mm256_maskz_loadu_epi16(mask, x));
  }
};
struct LoadFloat16 {
  using Element = uint16_t;
  static constexpr int kPerWord = 1;
  NEURON_AVX512_INLINE static __m512 all(const uint16_t* x) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  }
  NEURON_AVX512_INLINE static __m512 some(const uint16_t* x, __mmask16 mask) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, x));
  }
};

// Pairs of 16-bit elements, as they are.
struct LoadPairs {
  using Element = uint16_t;
  static constexpr int kPerWord = 2;
  NEURON_AVX512_INLINE static __m512 all(const uint16_t* x) { return _mm512_loadu_ps(x); }
  NEURON_AVX512_INLINE static __m512 some(const uint16_t* x, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, x); }
};

NEURON_AVX512_INLINE __m512 low(__m512 x, __m512 y) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}
NEURON_AVX512_INLINE __m512 high(__m512 x, __m512 y) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}
NEURON_AVX512_INLINE void transpose(__m512 rows[16]) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  // rows[4 g + c]: column c of each quarter, of source rows 4 g … 4 g + 3.
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    rows[4 * g] = low(t[4 * g], t[4 * g + 2]);
    rows[4 * g + 1] = high(t[4 * g], t[4 * g + 2]);
    rows[4 * g + 2] = low(t[4 * g + 1], t[4 * g + 3]);
    rows[4 * g + 3] = high(t[4 * g + 1], t[4 * g + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    __m512 a = _mm512_shuffle_f32x4(rows[c], rows[4 + c], 0x88), b = _mm512_shuffle_f32x4(rows[c], rows[4 + c], 0xdd);
    __m512 d = _mm512_shuffle_f32x4(rows[8 + c], rows[12 + c], 0x88);
    __m512 e = _mm512_shuffle_f32x4(rows[8 + c], rows[12 + c], 0xdd);
    t[c] = _mm512_shuffle_f32x4(a, d, 0x88);
    t[8 + c] = _mm512_shuffle_f32x4(a, d, 0xdd);
    t[4 + c] = _mm512_shuffle_f32x4(b, e, 0x88);
    t[12 + c] = _mm512_shuffle_f32x4(b, e, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) rows[i] = t[i];
}

// Rows of a panel narrower than a register are stored whole, over the beginning of the next ones, which are written
// later: masked stores take many cycles on some processors. How many rows leave room for that in the panel.
int64_t spilling_rows(int width, int64_t depth) {
  return width < kLanes ? std::max<int64_t>(0, depth + 1 - (kLanes + width - 1) / width) : 0;
}

// Depth is adjacent in memory: sixteen lanes by sixteen positions are transposed in registers.
template <typename Load>
NEURON_AVX512 void pack_adjacent_depth(const typename Load::Element* source, int64_t lane_stride, int64_t count,
                                       int64_t depth, int width, float* panel) {
  int64_t spilling = spilling_rows(width, depth);
  for (int lane = 0; lane < width; lane += kLanes) {
    int64_t valid = count - lane;
    __mmask16 room = first(width - lane);
    const typename Load::Element* block = source + lane * lane_stride;
    for (int64_t p = 0; p < depth; p += kLanes) {
      __m512 rows[16];
      int64_t positions = depth - p < kLanes ? depth - p : kLanes;
      if (valid >= kLanes && positions == kLanes) {
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) rows[i] = Load::all(block + i * lane_stride + p * Load::kPerWord);
      } else {
        __mmask16 mask = first(positions);
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
          rows[i] = i < valid ? Load::some(block + i * lane_stride + p * Load::kPerWord, mask) : _mm512_setzero_ps();
        }
      }
      transpose(rows);
      float* target = panel + p * width + lane;
      if (positions == kLanes && room == 0xffffu) {
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) _mm512_storeu_ps(target + i * width, rows[i]);
      } else {
        int64_t whole = room == 0xffffu ? positions : spilling - p;
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
          if (i < whole && i < positions) {
            _mm512_storeu_ps(target + i * width, rows[i]);
          } else if (i < positions) {
            _mm512_mask_storeu_ps(target + i * width, room, rows[i]);
          }
        }
      }
    }
  }
}

// Lanes are adjacent in memory: rows of the panel are copies.
template <typename Load>
NEURON_AVX512 void pack_adjacent_lanes(const typename Load::Element* source, int64_t depth_stride, int64_t count,
                                       int64_t depth, int width, float* panel) {
  if (width < kLanes) {
    __mmask16 mask = first(count);
    int64_t p = 0, spilling = spilling_rows(width, depth);
    for (; p < spilling; ++p, source += depth_stride, panel += width) {
      _mm512_storeu_ps(panel, Load::some(source, mask));
    }
    for (; p < depth; ++p, source += depth_stride, panel += width) {
      _mm512_mask_storeu_ps(panel, first(width), Load::some(source, mask));
    }
    return;
  }
  for (int64_t p = 0; p < depth; ++p, source += depth_stride, panel += width) {
    int lane = 0;
    for (; lane + kLanes <= count; lane += kLanes) _mm512_storeu_ps(panel + lane, Load::all(source + lane));
    for (; lane < width; lane += kLanes) {
      __m512 values = lane < count ? Load::some(source + lane, first(count - lane)) : _mm512_setzero_ps();
      _mm512_mask_storeu_ps(panel + lane, first(width - lane), values);
    }
  }
}

template <typename Load>
void pack_typed(PackedSource type, const void* source, int64_t lane_stride, int64_t depth_stride, int64_t count,
                int64_t depth, int width, float* panel) {
  auto* typed = static_cast<const typename Load::Element*>(source);
  if (lane_stride == 1) {
    pack_adjacent_lanes<Load>(typed, depth_stride, count, depth, width, panel);
  } else if (depth_stride == 1 && depth > 1) {
    pack_adjacent_depth<Load>(typed, lane_stride, count, depth, width, panel);
  } else {
    gemm_microkernel_avx2.pack(type, source, lane_stride, depth_stride, count, depth, width, panel);
  }
}

}  // namespace

void pack_avx512(PackedSource type, const void* source, int64_t lane_stride, int64_t depth_stride, int64_t count,
                 int64_t depth, int width, float* panel) {
  switch (type) {
    case PackedSource::Float32:
      return pack_typed<LoadFloat32>(type, source, lane_stride, depth_stride, count, depth, width, panel);
    case PackedSource::BFloat16:
      return pack_typed<LoadBFloat16>(type, source, lane_stride, depth_stride, count, depth, width, panel);
    case PackedSource::Float16:
      return pack_typed<LoadFloat16>(type, source, lane_stride, depth_stride, count, depth, width, panel);
  }
}

void pack_pairs_avx512(const uint16_t* source, int64_t lane_stride, int64_t count, int64_t words, int width,
                       float* panel) {
  pack_adjacent_depth<LoadPairs>(source, lane_stride, count, words, width, panel);
}

}  // namespace neuron::kernels
