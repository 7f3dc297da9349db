// Operations whose addressing depends on data: gather, scatter, dynamic_slice, dynamic_update_slice. Names follow
// StableHLO's specification, from which the formulas are.
#include <algorithm>
#include <cstring>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

namespace {

using Ints = std::vector<int64_t>;

bool contains(const Ints& list, size_t value) {
  return std::find(list.begin(), list.end(), static_cast<int64_t>(value)) != list.end();
}

int64_t index_at(const Buffer& indices, int64_t offset) {
  return load_as_int(indices.dtype, indices.bytes.data() + offset * dtype_size(indices.dtype));
}

// Start indices are clamped so that the slice lies inside. That it fits at all is known only here for symbolic sizes.
int64_t clamp_start(const Invocation& call, int64_t start, int64_t size, int64_t extent) {
  check_internal(extent <= size, "{}: a slice of {} does not fit into a dimension of {}",
                 ir::op_info(call.operation.opcode).mnemonic, extent, size);
  return std::clamp<int64_t>(start, 0, size - extent);
}

int64_t start_offset(const Invocation& call, size_t first_index, const Dims& sizes, const Dims& extent) {
  Dims strides = row_major_strides(sizes);
  int64_t offset = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    offset += clamp_start(call, index_at(call.operand(first_index + d), 0), sizes[d], extent[d]) * strides[d];
  }
  return offset;
}

// What gather and scatter have in common: from the position in the batch of index vectors and in the window to the
// position in the operand.
struct Addressing {
  const Buffer& indices;
  Ints index_map;         // operand dimension of each component of an index vector
  Ints operand_batching;  // and their partners among the dimensions of `indices`
  Ints indices_batching;
  Ints dropped;  // operand dimensions without a window dimension, apart from the batching ones
  size_t vector_dimension;
  Ints window_dimensions;  // in the result of gather, the updates of scatter
  size_t operand_rank;

  // Operand position as (start, offset in window) for a position of the gathered tensor. The start is not clamped.
  void locate(const Dims& position, Dims& start, Dims& window) const {
    Dims batch, within;
    for (size_t d = 0; d < position.size(); ++d)
      (contains(window_dimensions, d) ? within : batch).push_back(position[d]);
    start = Dims(operand_rank, 0);
    window = Dims(operand_rank, 0);
    Dims strides = row_major_strides(indices.sizes);
    int64_t base = 0;
    for (size_t d = 0, b = 0; d < indices.sizes.size(); ++d) {
      if (d != vector_dimension) base += batch[b++] * strides[d];
    }
    int64_t step = vector_dimension < indices.sizes.size() ? strides[vector_dimension] : 0;
    for (size_t c = 0; c < index_map.size(); ++c)
      start[index_map[c]] = index_at(indices, base + static_cast<int64_t>(c) * step);
    for (size_t d = 0; d < operand_batching.size(); ++d) {
      auto from = static_cast<size_t>(indices_batching[d]);
      start[operand_batching[d]] = batch[from < vector_dimension ? from : from - 1];
    }
    for (size_t d = 0, w = 0; d < operand_rank; ++d) {
      if (!contains(dropped, d) && !contains(operand_batching, d)) window[d] = within[w++];
    }
  }
};

Ints optional_ints(const ir::Attributes& attributes, std::string_view name) {
  return attributes.has(name) ? attributes.get_ints(name) : Ints{};
}

}  // namespace

void evaluate_dynamic_slice(const Invocation& call) {
  const Buffer& x = call.operand(0);
  Buffer& out = call.result();
  size_t size = dtype_size(out.dtype);
  Dims strides = row_major_strides(x.sizes);
  int64_t origin = start_offset(call, 1, x.sizes, out.sizes);
  Position position(out.sizes);
  for (int64_t i = 0, n = out.numel(); i < n; ++i, position.next()) {
    int64_t at = origin + offset_of(position.index(), strides);
    std::memcpy(out.bytes.data() + i * size, x.bytes.data() + at * size, size);
  }
}

