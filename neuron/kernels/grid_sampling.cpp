// Kernels "grid_sample", "grid_sample_input" and "grid_sample_grid": values of planes or volumes at positions that a
// tensor names, and the gradients with regard to both. Input and gradients are contiguous [batch, channels, sizes…], a
// grid is contiguous [batch, output sizes…, x y (z)]. Positions, weights and sums are float32, for float64 tensors
// float64.
//
// attributes: number of dimensions (2 or 3), interpolation (0 linear, 1 nearest, 2 cubic, of two dimensions only),
// padding (0 zeros, 1 border, 2 reflection), whether -1 and 1 are the centres of the outermost elements (else their
// outer edges).
#include <algorithm>
#include <array>
#include <cmath>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/avx2.h"
#include "neuron/kernels/copy.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

enum Interpolation : int64_t { Linear, Nearest, Cubic };
enum Padding : int64_t { Zeros, Border, Reflection };

constexpr int64_t kBlock = 512;  // positions whose taps are kept at a time
constexpr int kMostTaps = 16;

// A position along one dimension, with the derivative with regard to the grid's number.
template <typename C>
struct Place {
  C at, slope;
};

// What positions of a batch element read.
struct Sampling {
  int64_t rank;
  Interpolation interpolation;
  Padding padding;
  bool corners;
  std::array<int64_t, 3> extents;  // innermost first, as a grid's numbers are
  int64_t planes, in_size, out_size, batch;

  Sampling(const Call& call, const TensorView& input, const TensorView& grid)
      : rank(call.attributes[0]),
        interpolation(static_cast<Interpolation>(call.attributes[1])),
        padding(static_cast<Padding>(call.attributes[2])),
        corners(call.attributes[3] != 0),
        extents{1, 1, 1},
        planes(input.sizes[1]),
        in_size(1),
        out_size(1),
        batch(input.sizes[0]) {
    for (int64_t d = 0; d < rank; ++d) {
      extents[d] = input.sizes[input.rank() - 1 - static_cast<int>(d)];
      in_size *= extents[d];
      out_size *= grid.sizes[1 + static_cast<int>(d)];
    }
  }
  int taps() const { return interpolation == Nearest ? 1 : interpolation == Cubic ? 16 : rank == 3 ? 8 : 4; }

  template <typename C>
  NEURON_AVX2 Place<C> unnormalized(C number, int d) const {
    const C extent = static_cast<C>(extents[d]);
    if (corners) return {(number + 1) / 2 * (extent - 1), (extent - 1) / 2};
    return {((number + 1) * extent - 1) / 2, extent / 2};
  }
  // Brings a position into the input as the padding says. Beyond every integer and NaN: outside.
  template <typename C>
  NEURON_AVX2 Place<C> padded(Place<C> place, int d) const {
    const C last = static_cast<C>(extents[d] - 1);
    if (padding == Reflection) {
      // Between low and low + span, the centres or the outer edges of the outermost elements.
      const C low = corners ? C(0) : C(-0.5), span = corners ? last : last + 1;
      if (span == 0) {
        place = {0, 0};
      } else {
        const C from_low = place.at - low, distance = std::fabs(from_low);
        const C turns = std::floor(distance / span), rest = std::fmod(distance, span);
        const bool forth = std::fmod(turns, C(2)) == 0;
        if ((from_low < 0) == forth) place.slope = -place.slope;
        place.at = (forth ? rest : span - rest) + low;
      }
    }
    if (padding != Zeros) {
      if (!(place.at > 0)) place = {0, 0};
      if (place.at >= last) place = {last, 0};
    }
    if (!(std::fabs(place.at) < C(1 << 30))) place = {-100, 0};
    return place;
  }
};

