// Kernels "cumsum", "cumprod", "cummax", "cummin": sequential along a line. Float sums and products run in float64
// (narrow floats: float32) and every element is rounded once; integers wrap at 64 bits.
//
// A running sum waits for its last addition, so lines go side by side as the lanes of vectors: lines that lie next to
// one another as they are, others transposed in squares.
#include <immintrin.h>

#include <type_traits>
#include <utility>

#include "neuron/kernels/avx2.h"
#include "neuron/kernels/copy_line.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/lines.h"
#include "neuron/kernels/transpose.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kColumns = 256;  // adjacent lines of one task
constexpr int kTogether = 16;      // other lines at a time
constexpr int kFew = 4;            // when there are not as many
constexpr int64_t kBlock = 128;    // elements of each of them, copied to one place: lines that lie a power of two apart
                                   // would drive one another out of the cache

// Elements as words of their size, which are what a transposition moves.
template <typename S>
auto* words(S* elements) {
  using Word = std::conditional_t<sizeof(S) == 8, uint64_t, std::conditional_t<sizeof(S) == 4, uint32_t, uint16_t>>;
  if constexpr (sizeof(S) == 1 || sizeof(S) == 16) {
    return elements;
  } else if constexpr (std::is_const_v<S>) {
    return reinterpret_cast<const Word*>(elements);
  } else {
    return reinterpret_cast<Word*>(elements);
  }
}

// 16 rows of 16 floats: running = running op row, and row = running.
template <bool kProduct>
NEURON_AVX2 void advance_floats(double* running, float* square) {
  auto join = [](__m256d x, __m256d y) NEURON_AVX2 { return kProduct ? _mm256_mul_pd(x, y) : _mm256_add_pd(x, y); };
  __m256d lanes[4];
  for (int v = 0; v < 4; ++v) lanes[v] = _mm256_loadu_pd(running + 4 * v);
  for (int i = 0; i < 16; ++i) {
    for (int v = 0; v < 4; ++v) {
      float* at = square + 16 * i + 4 * v;
      lanes[v] = join(lanes[v], _mm256_cvtps_pd(_mm_loadu_ps(at)));
      _mm_storeu_ps(at, _mm256_cvtpd_ps(lanes[v]));
    }
  }
  for (int v = 0; v < 4; ++v) _mm256_storeu_pd(running + 4 * v, lanes[v]);
}
template <bool kProduct>
NEURON_AVX2 void advance_floats(float* running, float* square) {
  auto join = [](__m256 x, __m256 y) NEURON_AVX2 { return kProduct ? _mm256_mul_ps(x, y) : _mm256_add_ps(x, y); };
  __m256 lanes[2];
  for (int v = 0; v < 2; ++v) lanes[v] = _mm256_loadu_ps(running + 8 * v);
  for (int i = 0; i < 16; ++i) {
    for (int v = 0; v < 2; ++v) {
      float* at = square + 16 * i + 8 * v;
      lanes[v] = join(lanes[v], _mm256_loadu_ps(at));
      _mm256_storeu_ps(at, lanes[v]);
    }
  }
  for (int v = 0; v < 2; ++v) _mm256_storeu_ps(running + 8 * v, lanes[v]);
}

template <typename E>
struct Cumulative {
  using S = typename E::Storage;
  using C = typename E::Compute;
  using Wide = std::conditional_t<
      std::is_integral_v<C>, uint64_t,
      std::conditional_t<std::is_same_v<S, float>, double,
                         std::conditional_t<std::is_same_v<C, std::complex<float>>, std::complex<double>, C>>>;

  template <bool kProduct>
  static Wide join(Wide running, C value) {
    return kProduct ? running * static_cast<Wide>(value) : running + static_cast<Wide>(value);
  }

  // running = running op row, and row = running, for lines that are `count` lanes.
  template <bool kProduct>
  NEURON_AVX2 static void advance(Wide* __restrict running, C* __restrict row, int64_t count) {
    for (int64_t j = 0; j < count; ++j) {
      running[j] = join<kProduct>(running[j], row[j]);
      row[j] = static_cast<C>(running[j]);
    }
  }

