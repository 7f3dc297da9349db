// Kernels "unique_groups" and "unique_results": rows that are equal, and where each of them is. A NaN equals nothing.
#include <algorithm>
#include <bit>
#include <numeric>
#include <type_traits>
#include <vector>

#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/order_keys.h"

namespace neuron::kernels {
namespace {

template <typename E>
bool equal_rows(const typename E::Storage* x, const typename E::Storage* y, int64_t width) {
  for (int64_t j = 0; j < width; ++j) {
    if (!(E::load(x[j]) == E::load(y[j]))) return false;
  }
  return true;
}

// The positions of elements in their order, equal ones as they come, and where one begins that is not equal to the one
// before it. Elements as keys of Entry, less the least of them.
template <typename E, typename Entry>
void sort_elements(const typename E::Storage* from, int64_t count, uint64_t least, int key_bytes, int64_t* order,
                   bool* starts) {
  std::vector<Entry> entries(static_cast<size_t>(count)), spare;
  for (int64_t i = 0; i < count; ++i) entries[i] = Entry::of(static_cast<uint64_t>(order_key<E>(from[i])) - least, i);
  sort_entries(entries, spare, key_bytes);
  for (int64_t i = 0; i < count; ++i) {
    order[i] = entries[i].position();
    bool same = i > 0 && entries[i].key() == entries[i - 1].key();
    if constexpr (!std::is_integral_v<typename E::Compute>) {
      const auto value = E::load(from[order[i]]);
      same = same && value == value;
    }
    starts[i] = !same;
  }
}

template <typename E>
void sort_elements(const typename E::Storage* from, int64_t count, int64_t* order, bool* starts) {
  uint64_t least = ~uint64_t{0}, most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto key = static_cast<uint64_t>(order_key<E>(from[i]));
    least = std::min(least, key);
    most = std::max(most, key);
  }
  const int bytes = std::max(1, (static_cast<int>(std::bit_width(most - least)) + 7) / 8);
  if (bytes <= 4 && count <= int64_t{1} << 32)
    return sort_elements<E, PackedEntry>(from, count, least, bytes, order, starts);
  sort_elements<E, WideEntry>(from, count, least, bytes, order, starts);
}

// The same for rows, in the order of their elements.
template <typename E>
void sort_rows(const typename E::Storage* rows, int64_t count, int64_t width, int64_t* order, bool* starts) {
  std::iota(order, order + count, 0);
  std::sort(order, order + count, [&](int64_t x, int64_t y) {
    for (int64_t j = 0; j < width; ++j) {
      const auto left = order_key<E>(rows[x * width + j]), right = order_key<E>(rows[y * width + j]);
      if (left != right) return left < right;
    }
    return x < y;
  });
  for (int64_t i = 0; i < count; ++i)
    starts[i] = i == 0 || !equal_rows<E>(rows + order[i - 1] * width, rows + order[i] * width, width);
}

// outputs: where a group begins [rows] (bool), the number of groups (int64 scalar), and for sorted rows their order
// [rows] (int64), else neighbours make up a group; inputs: [rows, width] without gaps, at least one row.
void run_groups(const Call& call) {
  const TensorView& rows = call.inputs[0];
  const int64_t count = rows.sizes[0], width = rows.sizes[1];
  bool* starts = call.outputs[0].as<bool>();
  int64_t* order = call.outputs.size() > 2 ? call.outputs[2].as<int64_t>() : nullptr;
  dispatch_real(rows.dtype, [&](auto element) {
    using E = decltype(element);
    const auto* from = rows.as<typename E::Storage>();
    if (order == nullptr) {
      starts[0] = true;
      if (width == 1) {
        for (int64_t i = 1; i < count; ++i) starts[i] = !(E::load(from[i - 1]) == E::load(from[i]));
      } else {
        for (int64_t i = 1; i < count; ++i) starts[i] = !equal_rows<E>(from + (i - 1) * width, from + i * width, width);
      }
    } else if (width == 1) {
      sort_elements<E>(from, count, order, starts);
    } else {
      sort_rows<E>(from, count, width, order, starts);
    }
  });
  *call.outputs[1].as<int64_t>() = std::count(starts, starts + count, true);
}

// outputs: the first row of each group [groups], and where asked for the group of each row [rows] and the size of each
// group [groups], all int64 without gaps; inputs: where a group begins, and the order of sorted rows; attributes:
// whether the groups of rows and their sizes are asked for.
void run_results(const Call& call) {
  const bool* starts = call.inputs[0].as<bool>();
  const int64_t* order = call.inputs.size() > 1 ? call.inputs[1].as<int64_t>() : nullptr;
  const int64_t rows = call.inputs[0].sizes[0], groups = call.outputs[0].sizes[0];
  int64_t *first = call.outputs[0].as<int64_t>(), *inverse = nullptr, *counts = nullptr;
  if (call.attributes[0] != 0) inverse = call.outputs[1].as<int64_t>();
  if (call.attributes[1] != 0) counts = call.outputs.back().as<int64_t>();
  // Places in the order first; a place that begins no group is written over.
  int64_t next = 0;
  for (int64_t i = 0; next < groups; ++i) {
    first[next] = i;
    next += starts[i];
  }
  if (counts != nullptr) {
    for (int64_t g = 0; g < groups; ++g) counts[g] = (g + 1 < groups ? first[g + 1] : rows) - first[g];
  }
  if (order != nullptr) {
    for (int64_t g = 0; g < groups; ++g) first[g] = order[first[g]];
  }
  if (inverse == nullptr) return;
  int64_t group = -1;
  for (int64_t i = 0; i < rows; ++i) {
    group += starts[i];
    inverse[order == nullptr ? i : order[i]] = group;
  }
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "unique_groups", .run = run_groups}),
    KernelRegistration({.name = "unique_results", .run = run_results}),
};

}  // namespace
}  // namespace neuron::kernels
