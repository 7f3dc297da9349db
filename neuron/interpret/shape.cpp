// Operations that move elements and compute none.
#include <cstring>

#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

namespace {

using ir::Opcode;

// result[position] = operand[offset(position)], for every position of the result.
template <typename Offset>
void pull(const Buffer& operand, Buffer& result, Offset offset) {
  size_t size = dtype_size(result.dtype);
  Position position(result.sizes);
  for (int64_t i = 0, n = result.numel(); i < n; ++i, position.next())
    std::memcpy(result.bytes.data() + i * size, operand.bytes.data() + offset(position) * size, size);
}

void broadcast_in_dim(const Invocation& call) {
  const auto& dimensions = call.operation.attributes.get_ints("broadcast_dimensions");
  const Buffer& x = call.operand(0);
  Dims strides = row_major_strides(x.sizes);
  for (size_t d = 0; d < dimensions.size(); ++d) {
    int64_t target = call.result().sizes[dimensions[d]];
    check_internal(x.sizes[d] == 1 || x.sizes[d] == target,
                   "broadcast_in_dim: dimension {} of the operand has size {}, dimension {} of the result {}", d,
                   x.sizes[d], dimensions[d], target);
    if (x.sizes[d] == 1) strides[d] = 0;
  }
  pull(x, call.result(), [&](const Position& position) {
    int64_t offset = 0;
    for (size_t d = 0; d < dimensions.size(); ++d) offset += position[dimensions[d]] * strides[d];
    return offset;
  });
}

void transpose(const Invocation& call) {
  const auto& permutation = call.operation.attributes.get_ints("permutation");
  Dims strides = row_major_strides(call.operand(0).sizes);
  pull(call.operand(0), call.result(), [&](const Position& position) {
    int64_t offset = 0;
    for (size_t d = 0; d < permutation.size(); ++d) offset += position[d] * strides[permutation[d]];
    return offset;
  });
}

void slice(const Invocation& call) {
  const auto& start = call.operation.attributes.get_ints("start_indices");
  const auto& limit = call.operation.attributes.get_ints("limit_indices");
  const auto& step = call.operation.attributes.get_ints("strides");
  const Dims& sizes = call.operand(0).sizes;
  for (size_t d = 0; d < limit.size(); ++d)
    check_internal(limit[d] <= sizes[d], "slice: limit {} of dimension {} is beyond its size {}", limit[d], d,
                   sizes[d]);
  Dims strides = row_major_strides(sizes);
  pull(call.operand(0), call.result(), [&](const Position& position) {
    int64_t offset = 0;
    for (size_t d = 0; d < start.size(); ++d) offset += (start[d] + position[d] * step[d]) * strides[d];
    return offset;
  });
}

void reverse(const Invocation& call) {
  const Buffer& x = call.operand(0);
  Dims strides = row_major_strides(x.sizes);
  int64_t origin = 0;
  for (int64_t d : call.operation.attributes.get_ints("dimensions")) {
    origin += (x.sizes[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  pull(x, call.result(), [&](const Position& position) { return origin + offset_of(position.index(), strides); });
}

void concatenate(const Invocation& call) {
  auto dimension = static_cast<size_t>(call.operation.attributes.get_int("dimension"));
  Buffer& out = call.result();
  Dims strides = row_major_strides(out.sizes);
  size_t size = dtype_size(out.dtype);
  int64_t start = 0;
  for (const Buffer* input : call.operands) {
    Position position(input->sizes);
    for (int64_t i = 0, n = input->numel(); i < n; ++i, position.next()) {
      int64_t at = offset_of(position.index(), strides) + start * strides[dimension];
      std::memcpy(out.bytes.data() + at * size, input->bytes.data() + i * size, size);
    }
    start += input->sizes[dimension];
  }
}

// Negative padding removes elements.
void pad(const Invocation& call) {
  const auto& low = call.operation.attributes.get_ints("edge_padding_low");
  const auto& interior = call.operation.attributes.get_ints("interior_padding");
  const Buffer& x = call.operand(0);
  Buffer& out = call.result();
  size_t size = dtype_size(out.dtype);
  for (int64_t i = 0, n = out.numel(); i < n; ++i)
    std::memcpy(out.bytes.data() + i * size, call.operand(1).bytes.data(), size);
  Dims strides = row_major_strides(out.sizes);
  Position position(x.sizes);
  for (int64_t i = 0, n = x.numel(); i < n; ++i, position.next()) {
    int64_t at = 0;
    bool inside = true;
    for (size_t d = 0; d < low.size(); ++d) {
      int64_t target = low[d] + position[d] * (interior[d] + 1);
      inside &= target >= 0 && target < out.sizes[d];
      at += target * strides[d];
    }
    if (inside) std::memcpy(out.bytes.data() + at * size, x.bytes.data() + i * size, size);
  }
}

}  // namespace

void evaluate_shape(const Invocation& call) {
  switch (call.operation.opcode) {
    case Opcode::BroadcastInDim:
      return broadcast_in_dim(call);
    case Opcode::Reshape:
      check_internal(call.operand(0).numel() == call.result().numel(), "reshape: {} elements into {}",
                     call.operand(0).numel(), call.result().numel());
      call.result().bytes = call.operand(0).bytes;
      return;
    case Opcode::Transpose:
      return transpose(call);
    case Opcode::Slice:
      return slice(call);
    case Opcode::Concatenate:
      return concatenate(call);
    case Opcode::Pad:
      return pad(call);
    case Opcode::Reverse:
      return reverse(call);
    default:
      fail(ErrorKind::Internal, "{} is no shape operation", ir::op_info(call.operation.opcode).mnemonic);
  }
}

}  // namespace neuron::interpret