void evaluate_dynamic_update_slice(const Invocation& call) {
  const Buffer& update = call.operand(1);
  Buffer& out = call.result();
  out.bytes = call.operand(0).bytes;
  size_t size = dtype_size(out.dtype);
  Dims strides = row_major_strides(out.sizes);
  int64_t origin = start_offset(call, 2, out.sizes, update.sizes);
  Position position(update.sizes);
  for (int64_t i = 0, n = update.numel(); i < n; ++i, position.next()) {
    int64_t at = origin + offset_of(position.index(), strides);
    std::memcpy(out.bytes.data() + at * size, update.bytes.data() + i * size, size);
  }
}

void evaluate_gather(const Invocation& call) {
  const ir::Attributes& attributes = call.operation.attributes;
  const Buffer& x = call.operand(0);
  Buffer& out = call.result();
  const Ints& slice_sizes = attributes.get_ints("slice_sizes");
  Addressing addressing{call.operand(1),
                        attributes.get_ints("start_index_map"),
                        optional_ints(attributes, "operand_batching_dims"),
                        optional_ints(attributes, "start_indices_batching_dims"),
                        attributes.get_ints("collapsed_slice_dims"),
                        static_cast<size_t>(attributes.get_int("index_vector_dim")),
                        attributes.get_ints("offset_dims"),
                        x.sizes.size()};
  size_t size = dtype_size(out.dtype);
  Dims strides = row_major_strides(x.sizes), start, window;
  Position position(out.sizes);
  for (int64_t i = 0, n = out.numel(); i < n; ++i, position.next()) {
    addressing.locate(position.index(), start, window);
    int64_t at = 0;
    for (size_t d = 0; d < start.size(); ++d)
      at += (clamp_start(call, start[d], x.sizes[d], slice_sizes[d]) + window[d]) * strides[d];
    std::memcpy(out.bytes.data() + i * size, x.bytes.data() + at * size, size);
  }
}

// Updates are applied in row-major order; those outside the operand are left out.
void evaluate_scatter(const Invocation& call) {
  const ir::Attributes& attributes = call.operation.attributes;
  size_t count = call.results.size();
  const Buffer& updates = call.operand(count + 1);
  const Dims& sizes = call.operand(0).sizes;
  Addressing addressing{call.operand(count),
                        attributes.get_ints("scatter_dims_to_operand_dims"),
                        optional_ints(attributes, "input_batching_dims"),
                        optional_ints(attributes, "scatter_indices_batching_dims"),
                        attributes.get_ints("inserted_window_dims"),
                        static_cast<size_t>(attributes.get_int("index_vector_dim")),
                        attributes.get_ints("update_window_dims"),
                        sizes.size()};
  for (size_t r = 0; r < count; ++r) call.result(r).bytes = call.operand(r).bytes;
  Dims strides = row_major_strides(sizes), start, window;
  Position position(updates.sizes);
  for (int64_t i = 0, n = updates.numel(); i < n; ++i, position.next()) {
    addressing.locate(position.index(), start, window);
    int64_t at = 0;
    bool inside = true;
    for (size_t d = 0; d < start.size(); ++d) {
      int64_t index = start[d] + window[d];
      inside &= index >= 0 && index < sizes[d];
      at += index * strides[d];
    }
    if (!inside) continue;
    std::vector<Buffer> current, elements;
    for (size_t r = 0; r < count; ++r) {
      current.push_back(element_of(call.result(r), at));
      elements.push_back(element_of(call.operand(count + 1 + r), i));
    }
    accumulate(*call.operation.regions[0], current, std::move(elements), call.symbol_sizes);
    for (size_t r = 0; r < count; ++r) set_element(call.result(r), at, current[r]);
  }
}

}  // namespace neuron::interpret
