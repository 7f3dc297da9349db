// Kernels "max_pool", "max_pool_backward", "average_pool" and "average_pool_backward" (also adaptive: no attributes),
// over the last two dimensions of contiguous tensors. Planes are independent; sums in a plane are in row-major order,
// narrow floats in float32.
#include <algorithm>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

struct Plane {
  int64_t height, width;
  explicit Plane(const TensorView& view) : height(view.sizes[view.rank() - 2]), width(view.sizes[view.rank() - 1]) {}
  int64_t size() const { return height * width; }
};

// body(plane index) for every plane, in parallel.
template <typename Body>
void for_each_plane(const TensorView& view, int64_t work, int threads, const Body& body) {
  int64_t size = std::max<int64_t>(1, Plane(view).size());
  parallel_for(threads, view.numel() / size, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t plane = begin; plane < end; ++plane) body(plane);
               });
}

// A window along one dimension: [begin, end) inside the input and its nominal length, padding included.
struct Window {
  int64_t begin, end, nominal;
};

// attributes: kernel, stride, padding, dilation (height and width of each).
struct MaximumWindows {
  std::span<const int64_t> a;
  int64_t first(int64_t position, int d) const {
    int64_t start = position * a[2 + d] - a[4 + d], dilation = a[6 + d];
    return start < 0 ? start + (-start + dilation - 1) / dilation * dilation : start;
  }
  int64_t end(int64_t position, int d, int64_t extent) const {
    return std::min(position * a[2 + d] - a[4 + d] + (a[d] - 1) * a[6 + d] + 1, extent);
  }
};

// outputs: values, indices (int64, position in the plane); inputs: input. The first of equal maxima; a NaN wins.
void run_max_pool(const Call& call) {
  const TensorView &values = call.outputs[0], &in = call.inputs[0];
  Plane out_plane(values), in_plane(in);
  MaximumWindows windows{call.attributes};
  dispatch_real(in.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    for_each_plane(in, in_plane.size(), call.threads, [&](int64_t plane) {
      const auto* from = in.as<typename E::Storage>() + plane * in_plane.size();
      auto* to = values.as<typename E::Storage>() + plane * out_plane.size();
      int64_t* places = call.outputs[1].as<int64_t>() + plane * out_plane.size();
      for (int64_t i = 0; i < out_plane.height; ++i) {
        int64_t y_first = windows.first(i, 0), y_end = windows.end(i, 0, in_plane.height);
        for (int64_t j = 0; j < out_plane.width; ++j) {
          int64_t x_first = windows.first(j, 1), x_end = windows.end(j, 1, in_plane.width);
          int64_t best = y_first * in_plane.width + x_first;
          C maximum = E::load(from[best]);
          for (int64_t y = y_first; y < y_end; y += call.attributes[6]) {
            for (int64_t x = x_first; x < x_end; x += call.attributes[7]) {
              C value = E::load(from[y * in_plane.width + x]);
              if (value > maximum || value != value) {
                maximum = value;
                best = y * in_plane.width + x;
              }
            }
          }
          to[i * out_plane.width + j] = E::store(maximum);
          places[i * out_plane.width + j] = best;
        }
      }
    });
  });
}

// outputs: gradient of the input; inputs: gradient, indices.
void run_max_pool_backward(const Call& call) {
  const TensorView &result = call.outputs[0], &gradient = call.inputs[0];
  Plane out_plane(gradient), in_plane(result);
  dispatch_float(result.dtype, [&](auto element) {
    using E = decltype(element);
    for_each_plane(result, in_plane.size(), call.threads, [&](int64_t plane) {
      std::vector<typename E::Compute> sums(in_plane.size());
      const auto* from = gradient.as<typename E::Storage>() + plane * out_plane.size();
      const int64_t* places = call.inputs[1].as<int64_t>() + plane * out_plane.size();
      for (int64_t i = 0; i < out_plane.size(); ++i) sums[places[i]] += E::load(from[i]);
      auto* to = result.as<typename E::Storage>() + plane * in_plane.size();
      for (int64_t i = 0; i < in_plane.size(); ++i) to[i] = E::store(sums[i]);
    });
  });
}

