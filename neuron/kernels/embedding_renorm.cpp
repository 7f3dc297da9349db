// Kernel "embedding_renorm": rows that are looked up are scaled to a largest norm.
#include <algorithm>
#include <cmath>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

// The norm of a line in double, elements in order.
template <typename E>
double norm_of(const typename E::Storage* line, int64_t stride, int64_t count, double order) {
  double result = order == -HUGE_VAL && count > 0 ? HUGE_VAL : 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = std::abs(static_cast<double>(E::load(line[i * stride])));
    if (order == 2) {
      result += value * value;
    } else if (order == 1) {
      result += value;
    } else if (order == 0) {
      result += value != 0;
    } else if (order == HUGE_VAL) {
      result = value > result || value != value ? value : result;
    } else if (order == -HUGE_VAL) {
      result = value < result || value != value ? value : result;
    } else {
      result += std::pow(value, order);
    }
  }
  if (order == 2) return std::sqrt(result);
  return order == 0 || order == 1 || std::isinf(order) ? result : std::pow(result, 1 / order);
}

// outputs: weight [rows, width] (read and written); inputs: indices; scalars: largest norm, order of the norm. A row
// that is named twice is scaled once.
void run(const Call& call) {
  const TensorView &weight = call.outputs[0], &indices = call.inputs[0];
  const double largest = call.scalars[0].as_double(), order = call.scalars[1].as_double();
  const int64_t width = weight.sizes[1], stride = weight.strides[1];
  std::vector<int64_t> rows;
  dispatch_index(indices.dtype, [&](auto type) {
    const auto* values = indices.as<decltype(type)>();
    StridedLoop<1>(indices.sizes, {&indices.strides}).for_each([&](const auto& offsets) {
      const int64_t row = values[offsets[0]];
      if (row < -weight.sizes[0] || row >= weight.sizes[0]) {
        fail(ErrorKind::Index, "select(): index {} out of range for tensor of size [{}, {}] at dimension 0", row,
             weight.sizes[0], width);
      }
      rows.push_back(row < 0 ? row + weight.sizes[0] : row);
    });
  });
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  dispatch_float(weight.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, width));
    parallel_for(call.threads, static_cast<int64_t>(rows.size()), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        auto* line = weight.as<typename E::Storage>() + rows[static_cast<size_t>(i)] * weight.strides[0];
        const double norm = norm_of<E>(line, stride, width, order);
        if (!(norm > largest)) continue;
        const auto scale = static_cast<C>(largest / (norm + 1e-7));
        for (int64_t j = 0; j < width; ++j) line[j * stride] = E::store(E::load(line[j * stride]) * scale);
      }
    });
  });
}

const KernelRegistration registration({.name = "embedding_renorm", .run = run, .may_raise = true});

}  // namespace
}  // namespace neuron::kernels
