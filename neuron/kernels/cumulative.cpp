// Kernels "cumsum", "cumprod", "cummax", "cummin": sequential along a line. Float sums and products run in float64
// (narrow floats: float32) and every element is rounded once; integers wrap at 64 bits.
//
// A running sum waits for its last addition. Lines that lie next to one another go side by side, as the lanes of
// vectors; of others a few take turns.
#include <immintrin.h>

#include <algorithm>
#include <type_traits>

#include "neuron/kernels/avx2.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/lines.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kColumns = 1024;       // adjacent lines of one task, at most
constexpr int64_t kFewestColumns = 256;  // and at least: narrow tasks would read too little of each row
constexpr int64_t kRows = 4;             // of them, whose elements are added while their sums are in registers
constexpr int64_t kBytesAhead = 4096;    // that adjacent lines are asked for
constexpr int64_t kTogether = 16;        // other lines of one task
constexpr int64_t kShortLine = 16;       // shorter ones overlap by themselves
constexpr int64_t kLongLine = 1024;      // from here on, one time kFew
constexpr int64_t kFew = 4;              // lines that take turns
constexpr int64_t kBlock = 128;          // elements of each of them at a time
constexpr int64_t kLongestAhead = 8192;  // up to this length the next of them are asked for

// Four elements of a line, each joined with the running value of those before it: loaded, computed and stored with one
// conversion each way.
template <bool kProduct, typename S, typename Wide>
struct Chain;

template <bool kProduct>
struct DoubleChain {
  using Running = __m128d;
  NEURON_AVX2 static Running load(double running) { return _mm_set_sd(running); }
  NEURON_AVX2 static double store(Running running) { return _mm_cvtsd_f64(running); }
  NEURON_AVX2 static __m128d join(__m128d x, __m128d y) { return kProduct ? _mm_mul_sd(x, y) : _mm_add_sd(x, y); }
  NEURON_AVX2 static __m256d advance(Running& running, __m256d x) {
    const __m128d low = _mm256_castpd256_pd128(x), high = _mm256_extractf128_pd(x, 1);
    const __m128d first = join(low, running), second = join(_mm_unpackhi_pd(low, low), first);
    const __m128d third = join(high, second);
    running = join(_mm_unpackhi_pd(high, high), third);
    const __m256d pair = _mm256_castpd128_pd256(_mm_unpacklo_pd(first, second));
    return _mm256_insertf128_pd(pair, _mm_unpacklo_pd(third, running), 1);
  }
};

template <bool kProduct>
struct Chain<kProduct, double, double> : DoubleChain<kProduct> {
  NEURON_AVX2 static void step(__m128d& running, const double* from, double* to) {
    _mm256_storeu_pd(to, DoubleChain<kProduct>::advance(running, _mm256_loadu_pd(from)));
  }
};

template <bool kProduct>
struct Chain<kProduct, float, double> : DoubleChain<kProduct> {
  NEURON_AVX2 static void step(__m128d& running, const float* from, float* to) {
    const __m256d x = _mm256_cvtps_pd(_mm_loadu_ps(from));
    _mm_storeu_ps(to, _mm256_cvtpd_ps(DoubleChain<kProduct>::advance(running, x)));
  }
};

template <bool kProduct>
struct Chain<kProduct, float, float> {
  using Running = __m128;
  NEURON_AVX2 static Running load(float running) { return _mm_set_ss(running); }
  NEURON_AVX2 static float store(Running running) { return _mm_cvtss_f32(running); }
  NEURON_AVX2 static __m128 join(__m128 x, __m128 y) { return kProduct ? _mm_mul_ss(x, y) : _mm_add_ss(x, y); }
  NEURON_AVX2 static void step(__m128& running, const float* from, float* to) {
    const __m128 x = _mm_loadu_ps(from);
    const __m128 first = join(x, running), second = join(_mm_movehdup_ps(x), first);
    const __m128 third = join(_mm_movehl_ps(x, x), second);
    running = join(_mm_shuffle_ps(x, x, 3), third);
    _mm_storeu_ps(to, _mm_movelh_ps(_mm_unpacklo_ps(first, second), _mm_unpacklo_ps(third, running)));
  }
};

