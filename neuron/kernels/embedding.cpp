// Kernel "embedding_dense_backward". (The forward is "index_select".)
#include <algorithm>
#include <cstring>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

// Positions of the index tensor grouped by row of the weight, in order within a row (a counting sort).
struct Groups {
  std::vector<int64_t> starts;     // rows + 1
  std::vector<int64_t> positions;  // offsets into the gradient
};

// sums += line, both without gaps.
template <typename C>
void add_line(C* __restrict sums, const C* __restrict line, int64_t count) {
  for (int64_t j = 0; j < count; ++j) sums[j] += line[j];
}

// outputs: gradient of the weight [rows, width]; inputs: gradient [indices…, width], indices;
// attributes: padding index (-1: none), scale by frequency. Each element is the sum of its contributions in row-major
// order of the indices, in float32 (float64 for float64).
void run(const Call& call) {
  const TensorView& weight = call.outputs[0];
  const TensorView& gradient = call.inputs[0];
  const TensorView& indices = call.inputs[1];
  int64_t padding = call.attributes[0], rows = weight.sizes[0], width = weight.sizes[1];
  bool by_frequency = call.attributes[1] != 0;
  Groups groups;
  groups.starts.assign(rows + 2, 0);
  groups.positions.resize(indices.numel());
  Dims gradient_strides;
  for (int d = 0; d < indices.rank(); ++d) gradient_strides.push_back(gradient.strides[d]);
  int64_t step = gradient.strides[gradient.rank() - 1];
  StridedLoop<2> loop(indices.sizes, {&indices.strides, &gradient_strides});
  dispatch_index(indices.dtype, [&](auto type) {
    const auto* values = indices.as<decltype(type)>();
    loop.for_each([&](const auto& offsets) {
      int64_t row = values[offsets[0]];
      if (row < 0 || row >= rows) fail(ErrorKind::Index, "index out of range in self");
      ++groups.starts[row + 2];
    });
    for (int64_t row = 0; row < rows; ++row) groups.starts[row + 2] += groups.starts[row + 1];
    loop.for_each([&](const auto& offsets) { groups.positions[groups.starts[values[offsets[0]] + 1]++] = offsets[1]; });
  });
  dispatch_float(weight.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    auto* to = weight.as<typename E::Storage>();
    const auto* from = gradient.as<typename E::Storage>();
    const int64_t next = weight.strides[1];
    // Work is cut along the width, so that a few frequent rows do not fall to one thread.
    int64_t grain = std::max<int64_t>(16, 16384 / std::max<int64_t>(1, rows + indices.numel()));
    parallel_for(call.threads, width, grain, [&](int64_t begin, int64_t end) {
      const int64_t count = end - begin;
      std::vector<C> sums(static_cast<size_t>(count)), wide(static_cast<size_t>(kIsNarrow<E> ? count : 0));
      for (int64_t row = 0; row < rows; ++row) {
        auto* line = to + row * weight.strides[0] + begin * next;
        const int64_t first = groups.starts[row], last = groups.starts[row + 1];
        if (first == last || row == padding) {
          if (next == 1) {
            std::memset(line, 0, static_cast<size_t>(count) * sizeof(*line));
          } else {
            for (int64_t j = 0; j < count; ++j) line[j * next] = E::store(C(0));
          }
          continue;
        }
        std::fill(sums.begin(), sums.end(), C(0));
        for (int64_t i = first; i < last; ++i) {
          const auto* part = from + groups.positions[i] + begin * step;
          if constexpr (kIsNarrow<E>) {
            load_line<E>(part, step, wide.data(), count);
            add_line(sums.data(), wide.data(), count);
          } else if (step == 1) {
            add_line(sums.data(), part, count);
          } else {
            for (int64_t j = 0; j < count; ++j) sums[j] += part[j * step];
          }
        }
        if (by_frequency) {
          for (C& sum : sums) sum = static_cast<C>(sum / static_cast<C>(last - first));
        }
        store_line<E>(sums.data(), line, next, count);
      }
    });
  });
}

const KernelRegistration registration({.name = "embedding_dense_backward", .run = run, .may_raise = true});

}  // namespace
}  // namespace neuron::kernels
