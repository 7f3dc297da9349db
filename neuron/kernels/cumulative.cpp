// Kernels "cumsum", "cumprod", "cummax", "cummin": sequential along a line. Float sums and products run in float64
// (narrow floats: float32) and every element is rounded once; integers wrap at 64 bits.
//
// A running sum waits for its last addition, so several lines go side by side: lines that lie next to one another as
// one vector, others a few at a time.
#include <type_traits>

#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/lines.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kColumns = 256;  // adjacent lines of one task
constexpr int kTogether = 8;       // other lines at a time
constexpr int64_t kBlock = 128;    // elements of each of them

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

  // `columns` lines next to one another; from and to step by these distances along the lines.
  template <bool kProduct>
  static void adjacent(const S* from, int64_t from_step, S* to, int64_t to_step, int64_t columns, int64_t length) {
    Wide running[kColumns];
    C row[kColumns];
    std::fill(running, running + columns, kProduct ? Wide(1) : Wide(0));
    for (int64_t i = 0; i < length; ++i) {
      widen_line<E>(from + i * from_step, row, columns);
      for (int64_t j = 0; j < columns; ++j) {
        running[j] = join<kProduct>(running[j], row[j]);
        row[j] = static_cast<C>(running[j]);
      }
      narrow_line<E>(row, to + i * to_step, columns);
    }
  }

  // kTogether lines of stride 1.
  template <bool kProduct>
  static void together(const S* const* from, S* const* to, int64_t length) {
    Wide running[kTogether];
    std::fill(running, running + kTogether, kProduct ? Wide(1) : Wide(0));
    // By way of a block of its own: lines that lie a power of two apart would drive one another out of the cache.
    C rows[kTogether][kBlock + 16];
    for (int64_t begin = 0; begin < length; begin += kBlock) {
      const int64_t count = std::min(kBlock, length - begin);
      for (int l = 0; l < kTogether; ++l) widen_line<E>(from[l] + begin, rows[l], count);
      for (int64_t i = 0; i < count; ++i) {
        for (int l = 0; l < kTogether; ++l) {
          running[l] = join<kProduct>(running[l], rows[l][i]);
          rows[l][i] = static_cast<C>(running[l]);
        }
      }
      for (int l = 0; l < kTogether; ++l) narrow_line<E>(rows[l], to[l] + begin, count);
    }
  }

  template <bool kProduct>
  static void alone(const S* from, int64_t from_step, S* to, int64_t to_step, int64_t length) {
    Wide running = kProduct ? Wide(1) : Wide(0);
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
          if (together && count == kTogether) {
            const typename E::Storage* sources[kTogether];
            typename E::Storage* targets[kTogether];
            for (int l = 0; l < kTogether; ++l) sources[l] = source + l * from_next, targets[l] = target + l * to_next;
            return Lines::template together<kProduct>(sources, targets, length);
          }
          for (int64_t l = 0; l < count; ++l)
            Lines::template alone<kProduct>(source + l * from_next, from_step, target + l * to_next, to_step, length);
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
