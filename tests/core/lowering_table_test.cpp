#include <gtest/gtest.h>

#include "neuron/lowering/lowering.h"

namespace neuron::lowering {
namespace {

TEST(OperatorTable, FindsOperatorsByNameWithDenseIds) {
  uint32_t expected = 0;
  for (const Operator& op : all_operators()) {
    EXPECT_EQ(op.id, expected++);
    EXPECT_EQ(find_operator(op.name), &op);
  }
  EXPECT_EQ(find_operator("no_such_operator"), nullptr);
  EXPECT_EQ(find_operator("_softmax")->kind, IterationKind::Normalize);
  EXPECT_EQ(find_operator("sum")->kind, IterationKind::Reduce);
  EXPECT_EQ(find_operator("add")->kind, IterationKind::Elementwise);
}

TEST(Context, BroadcastsNumbersAndRoundsOnceToTheNarrowDtype) {
  ir::Graph graph;
  Dims space{graph.add_symbol()};
  ir::Value inputs[] = {graph.add_parameter({DType::BFloat16, space}), graph.add_parameter({DType::Float64, {}})};
  ir::Builder builder(graph);
  DType outputs[] = {DType::BFloat16};
  Context context(builder, space, -1, inputs, {}, DType::BFloat16, outputs);
  find_operator("mul")->lower(context);
  std::string opcodes;
  for (const ir::Operation& operation : graph.operations())
    opcodes += std::string(op_info(operation.opcode).mnemonic) + " ";
  EXPECT_EQ(opcodes, "convert convert broadcast_in_dim multiply convert ");
  EXPECT_EQ(to_string(graph.type(context.results()[0])), "tensor<?xbf16>");
}

}  // namespace
}  // namespace neuron::lowering
