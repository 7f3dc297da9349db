#include "neuron/eager/interpreted_region.h"

#include <cstring>

#include "neuron/interpret/interpreter.h"

namespace neuron::eager {

namespace {

// Calls body(position in row-major order, element offset) for each point of `sizes`.
template <typename F>
void for_each_element(std::span<const int64_t> sizes, const int64_t* strides, F&& body) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  Dims index(sizes.size(), 0);
  int64_t offset = 0;
  for (int64_t position = 0; position < count; ++position) {
    body(position, offset);
    for (size_t d = sizes.size(); d-- > 0;) {
      offset += strides[d];
      if (++index[d] < sizes[d]) break;
      offset -= strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

}  // namespace

void interpret_region(const codegen::RegionSpec& spec, const codegen::RegionArguments& arguments) {
  std::span<const int64_t> sizes(arguments.sizes, spec.rank);
  std::vector<interpret::Buffer> inputs;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const codegen::OperandSignature& input = spec.inputs[i];
    size_t bytes = dtype_size(input.dtype);
    if (input.kind == codegen::OperandKind::Scalar) {
      interpret::Buffer& buffer = inputs.emplace_back(input.dtype, Dims{});
      std::memcpy(buffer.bytes.data(), &arguments.scalars[i], bytes);
      continue;
    }
    interpret::Buffer& buffer = inputs.emplace_back(input.dtype, Dims(sizes));
    const auto* source = static_cast<const std::byte*>(arguments.pointers[i]);
    for_each_element(sizes, arguments.strides + i * spec.rank, [&](int64_t position, int64_t offset) {
      if (input.kind == codegen::OperandKind::Index) {
        const int64_t value = static_cast<int64_t>(arguments.scalars[i]) + offset;
        std::memcpy(buffer.bytes.data() + position * bytes, &value, bytes);
      } else {
        std::memcpy(buffer.bytes.data() + position * bytes, source + offset * static_cast<int64_t>(bytes), bytes);
      }
    });
  }
  std::vector<interpret::Buffer> results = interpret::evaluate(*spec.graph, inputs, sizes);
  int reduced = spec.reduction == codegen::Reduction::Inner ? spec.rank - 1 : spec.rank - 2;
  for (size_t o = 0; o < spec.outputs.size(); ++o) {
    const int64_t* strides = arguments.strides + (spec.inputs.size() + o) * spec.rank;
    auto* target = static_cast<std::byte*>(arguments.pointers[spec.inputs.size() + o]);
    size_t bytes = dtype_size(spec.outputs[o].dtype);
    Dims kept_sizes(sizes), kept_strides(std::span(strides, spec.rank));
    if (results[o].sizes.size() < sizes.size()) {
      kept_sizes.erase(reduced);
      kept_strides.erase(reduced);
    }
    for_each_element(kept_sizes, kept_strides.data(), [&](int64_t position, int64_t offset) {
      std::memcpy(target + offset * static_cast<int64_t>(bytes), results[o].bytes.data() + position * bytes, bytes);
    });
  }
}

}  // namespace neuron::eager
