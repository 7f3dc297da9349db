// Kernels "sort" (always stable), "topk" and "isin". NaN is greater than every number; equal elements keep their order.
#include <algorithm>
#include <vector>

#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/lines.h"

namespace neuron::kernels {
namespace {

template <typename C>
bool is_nan(C value) {
  return value != value;
}

template <typename C>
struct Entry {
  C key;
  int64_t index;
};

// Strict order of keys alone; ties are broken by position where the algorithm is not stable.
template <typename C>
bool before(C x, C y, bool descending) {
  if (descending) return (is_nan(x) && !is_nan(y)) || x > y;
  return (!is_nan(x) && is_nan(y)) || x < y;
}

// outputs: values, indices (int64); inputs: self; attributes: dimension, descending.
void run_sort(const Call& call) {
  TensorView values = as_lines(call.outputs[0]), indices = as_lines(call.outputs[1]), self = as_lines(call.inputs[0]);
  int64_t dimension = call.attributes[0], length = self.sizes[dimension];
  bool descending = call.attributes[1] != 0;
  dispatch_real(self.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    const auto* from = self.as<typename E::Storage>();
    auto* to = values.as<typename E::Storage>();
    auto* order = indices.as<int64_t>();
    for_each_line<3>({&values, &indices, &self}, dimension, call.threads, [&](const Line<3>& line) {
      static thread_local std::vector<Entry<C>> entries;
      entries.resize(length);
      for (int64_t i = 0; i < length; ++i) entries[i] = {E::load(from[line.offsets[2] + i * line.strides[2]]), i};
      if (descending) {
        std::stable_sort(entries.begin(), entries.end(),
                         [](const auto& x, const auto& y) { return before(x.key, y.key, true); });
      } else {
        std::stable_sort(entries.begin(), entries.end(),
                         [](const auto& x, const auto& y) { return before(x.key, y.key, false); });
      }
      for (int64_t i = 0; i < length; ++i) {
        to[line.offsets[0] + i * line.strides[0]] = E::store(entries[i].key);
        order[line.offsets[1] + i * line.strides[1]] = entries[i].index;
      }
    });
  });
}

// outputs: values, indices (int64); inputs: self; attributes: k, dimension, largest, sorted (always done). Of equal
// elements the first ones are taken.
void run_topk(const Call& call) {
  TensorView values = as_lines(call.outputs[0]), indices = as_lines(call.outputs[1]), self = as_lines(call.inputs[0]);
  int64_t k = call.attributes[0], dimension = call.attributes[1], length = self.sizes[dimension];
  bool largest = call.attributes[2] != 0;
  dispatch_real(self.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    const auto* from = self.as<typename E::Storage>();
    auto* to = values.as<typename E::Storage>();
    auto* order = indices.as<int64_t>();
    for_each_line<3>({&values, &indices, &self}, dimension, call.threads, [&](const Line<3>& line) {
      static thread_local std::vector<Entry<C>> entries;
      auto less = [largest](const Entry<C>& x, const Entry<C>& y) {
        if (before(x.key, y.key, largest)) return true;
        return !before(y.key, x.key, largest) && x.index < y.index;
      };
      auto load = [&](int64_t i) { return E::load(from[line.offsets[2] + i * line.strides[2]]); };
      if (k * 64 <= length) {
        // Few of many: the best k so far in a heap. A later equal element does not enter.
        entries.resize(k);
        for (int64_t i = 0; i < k; ++i) entries[i] = {load(i), i};
        std::make_heap(entries.begin(), entries.end(), less);
        for (int64_t i = k; k > 0 && i < length; ++i) {
          C value = load(i);
          if (!before(value, entries.front().key, largest)) continue;
          std::pop_heap(entries.begin(), entries.end(), less);
          entries.back() = {value, i};
          std::push_heap(entries.begin(), entries.end(), less);
        }
        std::sort_heap(entries.begin(), entries.end(), less);
      } else {
        entries.resize(length);
        for (int64_t i = 0; i < length; ++i) entries[i] = {load(i), i};
        if (k < length) std::nth_element(entries.begin(), entries.begin() + k, entries.end(), less);
        std::sort(entries.begin(), entries.begin() + k, less);
      }
      for (int64_t i = 0; i < k; ++i) {
        to[line.offsets[0] + i * line.strides[0]] = E::store(entries[i].key);
        order[line.offsets[1] + i * line.strides[1]] = entries[i].index;
      }
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
    using C = typename E::Compute;
    const auto* values = elements.as<typename E::Storage>();
    const auto* candidates = tests.as<typename E::Storage>();
    std::vector<Entry<C>> known;  // entries rather than values: a vector of bool is no array
    StridedLoop<1>(tests.sizes, {&tests.strides}).for_each([&](const auto& offsets) {
      C value = E::load(candidates[offsets[0]]);
      if (!is_nan(value)) known.push_back({value, 0});
    });
    auto less = [](const Entry<C>& x, const Entry<C>& y) { return x.key < y.key; };
    std::sort(known.begin(), known.end(), less);
    StridedLoop<2>(elements.sizes, {&elements.strides, &result.strides}).for_each([&](const auto& offsets) {
      C value = E::load(values[offsets[0]]);
      bool found = !is_nan(value) && std::binary_search(known.begin(), known.end(), Entry<C>{value, 0}, less);
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
