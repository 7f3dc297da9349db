#include <gtest/gtest.h>

#include "neuron/base/error.h"
#include "neuron/ir/builder.h"

namespace neuron::ir {
namespace {

TEST(Builder, InfersTypesOfAnElementwiseChain) {
  Graph graph;
  Dim d = graph.add_symbol();
  Value x = graph.add_parameter({DType::BFloat16, {d, 4}});
  Builder builder(graph);
  Value y = builder.convert(x, DType::Float32);
  Value z = builder.compare(ComparisonDirection::LT, y, builder.constant_like(y, 2.0));
  EXPECT_EQ(to_string(graph.type(z)), "tensor<?x4xi1>");
  EXPECT_EQ(graph.operations().size(), 3u);
}

TEST(Builder, RefusesUnequalTypesNamingThem) {
  Graph graph;
  Builder builder(graph);
  Value x = graph.add_parameter({DType::Float32, {4}});
  Value y = graph.add_parameter({DType::Float64, {4}});
  try {
    builder.add(x, y);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "add: operands must have one type; operand types are tensor<4xf32>, tensor<4xf64>");
  }
}

}  // namespace
}  // namespace neuron::ir