  // `columns` lines next to one another; from and to step by these distances along the lines.
  template <bool kProduct>
  static void adjacent(const S* from, int64_t from_step, S* to, int64_t to_step, int64_t columns, int64_t length) {
    Wide running[kColumns];
    C row[kColumns];
    std::fill(running, running + columns, kProduct ? Wide(1) : Wide(0));
    for (int64_t i = 0; i < length; ++i) {
      widen_line<E>(from + i * from_step, row, columns);
      advance<kProduct>(running, row, columns);
      narrow_line<E>(row, to + i * to_step, columns);
    }
  }

  // advance() for the kTogether rows of a square.
  template <bool kProduct>
  static void advance_square(Wide* running, C* square) {
    if constexpr (std::is_same_v<C, float>) {
      advance_floats<kProduct>(running, square);
    } else {
      for (int i = 0; i < kTogether; ++i) advance<kProduct>(running, square + i * kTogether, kTogether);
    }
  }

  // kTogether lines of stride 1, these distances apart.
  template <bool kProduct>
  static void together(const S* from, int64_t from_next, S* to, int64_t to_next, int64_t length) {
    constexpr int64_t kLine = kBlock + 64 / sizeof(S), kSquare = kTogether * kTogether;
    Wide running[kTogether];
    std::fill(running, running + kTogether, kProduct ? Wide(1) : Wide(0));
    alignas(64) S lines[kTogether * kLine];
    alignas(64) S square[kSquare];
    const int64_t whole = length / kTogether * kTogether;
    for (int64_t begin = 0; begin < whole; begin += kBlock) {
      const int64_t count = std::min(kBlock, whole - begin), bytes = count * static_cast<int64_t>(sizeof(S));
      for (int l = 0; l < kTogether; ++l) copy_line(lines + l * kLine, from + l * from_next + begin, bytes);
      for (int64_t i = 0; i < count; i += kTogether) {
        // No processor follows this many lines by itself.
        if (const int64_t next = begin + kBlock + i; next < whole) {
          for (int l = 0; l < kTogether; ++l) {
            __builtin_prefetch(from + l * from_next + next);
            __builtin_prefetch(to + l * to_next + next, 1);
          }
        }
        transpose_square(words(square), kTogether, words(std::as_const(lines)) + i, kLine);
        if constexpr (kIsNarrow<E>) {
          alignas(64) C wide[kSquare];
          widen_line<E>(square, wide, kSquare);
          advance_square<kProduct>(running, wide);
          narrow_line<E>(wide, square, kSquare);
        } else {
          advance_square<kProduct>(running, square);
        }
        transpose_square(words(lines) + i, kLine, words(std::as_const(square)), kTogether);
      }
      for (int l = 0; l < kTogether; ++l) copy_line(to + l * to_next + begin, lines + l * kLine, bytes);
    }
    for (int l = 0; l < kTogether; ++l)
      alone<kProduct>(running[l], from + l * from_next + whole, 1, to + l * to_next + whole, 1, length - whole);
  }

  // kFew lines of stride 1, these distances apart: their sums wait for themselves by turns.
  template <bool kProduct>
  static void few(const S* from, int64_t from_next, S* to, int64_t to_next, int64_t length) {
    Wide running[kFew];
    std::fill(running, running + kFew, kProduct ? Wide(1) : Wide(0));
    C rows[kFew][kBlock];
    for (int64_t begin = 0; begin < length; begin += kBlock) {
      const int64_t count = std::min(kBlock, length - begin);
      for (int l = 0; l < kFew; ++l) widen_line<E>(from + l * from_next + begin, rows[l], count);
      for (int64_t i = 0; i < count; ++i) {
        for (int l = 0; l < kFew; ++l) {
          running[l] = join<kProduct>(running[l], rows[l][i]);
          rows[l][i] = static_cast<C>(running[l]);
        }
      }
      for (int l = 0; l < kFew; ++l) narrow_line<E>(rows[l], to + l * to_next + begin, count);
    }
  }