// Keys' kernel with a = -0.75 at the distances 1 + t, t, 1 - t, 2 - t, and its derivatives by t.
template <typename C>
void cubic_weights(C t, C* weights, C* slopes) {
  constexpr C a = C(-0.75);
  auto near = [](C x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  auto far = [](C x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  auto near_slope = [](C x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  auto far_slope = [](C x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  const C rest = 1 - t;
  weights[0] = far(1 + t), weights[1] = near(t), weights[2] = near(rest), weights[3] = far(1 + rest);
  slopes[0] = far_slope(1 + t), slopes[1] = near_slope(t), slopes[2] = -near_slope(rest),
  slopes[3] = -far_slope(1 + rest);
}

// The taps of a block of positions: element index in a plane (-1: outside), weight and, with slopes, the derivatives of
// the weight with regard to the grid's numbers.
template <typename C>
struct TapTable {
  alignas(64) int32_t index[kMostTaps][kBlock];
  alignas(64) C weight[kMostTaps][kBlock];
  alignas(64) C slope[3][kMostTaps][kBlock];

  NEURON_AVX2 void set(const Sampling& sampling, int64_t i, const C* numbers, bool with_slopes) {
    if (sampling.interpolation == Cubic) return set_cubic(sampling, i, numbers, with_slopes);
    std::array<Place<C>, 3> places{};
    std::array<int64_t, 3> first{};
    for (int d = 0; d < sampling.rank; ++d) {
      places[d] = sampling.padded(sampling.unnormalized(numbers[d], d), d);
      first[d] = static_cast<int64_t>(sampling.interpolation == Nearest ? std::nearbyint(places[d].at)
                                                                        : std::floor(places[d].at));
    }
    for (int t = 0; t < sampling.taps(); ++t) {
      int64_t at = 0;
      C product = 1;
      std::array<C, 3> part{1, 1, 1}, sign{};
      bool inside = true;
      for (int d = static_cast<int>(sampling.rank) - 1; d >= 0; --d) {
        const int64_t bit = t >> d & 1, place = first[d] + bit;
        inside = inside && place >= 0 && place < sampling.extents[d];
        at = at * sampling.extents[d] + place;
        if (sampling.interpolation == Nearest) continue;
        const C behind = places[d].at - static_cast<C>(first[d]);
        part[d] = bit != 0 ? behind : static_cast<C>(first[d] + 1) - places[d].at;
        sign[d] = bit != 0 ? places[d].slope : -places[d].slope;
        product *= part[d];
      }
      index[t][i] = inside ? static_cast<int32_t>(at) : -1;
      weight[t][i] = product;
      if (!with_slopes) continue;
      slope[0][t][i] = sign[0] * part[1] * part[2];
      slope[1][t][i] = sign[1] * part[0] * part[2];
      slope[2][t][i] = sign[2] * part[0] * part[1];
    }
  }

 private:
  // The padding applies to each tap.
  NEURON_AVX2 void set_cubic(const Sampling& sampling, int64_t i, const C* numbers, bool with_slopes) {
    std::array<std::array<C, 4>, 2> weights, slopes;
    std::array<std::array<int64_t, 4>, 2> places;
    for (int d = 0; d < 2; ++d) {
      const Place<C> place = sampling.unnormalized(numbers[d], d);
      const C first = std::floor(place.at);
      cubic_weights(place.at - first, weights[d].data(), slopes[d].data());
      for (int t = 0; t < 4; ++t) {
        slopes[d][t] *= place.slope;
        places[d][t] = static_cast<int64_t>(sampling.padded(Place<C>{first + static_cast<C>(t - 1), 0}, d).at);
      }
    }
    for (int t = 0; t < 16; ++t) {
      const int64_t x = places[0][t % 4], y = places[1][t / 4];
      const bool inside = x >= 0 && x < sampling.extents[0] && y >= 0 && y < sampling.extents[1];
      index[t][i] = inside ? static_cast<int32_t>(y * sampling.extents[0] + x) : -1;
      weight[t][i] = weights[0][t % 4] * weights[1][t / 4];
      if (!with_slopes) continue;
      slope[0][t][i] = slopes[0][t % 4] * weights[1][t / 4];
      slope[1][t][i] = weights[0][t % 4] * slopes[1][t / 4];
      slope[2][t][i] = 0;
    }
  }
};

template <typename C>
TapTable<C>& tap_table() {
  static thread_local Scratch memory;
  return *memory.get<TapTable<C>>(1);
}

// The taps of positions [first, first + count) of a batch element.
template <typename E>
void fill(TapTable<typename E::Compute>& table, const Sampling& sampling, const TensorView& grid, int64_t batch,
          int64_t first, int64_t count, bool with_slopes) {
  const auto* numbers = grid.as<typename E::Storage>() + (batch * sampling.out_size + first) * sampling.rank;
  for (int64_t i = 0; i < count; ++i, numbers += sampling.rank) {
    typename E::Compute wide[3] = {};
    for (int64_t d = 0; d < sampling.rank; ++d) wide[d] = E::load(numbers[d]);
    table.set(sampling, i, wide, with_slopes);
  }
}

// A float of each channel side by side: eight are computed at once.
constexpr int64_t kLanes = 8;

// The planes of a batch element, [channels, positions], as [positions, channels], widened, with channels up to a
// multiple of kLanes, and back.
template <typename E>
class ByPosition {
 public:
  using S = typename E::Storage;
  using C = typename E::Compute;
  ByPosition(Scratch& memory, Scratch& narrow_memory, int64_t channels, int64_t positions)
      : channels_(channels),
        row_((channels + kLanes - 1) / kLanes * kLanes),
        positions_(positions),
        values_(memory.get<C>(row_ * positions)) {
    if constexpr (kIsNarrow<E>) {
      narrow_ = narrow_memory.get<S>(row_ * positions);
    } else {
      narrow_ = values_;
    }
  }
  int64_t row() const { return row_; }
  C* at(int64_t position) const { return values_ + position * row_; }
  void clear() { std::fill(values_, values_ + row_ * positions_, C(0)); }

  void load(const TensorView& planes, int64_t batch, int threads) {
    if (row_ != channels_) std::fill(narrow_, narrow_ + row_ * positions_, S{});
    copy_tensor(turned(planes.dtype), part(planes, batch), threads);
    if constexpr (kIsNarrow<E>) {
      for_lines(threads, [&](int64_t first, int64_t count) { widen_line<E>(narrow_ + first, values_ + first, count); });
    }
  }
  void store(const TensorView& planes, int64_t batch, int threads) {
    if constexpr (kIsNarrow<E>) {
      for_lines(threads,
                [&](int64_t first, int64_t count) { narrow_line<E>(values_ + first, narrow_ + first, count); });
    }
    copy_tensor(part(planes, batch), turned(planes.dtype), threads);
  }

 private:
  TensorView part(const TensorView& planes, int64_t batch) const {
    return {.data = planes.as<S>() + batch * channels_ * positions_,
            .dtype = planes.dtype,
            .sizes = {channels_, positions_},
            .strides = {positions_, 1}};
  }
  TensorView turned(DType dtype) const {
    return {.data = narrow_, .dtype = dtype, .sizes = {channels_, positions_}, .strides = {1, row_}};
  }
  template <typename Body>
  void for_lines(int threads, const Body& body) {
    parallel_for(threads, positions_, std::max<int64_t>(1, 16384 / row_),
                 [&](int64_t begin, int64_t end) { body(begin * row_, (end - begin) * row_); });
  }

  int64_t channels_, row_, positions_;
  C* values_;
  S* narrow_;
};

// sums[c] = the weighted elements of position i, tap by tap.
template <typename C>
NEURON_AVX2 void sample(const TapTable<C>& table, int taps, int64_t i, const C* elements, int64_t row,
                        C* __restrict sums) {
  for (int64_t c = 0; c < row; c += kLanes) {
    C sum[kLanes] = {};
    for (int t = 0; t < taps; ++t) {
      if (table.index[t][i] < 0) continue;
      const C weight = table.weight[t][i];
      const C* element = elements + table.index[t][i] * row + c;
      for (int64_t l = 0; l < kLanes; ++l) sum[l] += weight * element[l];
    }
    for (int64_t l = 0; l < kLanes; ++l) sums[c + l] = sum[l];
  }
}

// elements of the taps of position i += weight * gradient, for channels [begin, end).
template <typename C>
NEURON_AVX2 void scatter(const TapTable<C>& table, int taps, int64_t i, const C* __restrict gradient, int64_t row,
                         int64_t begin, int64_t end, C* __restrict elements) {
  for (int t = 0; t < taps; ++t) {
    if (table.index[t][i] < 0) continue;
    const C weight = table.weight[t][i];
    C* element = elements + table.index[t][i] * row;
    for (int64_t c = begin; c < end; ++c) element[c] += weight * gradient[c];
  }
}

// The product of a position's gradient and the element of one of its taps, summed over channels: in kLanes lanes, whose
// halves are added last: 4, 2, 1.
template <typename C>
NEURON_AVX2 C dot(const C* __restrict gradient, const C* __restrict element, int64_t row) {
  C lanes[kLanes] = {};
  for (int64_t c = 0; c < row; c += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] += gradient[c + l] * element[c + l];
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// body(table, first position, count) for the blocks of a batch element's positions, in parallel.
template <typename E, typename Body>
void for_each_block(const Sampling& sampling, const TensorView& grid, int64_t batch, bool with_slopes, int threads,
                    const Body& body) {
  const int64_t blocks = (sampling.out_size + kBlock - 1) / kBlock;
  parallel_for(threads, blocks, 1, [&](int64_t begin, int64_t end) {
    TapTable<typename E::Compute>& table = tap_table<typename E::Compute>();
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock, count = std::min(kBlock, sampling.out_size - first);
      fill<E>(table, sampling, grid, batch, first, count, with_slopes);
      body(table, first, count);
    }
  });
}

struct Buffers {
  Scratch input, samples, narrow_input, narrow_samples;
};
thread_local Buffers buffers;

// outputs: samples; inputs: input, grid.
void run_grid_sample(const Call& call) {
  const TensorView &out = call.outputs[0], &in = call.inputs[0], &grid = call.inputs[1];
  const Sampling s(call, in, grid);
  dispatch_float(in.dtype, [&](auto element) {
    using E = decltype(element);
    ByPosition<E> input(buffers.input, buffers.narrow_input, s.planes, s.in_size);
    ByPosition<E> samples(buffers.samples, buffers.narrow_samples, s.planes, s.out_size);
    for (int64_t batch = 0; batch < s.batch; ++batch) {
      input.load(in, batch, call.threads);
      for_each_block<E>(s, grid, batch, false, call.threads, [&](const auto& table, int64_t first, int64_t count) {
        for (int64_t i = 0; i < count; ++i) sample(table, s.taps(), i, input.at(0), input.row(), samples.at(first + i));
      });
      samples.store(out, batch, call.threads);
    }
  });
}

// outputs: gradient of the input; inputs: gradient of the samples, grid. An element receives in the order of positions,
// of one tap by tap.
void run_grid_sample_input(const Call& call) {
  const TensorView &result = call.outputs[0], &gradient = call.inputs[0], &grid = call.inputs[1];
  const Sampling s(call, result, grid);
  dispatch_float(result.dtype, [&](auto element) {
    using E = decltype(element);
    ByPosition<E> input(buffers.input, buffers.narrow_input, s.planes, s.in_size);
    ByPosition<E> samples(buffers.samples, buffers.narrow_samples, s.planes, s.out_size);
    const int64_t groups = input.row() / kLanes;
    for (int64_t batch = 0; batch < s.batch; ++batch) {
      samples.load(gradient, batch, call.threads);
      input.clear();
      // Each thread adds up some channels.
      parallel_for(call.threads, groups, (groups + call.threads - 1) / call.threads, [&](int64_t begin, int64_t end) {
        for_each_block<E>(s, grid, batch, false, 1, [&](const auto& table, int64_t first, int64_t count) {
          for (int64_t i = 0; i < count; ++i)
            scatter(table, s.taps(), i, samples.at(first + i), input.row(), begin * kLanes, end * kLanes, input.at(0));
        });
      });
      input.store(result, batch, call.threads);
    }
  });
}

// outputs: gradient of the grid; inputs: gradient of the samples, input, grid.
void run_grid_sample_grid(const Call& call) {
  const TensorView &result = call.outputs[0], &gradient = call.inputs[0], &in = call.inputs[1], &grid = call.inputs[2];
  const Sampling s(call, in, grid);
  dispatch_float(in.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    ByPosition<E> input(buffers.input, buffers.narrow_input, s.planes, s.in_size);
    ByPosition<E> samples(buffers.samples, buffers.narrow_samples, s.planes, s.out_size);
    for (int64_t batch = 0; batch < s.batch; ++batch) {
      input.load(in, batch, call.threads);
      samples.load(gradient, batch, call.threads);
      auto* to = result.as<typename E::Storage>() + batch * s.out_size * s.rank;
      for_each_block<E>(s, grid, batch, true, call.threads, [&](const auto& table, int64_t first, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          C sums[3] = {};
          for (int t = 0; t < s.taps(); ++t) {
            if (table.index[t][i] < 0) continue;
            const C product = dot(samples.at(first + i), input.at(table.index[t][i]), input.row());
            for (int d = 0; d < 3; ++d) sums[d] += table.slope[d][t][i] * product;
          }
          for (int64_t d = 0; d < s.rank; ++d) to[(first + i) * s.rank + d] = E::store(sums[d]);
        }
      });
    }
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "grid_sample", .run = run_grid_sample}),
    KernelRegistration({.name = "grid_sample_input", .run = run_grid_sample_input}),
    KernelRegistration({.name = "grid_sample_grid", .run = run_grid_sample_grid}),
};

}  // namespace
}  // namespace neuron::kernels