template <bool kProduct, typename Wide, typename C>
Wide join(Wide running, C value) {
  return kProduct ? running * static_cast<Wide>(value) : running + static_cast<Wide>(value);
}

// kLines lines of stride 1, these distances apart.
template <bool kProduct, int kLines, typename S, typename Wide>
NEURON_AVX2 void chain_lines(Wide* running, const S* from, int64_t from_next, S* to, int64_t to_next, int64_t length) {
  using Step = Chain<kProduct, S, Wide>;
  typename Step::Running chains[kLines];
  for (int l = 0; l < kLines; ++l) chains[l] = Step::load(running[l]);
  int64_t i = 0;
  for (; i + 4 <= length; i += 4) {
    for (int l = 0; l < kLines; ++l) Step::step(chains[l], from + l * from_next + i, to + l * to_next + i);
  }
  for (int l = 0; l < kLines; ++l) running[l] = Step::store(chains[l]);
  for (; i < length; ++i) {
    for (int l = 0; l < kLines; ++l) {
      running[l] = join<kProduct>(running[l], from[l * from_next + i]);
      to[l * to_next + i] = static_cast<S>(running[l]);
    }
  }
}

// kCount rows of `count` lanes, these distances apart: running = running op row, and row = running.
template <bool kProduct, int kCount, typename S, typename Wide>
NEURON_AVX2 void advance_rows(Wide* __restrict running, const S* from, int64_t from_step, S* to, int64_t to_step,
                              int64_t count) {
#pragma GCC ivdep
  for (int64_t j = 0; j < count; ++j) {
    Wide value = running[j];
    for (int r = 0; r < kCount; ++r) {
      value = join<kProduct>(value, from[r * from_step + j]);
      to[r * to_step + j] = static_cast<S>(value);
    }
    running[j] = value;
  }
}

// Asks for a part of a line that comes later: the processor's own prefetching stops where a line does.
template <typename S>
void ask_for(const S* line, int64_t count) {
  constexpr int64_t kCacheLine = 64 / sizeof(S);
  for (int64_t j = 0; j < count; j += kCacheLine) _mm_prefetch(reinterpret_cast<const char*>(line + j), _MM_HINT_T1);
}

template <bool kProduct, typename E>
struct Cumulative {
  using S = typename E::Storage;
  using C = typename E::Compute;
  using Wide = std::conditional_t<
      std::is_integral_v<C>, uint64_t,
      std::conditional_t<std::is_same_v<S, float>, double,
                         std::conditional_t<std::is_same_v<C, std::complex<float>>, std::complex<double>, C>>>;
  static constexpr Wide kStart = kProduct ? Wide(1) : Wide(0);

  // `columns` lines next to one another; from and to step by these distances along the lines.
  static void adjacent(const S* from, int64_t from_step, S* to, int64_t to_step, int64_t columns, int64_t length) {
    const int64_t ahead = kRows + kBytesAhead / (columns * static_cast<int64_t>(sizeof(S)));
    Wide running[kColumns];
    std::fill(running, running + columns, kStart);
    for (int64_t i = 0; i < length; i += kRows) {
      const int64_t rows = std::min(kRows, length - i), asked = std::min(rows, length - i - ahead);
      for (int64_t j = 0; j < columns; j += kBlock) {
        const int64_t count = std::min(kBlock, columns - j);
        const S* source = from + i * from_step + j;
        S* target = to + i * to_step + j;
        for (int64_t r = 0; r < asked; ++r) {
          ask_for(source + (ahead + r) * from_step, count);
          ask_for(target + (ahead + r) * to_step, count);
        }
        if (rows == kRows) {
          block<kRows>(running + j, source, from_step, target, to_step, count);
        } else {
          for (int64_t r = 0; r < rows; ++r)
            block<1>(running + j, source + r * from_step, 0, target + r * to_step, 0, count);
        }
      }
    }
  }

