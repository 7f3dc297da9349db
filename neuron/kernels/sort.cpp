// Kernels "sort" (always stable), "topk" and "isin". NaN is greater than every number; equal elements keep their order.
#include <algorithm>
#include <vector>

#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/lines.h"
#include "neuron/kernels/order_keys.h"

namespace neuron::kernels {
namespace {

template <typename C>
bool is_nan(C value) {
  return value != value;
}

// outputs: values, indices (int64); inputs: self; attributes: dimension, descending.
void run_sort(const Call& call) {
  TensorView values = as_lines(call.outputs[0]), indices = as_lines(call.outputs[1]), self = as_lines(call.inputs[0]);
  const int64_t dimension = call.attributes[0], length = self.sizes[dimension];
  const bool descending = call.attributes[1] != 0;
  dispatch_real(self.dtype, [&](auto element) {
    using E = decltype(element);
    constexpr int kKeyBytes = sizeof(order_key<E>(typename E::Storage{}));
    const auto* from = self.as<typename E::Storage>();
    auto* to = values.as<typename E::Storage>();
    auto* order = indices.as<int64_t>();
    with_entry<E>(length, [&](auto kind) {
      using Entry = decltype(kind);
      for_each_line<3>({&values, &indices, &self}, dimension, call.threads, [&](const Line<3>& line) {
        static thread_local std::vector<Entry> entries, spare;
        const auto* source = from + line.offsets[2];
        entries.resize(static_cast<size_t>(length));
        for (int64_t i = 0; i < length; ++i)
          entries[i] = Entry::of(directed_key<E>(source[i * line.strides[2]], descending), i);
        sort_entries(entries, spare, kKeyBytes);
        for (int64_t i = 0; i < length; ++i) {
          const int64_t position = entries[i].position();
          to[line.offsets[0] + i * line.strides[0]] = source[position * line.strides[2]];
          order[line.offsets[1] + i * line.strides[1]] = position;
        }
      });
    });
  });
}

constexpr int64_t kMostInOrder = 32;

// The k smallest entries, in order, to the front of `entries`; a line's entries are make(0) … make(length - 1).
template <typename Entry, typename Make>
void select_first(std::vector<Entry>& entries, int64_t k, int64_t length, const Make& make) {
  if (k * 32 <= length) {
    // Few of many: the best k so far, in order or, where they are too many to be moved along, in a heap. A later equal
    // element does not enter.
    entries.resize(static_cast<size_t>(k));
    if (k == 0) return;
    for (int64_t i = 0; i < k; ++i) entries[i] = make(i);
    std::sort(entries.begin(), entries.end());
    const bool in_order = k <= kMostInOrder;
    if (!in_order) std::make_heap(entries.begin(), entries.end());
    const Entry& worst = in_order ? entries.back() : entries.front();
    for (int64_t i = k; i < length; ++i) {
      const Entry entry = make(i);
      if (!(entry < worst)) continue;
      if (in_order) {
        int64_t place = k - 1;
        for (; place > 0 && entry < entries[place - 1]; --place) entries[place] = entries[place - 1];
        entries[place] = entry;
        continue;
      }
      std::pop_heap(entries.begin(), entries.end());
      entries.back() = entry;
      std::push_heap(entries.begin(), entries.end());
    }
    if (!in_order) std::sort_heap(entries.begin(), entries.end());
    return;
  }
  entries.resize(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) entries[i] = make(i);
  if (k < length) std::nth_element(entries.begin(), entries.begin() + k, entries.end());
  std::sort(entries.begin(), entries.begin() + k);
}

// outputs: values, indices (int64); inputs: self; attributes: k, dimension, largest, sorted (always done). Of equal
// elements the first ones are taken.
void run_topk(const Call& call) {
  TensorView values = as_lines(call.outputs[0]), indices = as_lines(call.outputs[1]), self = as_lines(call.inputs[0]);
  const int64_t k = call.attributes[0], dimension = call.attributes[1], length = self.sizes[dimension];
  const bool largest = call.attributes[2] != 0;
  dispatch_real(self.dtype, [&](auto element) {
    using E = decltype(element);
    const auto* from = self.as<typename E::Storage>();
    auto* to = values.as<typename E::Storage>();
    auto* order = indices.as<int64_t>();
    with_entry<E>(length, [&](auto kind) {
      using Entry = decltype(kind);
      for_each_line<3>({&values, &indices, &self}, dimension, call.threads, [&](const Line<3>& line) {
        static thread_local std::vector<Entry> entries;
        const auto* source = from + line.offsets[2];
        select_first(entries, k, length,
                     [&](int64_t i) { return Entry::of(directed_key<E>(source[i * line.strides[2]], largest), i); });
        for (int64_t i = 0; i < k; ++i) {
          const int64_t position = entries[i].position();
          to[line.offsets[0] + i * line.strides[0]] = source[position * line.strides[2]];
          order[line.offsets[1] + i * line.strides[1]] = position;
        }
      });
    });
  });
}

// outputs: bool; inputs: elements of any shape, test elements of the same dtype; attributes: invert. A NaN equals
// nothing.
void run_isin(const Call& call) {
  const TensorView &result = call.outputs[0], &elements = call.inputs[0], &tests = call.inputs[1];
  bool invert = call.attributes[0] != 0;
  dispatch_real(elements.dtype, [&](auto element) {
    using E = decltype(element);
    const auto* values = elements.as<typename E::Storage>();
    const auto* candidates = tests.as<typename E::Storage>();
    std::vector<uint64_t> known;
    StridedLoop<1>(tests.sizes, {&tests.strides}).for_each([&](const auto& offsets) {
      const auto candidate = candidates[offsets[0]];
      if (!is_nan(E::load(candidate))) known.push_back(order_key<E>(candidate));
    });
    std::sort(known.begin(), known.end());
    StridedLoop<2>(elements.sizes, {&elements.strides, &result.strides}).for_each([&](const auto& offsets) {
      const auto value = values[offsets[0]];
      bool found = !is_nan(E::load(value)) && std::binary_search(known.begin(), known.end(), order_key<E>(value));
      result.as<bool>()[offsets[1]] = found != invert;
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "isin", .run = run_isin}),
    KernelRegistration({.name = "sort", .run = run_sort}),
    KernelRegistration({.name = "topk", .run = run_topk}),
};

}  // namespace
}  // namespace neuron::kernels
