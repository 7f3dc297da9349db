// Kernels "bincount_size", "bincount" and "mode": how often values come.
#include <algorithm>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/lines.h"
#include "neuron/kernels/order_keys.h"

namespace neuron::kernels {
namespace {

// body(value, position) for each element of a vector of integers.
template <typename Body>
void for_each_integer(const TensorView& view, const Body& body) {
  dispatch_real(view.dtype, [&](auto element) {
    using E = decltype(element);
    const auto* values = view.as<typename E::Storage>();
    for (int64_t i = 0; i < view.sizes[0]; ++i) body(static_cast<int64_t>(E::load(values[i * view.strides[0]])), i);
  });
}

// outputs: the largest value and one (int64 scalar); inputs: a vector of integers. Raises CPU's text for negative ones.
void run_size(const Call& call) {
  int64_t least = 0, most = -1;
  for_each_integer(call.inputs[0], [&](int64_t value, int64_t) {
    least = std::min(least, value);
    most = std::max(most, value);
  });
  if (least < 0) fail(ErrorKind::Runtime, "bincount only supports 1-d non-negative integral inputs.");
  *call.outputs[0].as<int64_t>() = most + 1;
}

// outputs: counts (int64), or sums of weights in order in the weights' dtype, without gaps; inputs: a vector of
// integers below the result's size, optional weights (float32 or float64).
void run_bincount(const Call& call) {
  const TensorView& out = call.outputs[0];
  auto count = [&](auto* sums, auto weight_of) {
    std::fill(sums, sums + out.sizes[0], 0);
    for_each_integer(call.inputs[0], [&](int64_t value, int64_t i) { sums[value] += weight_of(i); });
  };
  if (call.inputs.size() == 1) return count(out.as<int64_t>(), [](int64_t) { return int64_t{1}; });
  const TensorView& weights = call.inputs[1];
  const int64_t stride = weights.strides[0];
  if (out.dtype == DType::Float32) {
    count(out.as<float>(), [&](int64_t i) { return weights.as<float>()[i * stride]; });
  } else {
    count(out.as<double>(), [&](int64_t i) { return weights.as<double>()[i * stride]; });
  }
}

// outputs: values, indices (int64), of size 1 along the dimension; inputs: self, not empty along it; attributes:
// dimension. The smallest of the most frequent values, and the last position of it; a NaN comes once.
void run_mode(const Call& call) {
  TensorView values = as_lines(call.outputs[0]), indices = as_lines(call.outputs[1]), self = as_lines(call.inputs[0]);
  const int64_t dimension = call.attributes[0], length = self.sizes[dimension];
  dispatch_real(self.dtype, [&](auto element) {
    using E = decltype(element);
    constexpr int kKeyBytes = sizeof(order_key<E>(typename E::Storage{}));
    const auto* from = self.as<typename E::Storage>();
    with_entry<E>(length, [&](auto kind) {
      using Entry = decltype(kind);
      for_each_line<3>({&values, &indices, &self}, dimension, call.threads, [&](const Line<3>& line) {
        static thread_local std::vector<Entry> entries, spare;
        const auto* source = from + line.offsets[2];
        const int64_t stride = line.strides[2];
        entries.resize(static_cast<size_t>(length));
        for (int64_t i = 0; i < length; ++i)
          entries[i] = Entry::of(static_cast<uint64_t>(order_key<E>(source[i * stride])), i);
        sort_entries(entries, spare, kKeyBytes);
        int64_t best = 0, most = 0, run = 0;
        for (int64_t i = 0; i < length; ++i) {
          ++run;
          const auto value = E::load(source[entries[i].position() * stride]);
          if (i + 1 < length && value == value && entries[i + 1].key() == entries[i].key()) continue;
          if (run > most) {
            most = run;
            best = entries[i].position();
          }
          run = 0;
        }
        values.as<typename E::Storage>()[line.offsets[0]] = source[best * stride];
        indices.as<int64_t>()[line.offsets[1]] = best;
      });
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "bincount_size", .run = run_size, .may_raise = true}),
    KernelRegistration({.name = "bincount", .run = run_bincount}),
    KernelRegistration({.name = "mode", .run = run_mode}),
};

}  // namespace
}  // namespace neuron::kernels
