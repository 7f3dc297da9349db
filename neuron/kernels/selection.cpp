// Kernels "kth_value" (also the median) and "search_sorted". NaN is greater than every number.
#include <algorithm>
#include <vector>

#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/lines.h"
#include "neuron/kernels/order_keys.h"

namespace neuron::kernels {
namespace {

// What "kth_value" looks for instead of a position, counted from 0.
constexpr int64_t kMedian = -1;     // the lower one; the first NaN when there is one
constexpr int64_t kNanMedian = -2;  // the lower one of what is no NaN

// The position of the first NaN in a line, or -1; and how many there are.
template <typename E>
std::pair<int64_t, int64_t> find_nan(const typename E::Storage* line, int64_t stride, int64_t length) {
  int64_t first = -1, count = 0;
  for (int64_t i = 0; i < length; ++i) {
    const auto value = E::load(line[i * stride]);
    if (value == value) continue;
    if (count++ == 0) first = i;
  }
  return {first, count};
}

// outputs: values, indices (int64), of size 1 along the dimension; inputs: self, not empty along it; attributes: k,
// dimension. Of equal elements the order is that of their positions.
void run_kth_value(const Call& call) {
  TensorView values = as_lines(call.outputs[0]), indices = as_lines(call.outputs[1]), self = as_lines(call.inputs[0]);
  const int64_t wanted = call.attributes[0], dimension = call.attributes[1], length = self.sizes[dimension];
  dispatch_real(self.dtype, [&](auto element) {
    using E = decltype(element);
    const auto* from = self.as<typename E::Storage>();
    auto* to = values.as<typename E::Storage>();
    auto* places = indices.as<int64_t>();
    with_entry<E>(length, [&](auto kind) {
      using Entry = decltype(kind);
      for_each_line<3>({&values, &indices, &self}, dimension, call.threads, [&](const Line<3>& line) {
        static thread_local std::vector<Entry> entries;
        const auto* source = from + line.offsets[2];
        const int64_t stride = line.strides[2];
        auto give = [&](int64_t position) {
          to[line.offsets[0]] = source[position * stride];
          places[line.offsets[1]] = position;
        };
        int64_t k = wanted;
        if (wanted < 0) {
          const auto [first, count] = find_nan<E>(source, stride, length);
          if (wanted == kMedian && count > 0) return give(first);
          k = std::max<int64_t>(0, length - (wanted == kNanMedian ? count : 0) - 1) / 2;
        }
        entries.resize(static_cast<size_t>(length));
        for (int64_t i = 0; i < length; ++i) entries[i] = Entry::of(order_key<E>(source[i * stride]), i);
        std::nth_element(entries.begin(), entries.begin() + k, entries.end());
        give(entries[k].position());
      });
    });
  });
}

// outputs: places (int64 or int32); inputs: sequences, ascending along the last dimension: one for all values, or one
// for each line of them; values of the same dtype. Both contiguous. attributes: right. The place is the first whose
// element is not below (right: is above) the value; behind the last one for a NaN.
void run_search_sorted(const Call& call) {
  const TensorView &places = call.outputs[0], &sequences = call.inputs[0], &values = call.inputs[1];
  const bool right = call.attributes[0] != 0;
  const int64_t length = sequences.sizes[sequences.rank() - 1];
  const int64_t line = sequences.rank() == 1 ? values.numel() : values.sizes[values.rank() - 1];
  dispatch_real(sequences.dtype, [&](auto element) {
    using E = decltype(element);
    const auto* from = sequences.as<typename E::Storage>();
    const auto* wanted = values.as<typename E::Storage>();
    dispatch_index(places.dtype, [&](auto type) {
      auto* to = places.as<decltype(type)>();
      parallel_for(call.threads, values.numel(), 1024, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto* sequence = from + (sequences.rank() == 1 ? 0 : i / line * length);
          const auto value = E::load(wanted[i]);
          int64_t low = 0;
          for (int64_t count = length; count > 0;) {
            const int64_t half = count / 2;
            const auto middle = E::load(sequence[low + half]);
            const bool behind = right ? !(middle > value) : !(middle >= value);
            low = behind ? low + half + 1 : low;
            count = behind ? count - half - 1 : half;
          }
          to[i] = static_cast<decltype(type)>(low);
        }
      });
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "kth_value", .run = run_kth_value}),
    KernelRegistration({.name = "search_sorted", .run = run_search_sorted}),
};

}  // namespace
}  // namespace neuron::kernels
