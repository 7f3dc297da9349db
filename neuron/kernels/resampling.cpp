// Kernels "resample" and "resample_backward": nearest, linear and cubic interpolation over the last one to three
// dimensions of contiguous tensors. Positions and weights are computed in float32 (float64 tensors: in float64); a sum
// takes the taps of the innermost dimension first, in order, products rounded one by one; narrow floats in float32.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

enum Mode : int64_t { Nearest, NearestExact, Linear, Cubic };

// What each output position along a dimension reads: `count` input positions with weights.
template <typename C>
struct Taps {
  int count = 1;
  std::vector<int64_t> index{0};
  std::vector<C> weight{1};
};

// The nearest positions are those of float32 for every dtype, as CPU's.
int64_t nearest(int64_t position, int64_t in, int64_t out, double scale, bool exact) {
  if (!exact && in == out) return position;
  if (!exact && out == 2 * in) return position / 2;
  float step = scale > 0 ? static_cast<float>(1.0 / scale) : static_cast<float>(in) / static_cast<float>(out);
  float source =
      exact ? static_cast<float>((static_cast<double>(position) + 0.5) * step) : static_cast<float>(position) * step;
  return std::min(static_cast<int64_t>(std::floor(source)), in - 1);
}

template <typename C>
C cubic_near(C x) {  // |x| <= 1
  constexpr C a = C(-0.75);
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <typename C>
C cubic_far(C x) {  // 1 < |x| < 2
  constexpr C a = C(-0.75);
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

template <typename C>
Taps<C> taps_of(Mode mode, bool align_corners, int64_t in, int64_t out, double scale) {
  Taps<C> taps;
  taps.index.clear();
  taps.weight.clear();
  taps.count = mode == Linear ? 2 : mode == Cubic ? 4 : 1;
  C step = 0;
  if (align_corners) {
    if (out > 1) step = static_cast<C>(in - 1) / static_cast<C>(out - 1);
  } else {
    step = scale > 0 ? static_cast<C>(1.0 / scale) : static_cast<C>(in) / static_cast<C>(out);
  }
  for (int64_t i = 0; i < out; ++i) {
    if (mode == Nearest || mode == NearestExact) {
      taps.index.push_back(nearest(i, in, out, scale, mode == NearestExact));
      taps.weight.push_back(1);
      continue;
    }
    C source = align_corners ? step * static_cast<C>(i) : step * (static_cast<C>(i) + C(0.5)) - C(0.5);
    if (mode == Linear) {
      source = std::max(source, C(0));
      int64_t first = std::min(static_cast<int64_t>(source), in - 1);
      C part = std::clamp(source - static_cast<C>(first), C(0), C(1));
      taps.index.insert(taps.index.end(), {first, std::min(first + 1, in - 1)});
      taps.weight.insert(taps.weight.end(), {C(1) - part, part});
    } else {
      int64_t first = std::min(static_cast<int64_t>(std::floor(source)), in - 1);
      C part = std::clamp(source - static_cast<C>(first), C(0), C(1)), rest = C(1) - part;
      for (int64_t k = -1; k <= 2; ++k) taps.index.push_back(std::clamp<int64_t>(first + k, 0, in - 1));
      taps.weight.insert(taps.weight.end(),
                         {cubic_far(part + 1), cubic_near(part), cubic_near(rest), cubic_far(rest + 1)});
    }
  }
  return taps;
}

// The resampled dimensions as three, outermost first; missing ones have one position.
template <typename C>
struct Grid {
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};
  std::array<Taps<C>, 3> taps;

  // attributes: mode, whether corners are aligned, number of dimensions. scalars: scale of each dimension, 0 when the
  // sizes give it.
  Grid(const Call& call, const TensorView& small, const TensorView& large) {
    auto mode = static_cast<Mode>(call.attributes[0]);
    int rank = static_cast<int>(call.attributes[2]);
    for (int d = 0; d < rank; ++d) {
      int to = 3 - rank + d;
      in[to] = small.sizes[small.rank() - rank + d];
      out[to] = large.sizes[large.rank() - rank + d];
      taps[to] = taps_of<C>(mode, call.attributes[1] != 0, in[to], out[to], call.scalars[d].as_double());
    }
  }
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }

  // body(output position, z, y, x) in row-major order.
  template <typename Body>
  void for_each(const Body& body) const {
    int64_t position = 0;
    for (int64_t z = 0; z < out[0]; ++z)
      for (int64_t y = 0; y < out[1]; ++y)
        for (int64_t x = 0; x < out[2]; ++x) body(position++, z, y, x);
  }
};