  template <bool kProduct>
  static void alone(Wide running, const S* from, int64_t from_step, S* to, int64_t to_step, int64_t length) {
    for (int64_t i = 0; i < length; ++i) {
      running = join<kProduct>(running, E::load(from[i * from_step]));
      to[i * to_step] = E::store(static_cast<C>(running));
    }
  }
};

// outputs: result; inputs: self of the same dtype; attributes: dimension.
template <bool kProduct>
void run_cumulative(const Call& call) {
  TensorView result = as_lines(call.outputs[0]), self = as_lines(call.inputs[0]);
  const int64_t dimension = call.attributes[0], length = self.sizes[dimension];
  const int64_t to_step = result.strides[dimension], from_step = self.strides[dimension];
  Dims lines = self.sizes;
  lines[dimension] = 1;
  StridedLoop<2> loop(lines, {&result.strides, &self.strides});
  const int64_t inner = loop.inner_size(), to_next = loop.inner_strides()[0], from_next = loop.inner_strides()[1];
  dispatch_any(self.dtype, [&](auto element) {
    using E = decltype(element);
    using Lines = Cumulative<E>;
    const auto* from = self.as<typename E::Storage>();
    auto* to = result.as<typename E::Storage>();
    const bool adjacent = inner > 1 && to_next == 1 && from_next == 1;
    const bool together = to_step == 1 && from_step == 1;
    const int64_t unit = adjacent ? kColumns : together ? kTogether : 1;
    const int64_t units = (inner + unit - 1) / unit;
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length * unit));
    parallel_for(call.threads, loop.rows() * units, grain, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t row = item / units, first = item % units * unit, count = std::min(unit, inner - first);
        loop.for_rows(row, row + 1, [&](const auto& offsets) {
          auto* target = to + offsets[0] + first * to_next;
          const auto* source = from + offsets[1] + first * from_next;
          if (adjacent) return Lines::template adjacent<kProduct>(source, from_step, target, to_step, count, length);
          if (together && count == kTogether)
            return Lines::template together<kProduct>(source, from_next, target, to_next, length);
          const typename Lines::Wide start = kProduct ? 1 : 0;
          int64_t l = 0;
          for (; together && l + kFew <= count; l += kFew)
            Lines::template few<kProduct>(source + l * from_next, from_next, target + l * to_next, to_next, length);
          for (; l < count; ++l) {
            Lines::template alone<kProduct>(start, source + l * from_next, from_step, target + l * to_next, to_step,
                                            length);
          }
        });
      }
    });
  });
}

// outputs: values, indices (int64); inputs: self; attributes: dimension. The last of equal extremes; NaN stays.
template <bool kMaximum>
void run_extreme(const Call& call) {
  TensorView values = as_lines(call.outputs[0]), indices = as_lines(call.outputs[1]), self = as_lines(call.inputs[0]);
  int64_t dimension = call.attributes[0], length = self.sizes[dimension];
  dispatch_real(self.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    const auto* from = self.as<typename E::Storage>();
    auto* to = values.as<typename E::Storage>();
    for_each_line<3>({&values, &indices, &self}, dimension, call.threads, [&](const Line<3>& line) {
      C best{};
      int64_t place = 0;
      for (int64_t i = 0; i < length; ++i) {
        C value = E::load(from[line.offsets[2] + i * line.strides[2]]);
        if (i == 0 || value != value || (best == best && (kMaximum ? value >= best : value <= best))) {
          best = value;
          place = i;
        }
        to[line.offsets[0] + i * line.strides[0]] = E::store(best);
        indices.as<int64_t>()[line.offsets[1] + i * line.strides[1]] = place;
      }
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "cumsum", .run = run_cumulative<false>}),
    KernelRegistration({.name = "cumprod", .run = run_cumulative<true>}),
    KernelRegistration({.name = "cummax", .run = run_extreme<true>}),
    KernelRegistration({.name = "cummin", .run = run_extreme<false>}),
};

}  // namespace
}  // namespace neuron::kernels