// attributes of average pooling: kernel, stride, padding (height and width of each), whether padding counts, divisor or
// 0.
Window average_window(std::span<const int64_t> a, int d, int64_t position, int64_t extent) {
  int64_t begin = position * a[2 + d] - a[4 + d], end = std::min(begin + a[d], extent + a[4 + d]);
  return {std::max<int64_t>(0, begin), std::min(end, extent), end - begin};
}

int64_t average_divisor(std::span<const int64_t> a, const Window& y, const Window& x) {
  if (a[7] != 0) return a[7];
  return a[6] != 0 ? y.nominal * x.nominal : (y.end - y.begin) * (x.end - x.begin);
}

// Adaptive pooling: windows from floor(i * in / out) to ceil((i + 1) * in / out).
Window adaptive_window(int64_t position, int64_t in, int64_t out) {
  int64_t begin = position * in / out, end = ((position + 1) * in + out - 1) / out;
  return {begin, end, end - begin};
}

struct AverageWindows {
  std::span<const int64_t> attributes;  // empty: adaptive
  Plane in, out;
  Window rows(int64_t i) const {
    return attributes.empty() ? adaptive_window(i, in.height, out.height) : average_window(attributes, 0, i, in.height);
  }
  Window columns(int64_t j) const {
    return attributes.empty() ? adaptive_window(j, in.width, out.width) : average_window(attributes, 1, j, in.width);
  }
  int64_t divisor(const Window& y, const Window& x) const {
    return attributes.empty() ? y.nominal * x.nominal : average_divisor(attributes, y, x);
  }
};

// outputs: result; inputs: input.
void run_average_pool(const Call& call) {
  const TensorView &out = call.outputs[0], &in = call.inputs[0];
  AverageWindows windows{call.attributes, Plane(in), Plane(out)};
  dispatch_float(in.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    for_each_plane(in, windows.in.size(), call.threads, [&](int64_t plane) {
      const auto* from = in.as<typename E::Storage>() + plane * windows.in.size();
      auto* to = out.as<typename E::Storage>() + plane * windows.out.size();
      for (int64_t i = 0; i < windows.out.height; ++i) {
        for (int64_t j = 0; j < windows.out.width; ++j) {
          Window y = windows.rows(i), x = windows.columns(j);
          C sum = 0;
          for (int64_t r = y.begin; r < y.end; ++r) {
            for (int64_t c = x.begin; c < x.end; ++c) sum += E::load(from[r * windows.in.width + c]);
          }
          bool empty = y.begin >= y.end || x.begin >= x.end;
          to[i * windows.out.width + j] = E::store(empty ? C(0) : sum / static_cast<C>(windows.divisor(y, x)));
        }
      }
    });
  });
}

// outputs: gradient of the input; inputs: gradient.
void run_average_pool_backward(const Call& call) {
  const TensorView &result = call.outputs[0], &gradient = call.inputs[0];
  AverageWindows windows{call.attributes, Plane(result), Plane(gradient)};
  dispatch_float(result.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    for_each_plane(result, windows.in.size(), call.threads, [&](int64_t plane) {
      std::vector<C> sums(windows.in.size());
      const auto* from = gradient.as<typename E::Storage>() + plane * windows.out.size();
      for (int64_t i = 0; i < windows.out.height; ++i) {
        for (int64_t j = 0; j < windows.out.width; ++j) {
          Window y = windows.rows(i), x = windows.columns(j);
          C share = E::load(from[i * windows.out.width + j]) / static_cast<C>(windows.divisor(y, x));
          for (int64_t r = y.begin; r < y.end; ++r) {
            for (int64_t c = x.begin; c < x.end; ++c) sums[r * windows.in.width + c] += share;
          }
        }
      }
      auto* to = result.as<typename E::Storage>() + plane * windows.in.size();
      for (int64_t i = 0; i < windows.in.size(); ++i) to[i] = E::store(sums[i]);
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "max_pool", .run = run_max_pool}),
    KernelRegistration({.name = "max_pool_backward", .run = run_max_pool_backward}),
    KernelRegistration({.name = "average_pool", .run = run_average_pool}),
    KernelRegistration({.name = "average_pool_backward", .run = run_average_pool_backward}),
};

}  // namespace
}  // namespace neuron::kernels
