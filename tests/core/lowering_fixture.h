// Evaluates one operator of the lowering table with the reference interpreter.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/base/scalar.h"
#include "neuron/interpret/interpreter.h"
#include "neuron/lowering/lowering.h"
#include "tests/core/codegen_agreement.h"

namespace neuron::lowering::testing {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// An operand: a tensor of the space (or a number) with its values.
struct Operand {
  interpret::Buffer buffer;

  Operand(double number) : buffer(DType::Float64, {}) { *buffer.data<double>() = number; }  // NOLINT
  Operand(int64_t number) : buffer(DType::Int64, {}) { *buffer.data<int64_t>() = number; }  // NOLINT
  Operand(int number) : Operand(static_cast<int64_t>(number)) {}                            // NOLINT
  Operand(DType dtype, std::vector<double> values, Dims sizes = {}) {
    if (sizes.empty()) sizes.push_back(static_cast<int64_t>(values.size()));
    buffer = interpret::Buffer(dtype, sizes);
    for (size_t i = 0; i < values.size(); ++i) {
      std::byte* at = buffer.bytes.data() + i * dtype_size(dtype);
      bool integer = is_integer(dtype) || dtype == DType::Bool;
      integer ? store_from_int(dtype, static_cast<int64_t>(values[i]), at) : store_from_double(dtype, values[i], at);
    }
  }
};

// Row-major positions along the last dimension, as an Index operand would give.
inline Operand positions(int64_t rows, int64_t columns) {
  std::vector<double> values;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < columns; ++i) values.push_back(static_cast<double>(i));
  return {DType::Int64, values, {rows, columns}};
}

// `reduced`: the reduced dimension, -1 for elementwise operators.
inline std::vector<interpret::Buffer> run(std::string_view name, DType common, std::vector<DType> outputs,
                                          std::vector<Operand> operands, std::vector<int64_t> attributes = {},
                                          int reduced = -1) {
  const Operator* op = find_operator(name);
  if (op == nullptr) throw std::runtime_error("no operator " + std::string(name));
  Dims sizes;
  for (const Operand& operand : operands)
    if (!operand.buffer.sizes.empty()) sizes = operand.buffer.sizes;
  ir::Graph graph;
  Dims space;
  for (size_t d = 0; d < sizes.size(); ++d) space.push_back(graph.add_symbol());
  std::vector<ir::Value> inputs;
  std::vector<interpret::Buffer> arguments;
  for (const Operand& operand : operands) {
    inputs.push_back(graph.add_parameter({operand.buffer.dtype, operand.buffer.sizes.empty() ? Dims{} : space}));
    arguments.push_back(operand.buffer);
  }
  ir::Builder builder(graph);
  Context context(builder, space, reduced, inputs, attributes, common, outputs);
  op->lower(context);
  graph.set_results(context.results());
  auto results = interpret::evaluate(graph, arguments, {sizes.data(), sizes.size()});
  // What the interpreter says of a rule, the generated kernel has to repeat.
  SCOPED_TRACE(std::string(name));
  codegen::expect_kernel_agrees(graph, sizes, reduced, std::move(arguments), results, 16);
  return results;
}

inline std::vector<double> values(const interpret::Buffer& buffer) {
  std::vector<double> result;
  for (int64_t i = 0; i < buffer.numel(); ++i)
    result.push_back(load_as_double(buffer.dtype, buffer.bytes.data() + i * dtype_size(buffer.dtype)));
  return result;
}

inline std::vector<double> evaluate(std::string_view name, DType dtype, std::vector<Operand> operands,
                                    std::vector<int64_t> attributes = {}) {
  return values(run(name, dtype, {dtype}, std::move(operands), std::move(attributes))[0]);
}

// Equal up to `relative`; NaN equals NaN, and zeros must agree in sign when `relative` is 0.
inline void expect_values(const std::vector<double>& actual, const std::vector<double>& expected, double relative = 0) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(actual[i])) << "element " << i << " is " << actual[i];
    } else if (std::isinf(expected[i]) || relative == 0) {
      EXPECT_EQ(actual[i], expected[i]) << "element " << i;
      if (expected[i] == 0) {
        EXPECT_EQ(std::signbit(actual[i]), std::signbit(expected[i])) << "sign of zero, element " << i;
      }
    } else {
      EXPECT_NEAR(actual[i], expected[i], relative * std::fabs(expected[i])) << "element " << i;
    }
  }
}

}  // namespace neuron::lowering::testing
