// AVX2: a register tile of 6 x 16, and packing for both instruction sets.
#include <immintrin.h>

#include <cstring>
#include <type_traits>

#include "neuron/base/float_formats.h"
#include "neuron/base/processor.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/gemm_microkernel.h"

#define NEURON_TARGET __attribute__((target("avx2,fma,f16c")))
#define NEURON_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline

namespace neuron::kernels {
namespace {

struct Units {
  using Register = __m256;
  static constexpr int kLanes = 8, kRows = 6, kNarrowRows = 12;
  NEURON_INLINE static Register zero() { return _mm256_setzero_ps(); }
  NEURON_INLINE static Register fill(float x) { return _mm256_set1_ps(x); }
  NEURON_INLINE static Register load(const void* x) { return _mm256_loadu_ps(static_cast<const float*>(x)); }
  NEURON_INLINE static void store(float* x, Register value) { _mm256_storeu_ps(x, value); }
  NEURON_INLINE static Register broadcast(const char* word) {
    return _mm256_broadcast_ss(reinterpret_cast<const float*>(word));
  }
  NEURON_INLINE static Register multiply(Register x, Register y) { return _mm256_mul_ps(x, y); }
  NEURON_INLINE static Register add(Register x, Register y) { return _mm256_add_ps(x, y); }
  NEURON_INLINE static Register multiply_add(Register x, Register y, Register sum) {
    return _mm256_fmadd_ps(x, y, sum);
  }
};

}  // namespace
}  // namespace neuron::kernels

#include "neuron/kernels/gemm_tile_loops.h"

namespace neuron::kernels {
namespace {

// Eight consecutive elements as float32, and one.
struct LoadFloat32 {
  using Element = float;
  NEURON_TARGET static __m256 eight(const float* x) { return _mm256_loadu_ps(x); }
  static float one(float x) { return x; }
};
struct LoadBFloat16 {
  using Element = uint16_t;
  NEURON_TARGET static __m256 eight(const uint16_t* x) {
    __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static float one(uint16_t x) { return bfloat16_to_float(x); }
};
struct LoadFloat16 {
  using Element = uint16_t;
  NEURON_TARGET static __m256 eight(const uint16_t* x) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
  }
  static float one(uint16_t x) { return float16_to_float(x); }
};

NEURON_TARGET inline void transpose(__m256 rows[8]) {
  __m256 t[8], u[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}

// The first `count` < 8 lanes.
NEURON_TARGET inline void store_first(float* target, int count, __m256 values) {
  __m128 rest = _mm256_castps256_ps128(values);
  if (count & 4) {
    _mm_storeu_ps(target, rest);
    rest = _mm256_extractf128_ps(values, 1);
    target += 4;
  }
  if (count & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(target), rest);
    rest = _mm_movehl_ps(rest, rest);
    target += 2;
  }
  if (count & 1) _mm_store_ss(target, rest);
}

// Lanes are adjacent in memory: rows of the panel are copies.
template <typename Load>
NEURON_TARGET void pack_adjacent_lanes(const typename Load::Element* source, int64_t depth_stride, int64_t count,
                                       int64_t depth, int width, float* panel) {
  // The last lanes of a panel without idle ones are copied eight at a time as well: the next row follows in the source,
  // and what is written too much is overwritten by the panel's next row.
  const int64_t whole = count / 8 * 8, rest = count - whole;
  const bool overlaps = rest != 0 && count == width && depth_stride >= whole + 8;
  for (int64_t p = 0; p < depth; ++p, source += depth_stride, panel += width) {
    int64_t lane = 0;
    for (; lane < whole; lane += 8) _mm256_storeu_ps(panel + lane, Load::eight(source + lane));
    if (overlaps && (depth - p - 1) * width >= 8 - rest) {
      _mm256_storeu_ps(panel + lane, Load::eight(source + lane));
      continue;
    }
    for (; lane < count; ++lane) panel[lane] = Load::one(source[lane]);
    for (; lane < width; ++lane) panel[lane] = 0;
  }
}

// Depth is adjacent in memory: eight lanes by eight positions are transposed in registers. Where the panel has no eight
// lanes left, stores are narrower: masked ones take many cycles on some processors.
template <typename Load>
NEURON_TARGET void pack_adjacent_depth(const typename Load::Element* source, int64_t lane_stride, int64_t count,
                                       int64_t depth, int width, float* panel) {
  for (int lane = 0; lane < width; lane += 8) {
    int64_t valid = count - lane < 8 ? count - lane : 8;
    int room = width - lane < 8 ? width - lane : 8;
    const typename Load::Element* block = source + lane * lane_stride;
    int64_t p = 0;
    for (; p + 8 <= depth; p += 8) {
      __m256 rows[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        rows[i] = i < valid ? Load::eight(block + i * lane_stride + p) : _mm256_setzero_ps();
      }
      transpose(rows);
      float* target = panel + p * width + lane;
      // Rows of a narrow panel that others follow: what is written too much is overwritten next.
      if (room == 8 || (width < 8 && (depth - p - 7) * width >= 8)) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) _mm256_storeu_ps(target + i * width, rows[i]);
      } else {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) store_first(target + i * width, room, rows[i]);
      }
    }
    for (; p < depth; ++p) {
      for (int i = 0; i < room; ++i) {
        panel[p * width + lane + i] = i < valid ? Load::one(block[i * lane_stride + p]) : 0.0f;
      }
    }
  }
}

