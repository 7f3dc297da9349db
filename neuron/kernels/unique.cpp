// Kernels "unique_groups" and "unique_results": rows that are equal, and where each of them is. A NaN equals nothing.
#include <algorithm>
#include <numeric>
#include <vector>

#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/order_keys.h"

namespace neuron::kernels {
namespace {

// The positions of rows in the order of their elements, equal ones as they come.
template <typename E>
void sort_rows(const typename E::Storage* rows, int64_t count, int64_t width, int64_t* order) {
  if (width == 1) {
    constexpr int kKeyBytes = sizeof(order_key<E>(typename E::Storage{}));
    return with_entry<E>(count, [&](auto kind) {
      using Entry = decltype(kind);
      std::vector<Entry> entries(static_cast<size_t>(count)), spare;
      for (int64_t i = 0; i < count; ++i) entries[i] = Entry::of(static_cast<uint64_t>(order_key<E>(rows[i])), i);
      sort_entries(entries, spare, kKeyBytes);
      for (int64_t i = 0; i < count; ++i) order[i] = entries[i].position();
    });
  }
  std::iota(order, order + count, 0);
  std::sort(order, order + count, [&](int64_t x, int64_t y) {
    for (int64_t j = 0; j < width; ++j) {
      const auto left = order_key<E>(rows[x * width + j]), right = order_key<E>(rows[y * width + j]);
      if (left != right) return left < right;
    }
    return x < y;
  });
}

template <typename E>
bool equal_rows(const typename E::Storage* x, const typename E::Storage* y, int64_t width) {
  for (int64_t j = 0; j < width; ++j) {
    if (!(E::load(x[j]) == E::load(y[j]))) return false;
  }
  return true;
}

// outputs: order [rows], the group of each row in that order [rows], the number of groups (scalar), all int64; inputs:
// [rows, width] without gaps, at least one row; attributes: sorted (else neighbours make up a group).
void run_groups(const Call& call) {
  const TensorView& rows = call.inputs[0];
  const int64_t count = rows.sizes[0], width = rows.sizes[1];
  auto* order = call.outputs[0].as<int64_t>();
  auto* groups = call.outputs[1].as<int64_t>();
  dispatch_real(rows.dtype, [&](auto element) {
    using E = decltype(element);
    const auto* from = rows.as<typename E::Storage>();
    if (call.attributes[0] != 0) {
      sort_rows<E>(from, count, width, order);
    } else {
      std::iota(order, order + count, 0);
    }
    groups[0] = 0;
    for (int64_t i = 1; i < count; ++i) {
      const bool same = equal_rows<E>(from + order[i - 1] * width, from + order[i] * width, width);
      groups[i] = groups[i - 1] + (same ? 0 : 1);
    }
  });
  *call.outputs[2].as<int64_t>() = groups[count - 1] + 1;
}

// outputs: the first row of each group [groups], the group of each row [rows], the size of each group [groups], all
// int64 without gaps; inputs: order and groups.
void run_results(const Call& call) {
  auto *first = call.outputs[0].as<int64_t>(), *inverse = call.outputs[1].as<int64_t>(),
       *counts = call.outputs[2].as<int64_t>();
  const auto *order = call.inputs[0].as<int64_t>(), *groups = call.inputs[1].as<int64_t>();
  const int64_t rows = call.inputs[0].sizes[0];
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t group = groups[i];
    if (i == 0 || group != groups[i - 1]) {
      first[group] = order[i];
      counts[group] = 0;
    }
    ++counts[group];
    inverse[order[i]] = group;
  }
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "unique_groups", .run = run_groups}),
    KernelRegistration({.name = "unique_results", .run = run_results}),
};

}  // namespace
}  // namespace neuron::kernels
