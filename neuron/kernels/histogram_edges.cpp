// Kernels "histogram_edges" and "histogram_weights": histograms whose bins are told by their edges.
#include <algorithm>
#include <cmath>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

// body(T{}) for float32 or float64.
template <typename Body>
void dispatch_native(DType dtype, const Body& body) {
  if (dtype == DType::Float32) return body(float{});
  check_internal(dtype == DType::Float64, "a histogram of {}", dtype_name(dtype));
  body(double{});
}

// outputs: edges [bins + 1]; inputs: elements; scalars: low and high edge, or none: the extremes of the elements (of
// none: 0 and 1). Equal edges are moved apart by a half each; evenly spaced, counted from the nearer end.
void run_edges(const Call& call) {
  const TensorView &edges = call.outputs[0], &in = call.inputs[0];
  dispatch_native(edges.dtype, [&](auto type) {
    using T = decltype(type);
    T low = 0, high = 1;
    const T* elements = in.as<T>();
    if (!call.scalars.empty()) {
      low = static_cast<T>(call.scalars[0].as_double());
      high = static_cast<T>(call.scalars[1].as_double());
    } else if (in.numel() > 0) {
      low = high = elements[0];
      StridedLoop<1>(in.sizes, {&in.strides}).for_each([&](const auto& offsets) {
        const T value = elements[offsets[0]];
        if (value < low || value != value) low = value;
        if (value > high || value != value) high = value;
      });
    }
    if (!std::isfinite(low) || !std::isfinite(high))
      fail(ErrorKind::Runtime, "torch.histogramdd: dimension 0's range [{}, {}] is not finite", low, high);
    if (low == high) {
      low -= T(0.5);
      high += T(0.5);
    }
    const int64_t bins = edges.sizes[0] - 1;
    const T step = (high - low) / static_cast<T>(bins);
    for (int64_t i = 0; i <= bins; ++i) {
      edges.as<T>()[i * edges.strides[0]] =
          i < (bins + 1) / 2 ? low + step * static_cast<T>(i) : high - step * static_cast<T>(bins - i);
    }
  });
}

// outputs: [bins]; inputs: elements, edges [bins + 1], optional weights of the elements' sizes; attributes: density
// (the integral is 1). Sums are taken in double, in row-major order; the last bin includes its upper edge; elements
// outside and NaN do not count.
void run_weights(const Call& call) {
  const TensorView &out = call.outputs[0], &in = call.inputs[0];
  const TensorView& weights = call.inputs.size() > 2 ? call.inputs[2] : in;
  const bool weighted = call.inputs.size() > 2, even = call.attributes[1] != 0;
  dispatch_native(out.dtype, [&](auto type) {
    using T = decltype(type);
    const int64_t bins = out.sizes[0];
    std::vector<T> edges(static_cast<size_t>(bins) + 1);
    for (int64_t i = 0; i <= bins; ++i) edges[i] = call.inputs[1].as<T>()[i * call.inputs[1].strides[0]];
    const T scale = static_cast<T>(bins) / (edges.back() - edges.front());
    std::vector<double> sums(static_cast<size_t>(bins));
    StridedLoop<2>(in.sizes, {&in.strides, &weights.strides}).for_each([&](const auto& offsets) {
      const T value = in.as<T>()[offsets[0]];
      if (!(value >= edges.front() && value <= edges.back())) return;
      int64_t place;
      if (even) {
        place = std::min(bins - 1, static_cast<int64_t>((value - edges.front()) * scale));
        while (place > 0 && value < edges[place]) --place;
        while (place < bins - 1 && value >= edges[place + 1]) ++place;
      } else {
        place = std::upper_bound(edges.begin(), edges.end(), value) - edges.begin() - 1;
      }
      sums[std::clamp<int64_t>(place, 0, bins - 1)] +=
          weighted ? static_cast<double>(weights.as<T>()[offsets[1]]) : 1.0;
    });
    double total = 1;
    if (call.attributes[0] != 0) {
      total = 0;
      for (double sum : sums) total += sum;
    }
    for (int64_t i = 0; i < bins; ++i) {
      const double width = call.attributes[0] != 0 ? static_cast<double>(edges[i + 1]) - edges[i] : 1.0;
      out.as<T>()[i * out.strides[0]] = static_cast<T>(sums[i] / total / width);
    }
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "histogram_edges", .run = run_edges, .may_raise = true}),
    KernelRegistration({.name = "histogram_weights", .run = run_weights}),
};

}  // namespace
}  // namespace neuron::kernels