// Every second of sixteen.
NEURON_TARGET inline __m256 eight_of_sixteen(const float* x) {
  __m256 pairs = _mm256_shuffle_ps(_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8), 0x88);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xd8));
}

template <typename Load>
NEURON_TARGET void pack_strided(const typename Load::Element* source, int64_t lane_stride, int64_t depth_stride,
                                int64_t count, int64_t depth, int width, float* panel) {
  for (int64_t p = 0; p < depth; ++p, panel += width) {
    int64_t lane = 0;
    if constexpr (std::is_same_v<Load, LoadFloat32>) {
      // The sixteenth is read where a lane follows.
      for (; lane_stride == 2 && lane + 8 < count; lane += 8) {
        _mm256_storeu_ps(panel + lane, eight_of_sixteen(source + lane * 2 + p * depth_stride));
      }
    }
    for (; lane < width; ++lane) {
      panel[lane] = lane < count ? Load::one(source[lane * lane_stride + p * depth_stride]) : 0.0f;
    }
  }
}

template <typename Load>
void pack_typed(const void* source, int64_t lane_stride, int64_t depth_stride, int64_t count, int64_t depth, int width,
                float* panel) {
  auto* typed = static_cast<const typename Load::Element*>(source);
  if (lane_stride == 1) {
    pack_adjacent_lanes<Load>(typed, depth_stride, count, depth, width, panel);
  } else if (depth_stride == 1) {
    pack_adjacent_depth<Load>(typed, lane_stride, count, depth, width, panel);
  } else {
    pack_strided<Load>(typed, lane_stride, depth_stride, count, depth, width, panel);
  }
}

void pack(PackedSource type, const void* source, int64_t lane_stride, int64_t depth_stride, int64_t count,
          int64_t depth, int width, float* panel) {
  switch (type) {
    case PackedSource::Float32:
      return pack_typed<LoadFloat32>(source, lane_stride, depth_stride, count, depth, width, panel);
    case PackedSource::BFloat16:
      return pack_typed<LoadBFloat16>(source, lane_stride, depth_stride, count, depth, width, panel);
    case PackedSource::Float16:
      return pack_typed<LoadFloat16>(source, lane_stride, depth_stride, count, depth, width, panel);
  }
}

void store(PackedSource type, const float* values, int64_t count, void* target) {
  switch (type) {
    case PackedSource::Float32:
      std::memcpy(target, values, count * sizeof(float));
      return;
    case PackedSource::BFloat16:
      return narrow_bfloat16(values, static_cast<uint16_t*>(target), count);
    case PackedSource::Float16:
      return narrow_float16(values, static_cast<uint16_t*>(target), count);
  }
}

}  // namespace

const GemmMicrokernel gemm_microkernel_avx2 = {
    "avx2", Units::kRows, Units::kNarrowRows, 2 * Units::kLanes, 1, 256, compute, compute_narrow, pack, store};

const GemmMicrokernel* detected_gemm_microkernel() {
  const ProcessorFeatures& processor = processor_features();
  if (processor.runs_avx512()) return &gemm_microkernel_avx512;
  return processor.runs_avx2() ? &gemm_microkernel_avx2 : nullptr;
}

}  // namespace neuron::kernels