// Sum of weight * value over the taps of one dimension at a position; no addition for a single tap, so that signs of
// zero and NaN pass unchanged.
template <typename C, typename Value>
C weighted_sum(const Taps<C>& taps, int64_t position, const Value& value) {
  const int64_t* index = taps.index.data() + position * taps.count;
  const C* weight = taps.weight.data() + position * taps.count;
  if (taps.count == 1) return value(index[0]);
  C sum = weight[0] * value(index[0]);
  for (int t = 1; t < taps.count; ++t) sum = sum + weight[t] * value(index[t]);
  return sum;
}

int64_t planes_at_once(int64_t work) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)); }

// outputs: resampled; inputs: original.
void run_resample(const Call& call) {
  const TensorView &out = call.outputs[0], &in = call.inputs[0];
  dispatch_float(in.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    const Grid<C> grid(call, in, out);
    parallel_for(call.threads, out.numel() / grid.out_size(), planes_at_once(grid.out_size()),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t plane = begin; plane < end; ++plane) {
                     const auto* from = in.as<typename E::Storage>() + plane * grid.in_size();
                     auto* to = out.as<typename E::Storage>() + plane * grid.out_size();
                     grid.for_each([&](int64_t position, int64_t z, int64_t y, int64_t x) {
                       to[position] = E::store(weighted_sum(grid.taps[0], z, [&](int64_t i) {
                         return weighted_sum(grid.taps[1], y, [&](int64_t j) {
                           const auto* row = from + (i * grid.in[1] + j) * grid.in[2];
                           return weighted_sum(grid.taps[2], x, [&](int64_t k) { return E::load(row[k]); });
                         });
                       }));
                     });
                   }
                 });
  });
}

// outputs: gradient of the original; inputs: gradient of the resampled. Sums are in row-major order of the latter.
void run_resample_backward(const Call& call) {
  const TensorView &result = call.outputs[0], &gradient = call.inputs[0];
  dispatch_float(result.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    const Grid<C> grid(call, result, gradient);
    const auto& [depth, height, width] = grid.taps;
    parallel_for(call.threads, gradient.numel() / grid.out_size(), planes_at_once(grid.out_size()),
                 [&](int64_t begin, int64_t end) {
                   std::vector<C> sums(grid.in_size());
                   for (int64_t plane = begin; plane < end; ++plane) {
                     std::fill(sums.begin(), sums.end(), C(0));
                     const auto* from = gradient.as<typename E::Storage>() + plane * grid.out_size();
                     grid.for_each([&](int64_t position, int64_t z, int64_t y, int64_t x) {
                       const C value = E::load(from[position]);
                       for (int i = 0; i < depth.count; ++i) {
                         const C slice = value * depth.weight[z * depth.count + i];
                         const int64_t first = depth.index[z * depth.count + i] * grid.in[1];
                         for (int j = 0; j < height.count; ++j) {
                           const C line = slice * height.weight[y * height.count + j];
                           C* row = sums.data() + (first + height.index[y * height.count + j]) * grid.in[2];
                           for (int k = 0; k < width.count; ++k)
                             row[width.index[x * width.count + k]] += line * width.weight[x * width.count + k];
                         }
                       }
                     });
                     auto* to = result.as<typename E::Storage>() + plane * grid.in_size();
                     for (int64_t i = 0; i < grid.in_size(); ++i) to[i] = E::store(sums[i]);
                   }
                 });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "resample", .run = run_resample}),
    KernelRegistration({.name = "resample_backward", .run = run_resample_backward}),
};

}  // namespace
}  // namespace neuron::kernels