  // kCount rows of at most kBlock lanes, these distances apart.
  template <int kCount>
  static void block(Wide* running, const S* from, int64_t from_step, S* to, int64_t to_step, int64_t count) {
    if constexpr (!kIsNarrow<E>) {
      advance_rows<kProduct, kCount>(running, from, from_step, to, to_step, count);
    } else {
      C rows[kCount][kBlock];
      for (int r = 0; r < kCount; ++r) widen_line<E>(from + r * from_step, rows[r], count);
      advance_rows<kProduct, kCount>(running, rows[0], kBlock, rows[0], kBlock, count);
      for (int r = 0; r < kCount; ++r) narrow_line<E>(rows[r], to + r * to_step, count);
    }
  }

  // kLines lines of stride 1, these distances apart.
  template <int kLines>
  static void few(const S* from, int64_t from_next, S* to, int64_t to_next, int64_t length) {
    Wide running[kLines];
    std::fill(running, running + kLines, kStart);
    for (int64_t begin = 0; begin < length; begin += kBlock) {
      const int64_t count = std::min(kBlock, length - begin);
      for (int64_t l = kLines; l < 2 * kLines && length <= kLongestAhead; ++l) {
        ask_for(from + l * from_next + begin, count);
        ask_for(to + l * to_next + begin, count);
      }
      if constexpr (!kIsNarrow<E>) {
        chain_lines<kProduct, kLines>(running, from + begin, from_next, to + begin, to_next, count);
      } else {
        C rows[kLines][kBlock];
        for (int l = 0; l < kLines; ++l) widen_line<E>(from + l * from_next + begin, rows[l], count);
        chain_lines<kProduct, kLines>(running, rows[0], kBlock, rows[0], kBlock, count);
        for (int l = 0; l < kLines; ++l) narrow_line<E>(rows[l], to + l * to_next + begin, count);
      }
    }
  }

  static void alone(const S* from, int64_t from_step, S* to, int64_t to_step, int64_t length) {
    Wide running = kStart;
    for (int64_t i = 0; i < length; ++i) {
      running = join<kProduct>(running, E::load(from[i * from_step]));
      to[i * to_step] = E::store(static_cast<C>(running));
    }
  }

  // `count` lines of any stride.
  static void lines(const S* from, int64_t from_next, int64_t from_step, S* to, int64_t to_next, int64_t to_step,
                    int64_t count, int64_t length) {
    int64_t l = 0;
    if constexpr (std::is_same_v<C, float> || std::is_same_v<C, double>) {
      if (from_step == 1 && to_step == 1 && length >= kShortLine) {
        for (; l + kFew <= count; l += kFew)
          few<kFew>(from + l * from_next, from_next, to + l * to_next, to_next, length);
        for (; l + 2 <= count; l += 2) few<2>(from + l * from_next, from_next, to + l * to_next, to_next, length);
        for (; l < count; ++l) few<1>(from + l * from_next, from_next, to + l * to_next, to_next, length);
      }
    }
    for (; l < count; ++l) alone(from + l * from_next, from_step, to + l * to_next, to_step, length);
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
    using Lines = Cumulative<kProduct, E>;
    const auto* from = self.as<typename E::Storage>();
    auto* to = result.as<typename E::Storage>();
    const bool adjacent = inner > 1 && to_next == 1 && from_next == 1;
    const int64_t share = loop.rows() == 1 ? inner / std::max(1, call.threads) : inner;
    const int64_t unit = adjacent ? std::clamp(share, kFewestColumns, kColumns) : length < kLongLine ? kTogether : kFew;
    const int64_t units = (inner + unit - 1) / unit;
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length * unit));
    parallel_for(call.threads, loop.rows() * units, grain, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t row = item / units, first = item % units * unit, count = std::min(unit, inner - first);
        loop.for_rows(row, row + 1, [&](const auto& offsets) {
          auto* target = to + offsets[0] + first * to_next;
          const auto* source = from + offsets[1] + first * from_next;
          if (adjacent) {
            Lines::adjacent(source, from_step, target, to_step, count, length);
          } else {
            Lines::lines(source, from_next, from_step, target, to_next, to_step, count, length);
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
