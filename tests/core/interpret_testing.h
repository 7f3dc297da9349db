// Short ways to write buffers and one-operation programs in tests of the interpreter and the passes.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/interpret/interpreter.h"
#include "neuron/ir/builder.h"

namespace neuron::interpret::testing {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double inf = std::numeric_limits<double>::infinity();

inline Buffer floats(DType dtype, Dims sizes, std::vector<double> values) {
  Buffer buffer(dtype, std::move(sizes));
  for (size_t i = 0; i < values.size(); ++i)
    store_from_double(dtype, values[i], buffer.bytes.data() + i * dtype_size(dtype));
  return buffer;
}

inline Buffer integers(DType dtype, Dims sizes, std::vector<int64_t> values) {
  Buffer buffer(dtype, std::move(sizes));
  for (size_t i = 0; i < values.size(); ++i)
    store_from_int(dtype, values[i], buffer.bytes.data() + i * dtype_size(dtype));
  return buffer;
}

template <typename T>
std::vector<T> values(const Buffer& buffer) {
  EXPECT_EQ(buffer.bytes.size(), static_cast<size_t>(buffer.numel()) * sizeof(T));
  return std::vector<T>(buffer.data<T>(), buffer.data<T>() + buffer.numel());
}

// Builds a graph over one parameter per argument and evaluates it.
template <typename Build>
Buffer run(std::vector<Buffer> arguments, Build build) {
  ir::Graph graph;
  ir::Builder builder(graph);
  std::vector<ir::Value> parameters;
  for (const Buffer& argument : arguments) parameters.push_back(graph.add_parameter({argument.dtype, argument.sizes}));
  ir::Value result = build(builder, parameters);
  graph.set_results({&result, 1});
  return evaluate(graph, arguments, {})[0];
}

}  // namespace neuron::interpret::testing
