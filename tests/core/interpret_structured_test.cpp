// Contractions, indexed operations, windows, sort and random bits, against values worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "neuron/base/error.h"
#include "tests/core/interpret_testing.h"

namespace neuron::interpret {
namespace {

using namespace testing;
using ir::Attributes;
using ir::Builder;
using ir::Graph;
using ir::Opcode;
using ir::Type;
using ir::Value;

TEST(InterpretContraction, DotGeneralWithBatchAndContraction) {
  // [2, 2, 3] x [2, 3, 1], batch 0, contracting 2 with 1.
  Buffer x = floats(DType::Float32, {2, 2, 3}, {1, 2, 3, 4, 5, 6, 1, 0, 0, 0, 1, 0});
  Buffer y = floats(DType::Float32, {2, 3, 1}, {1, 10, 100, 7, 8, 9});
  Buffer out =
      run({x, y}, [](Builder& b, auto& p) { return b.dot_general(p[0], p[1], {{0}, {0}, {2}, {1}}, DType::Float32); });
  EXPECT_EQ(out.sizes, (Dims{2, 2, 1}));
  EXPECT_EQ(values<float>(out), (std::vector<float>{321, 654, 7, 8}));
  // Integers of 8 bits into 32.
  Buffer i = integers(DType::Int8, {1, 2}, {100, 100}), j = integers(DType::Int8, {2, 1}, {100, -128});
  EXPECT_EQ(
      values<int32_t>(
          run({i, j}, [](Builder& b, auto& p) { return b.dot_general(p[0], p[1], {{}, {}, {1}, {0}}, DType::Int32); })),
      std::vector<int32_t>{-2800});
}

ir::ConvolutionDimensions convolution_1d() { return {{1}, {0, 0}, {1}, {1}, {}, 1, 1}; }

TEST(InterpretContraction, ConvolutionWithEveryParameter) {
  Buffer x = floats(DType::Float32, {1, 1, 4}, {1, 2, 3, 4}), w = floats(DType::Float32, {1, 1, 2}, {10, 1});
  auto conv = [](Buffer input, Buffer kernel, ir::ConvolutionDimensions dimensions) {
    return values<float>(run({std::move(input), std::move(kernel)}, [&](Builder& b, auto& p) {
      return b.convolution(p[0], p[1], dimensions, DType::Float32);
    }));
  };
  EXPECT_EQ(conv(x, w, convolution_1d()), (std::vector<float>{12, 23, 34}));
  auto padded = convolution_1d();
  padded.padding = {1, 1};
  padded.window_strides = {2};
  EXPECT_EQ(conv(x, w, padded), (std::vector<float>{1, 23, 40}));
  auto dilated = convolution_1d();
  dilated.rhs_dilation = {2};
  EXPECT_EQ(conv(x, w, dilated), (std::vector<float>{13, 24}));
  auto spread = convolution_1d();
  spread.lhs_dilation = {2};
  EXPECT_EQ(conv(x, w, spread), (std::vector<float>{10, 2, 20, 3, 30, 4}));
  auto reversed = convolution_1d();
  reversed.window_reversal = {1};
  EXPECT_EQ(conv(x, w, reversed), (std::vector<float>{21, 32, 43}));
  auto grouped = convolution_1d();
  grouped.feature_group_count = 2;
  Buffer two = floats(DType::Float32, {1, 2, 2}, {1, 2, 3, 4}), each = floats(DType::Float32, {2, 1, 1}, {10, 100});
  EXPECT_EQ(conv(two, each, grouped), (std::vector<float>{10, 20, 300, 400}));
  auto batched = convolution_1d();
  batched.batch_group_count = 2;
  Buffer batch = floats(DType::Float32, {2, 1, 2}, {1, 2, 3, 4});
  EXPECT_EQ(conv(batch, each, batched), (std::vector<float>{10, 20, 300, 400}));
}

TEST(InterpretIndexed, GatherClampsAndCollapses) {
  Buffer x = floats(DType::Float32, {3, 2}, {0, 1, 10, 11, 20, 21});
  Buffer rows = integers(DType::Int64, {4}, {2, 0, 99, -5});
  Buffer out = run({x, rows}, [](Builder& b, auto& p) {
    Attributes attributes;
    attributes.set("offset_dims", std::vector<int64_t>{1});
    attributes.set("collapsed_slice_dims", std::vector<int64_t>{0});
    attributes.set("operand_batching_dims", std::vector<int64_t>{});
    attributes.set("start_indices_batching_dims", std::vector<int64_t>{});
    attributes.set("start_index_map", std::vector<int64_t>{0});
    attributes.set("index_vector_dim", int64_t{1});
    attributes.set("slice_sizes", std::vector<int64_t>{1, 2});
    attributes.set("indices_are_sorted", false);
    Type type{DType::Float32, {4, 2}};
    return b.operation(Opcode::Gather, p, {&type, 1}, attributes);
  });
  EXPECT_EQ(values<float>(out), (std::vector<float>{20, 21, 0, 1, 20, 21, 0, 1}));
}

TEST(InterpretIndexed, GatherWithBatchingDimensions) {
  // take_along_axis: out[b, i] = x[b, index[b, i]].
  Buffer x = floats(DType::Float32, {2, 3}, {0, 1, 2, 10, 11, 12});
  Buffer index = integers(DType::Int32, {2, 2, 1}, {2, 0, 1, 1});
  Buffer out = run({x, index}, [](Builder& b, auto& p) {
    Attributes attributes;
    attributes.set("offset_dims", std::vector<int64_t>{});
    attributes.set("collapsed_slice_dims", std::vector<int64_t>{1});
    attributes.set("operand_batching_dims", std::vector<int64_t>{0});
    attributes.set("start_indices_batching_dims", std::vector<int64_t>{0});
    attributes.set("start_index_map", std::vector<int64_t>{1});
    attributes.set("index_vector_dim", int64_t{2});
    attributes.set("slice_sizes", std::vector<int64_t>{1, 1});
    attributes.set("indices_are_sorted", false);
    Type type{DType::Float32, {2, 2}};
    return b.operation(Opcode::Gather, p, {&type, 1}, attributes);
  });
  EXPECT_EQ(values<float>(out), (std::vector<float>{2, 0, 11, 11}));
}

TEST(InterpretIndexed, ScatterAddsInOrderAndSkipsWhatIsOutside) {
  Buffer x = floats(DType::Float32, {3}, {1, 2, 3});
  Buffer index = integers(DType::Int64, {4, 1}, {2, 0, 2, 7}), updates = floats(DType::Float32, {4}, {10, 20, 30, 40});
  Buffer out = run({x, index, updates}, [](Builder& b, auto& p) {
    Attributes attributes;
    attributes.set("update_window_dims", std::vector<int64_t>{});
    attributes.set("inserted_window_dims", std::vector<int64_t>{0});
    attributes.set("input_batching_dims", std::vector<int64_t>{});
    attributes.set("scatter_indices_batching_dims", std::vector<int64_t>{});
    attributes.set("scatter_dims_to_operand_dims", std::vector<int64_t>{0});
    attributes.set("index_vector_dim", int64_t{1});
    attributes.set("indices_are_sorted", false);
    attributes.set("unique_indices", false);
    Type type{DType::Float32, {3}};
    return b.operation(Opcode::Scatter, p, {&type, 1}, attributes, {ir::make_reducer(Opcode::Add, DType::Float32)});
  });
  EXPECT_EQ(values<float>(out), (std::vector<float>{21, 2, 43}));
}

TEST(InterpretIndexed, DynamicSlicesAreClampedInside) {
  Buffer x = floats(DType::Float32, {5}, {0, 1, 2, 3, 4});
  EXPECT_EQ(values<float>(run({x, integers(DType::Int32, {}, {9})},
                              [](Builder& b, auto& p) { return b.dynamic_slice(p[0], {&p[1], 1}, {2}); })),
            (std::vector<float>{3, 4}));
  Buffer update = floats(DType::Float32, {2}, {8, 9});
  EXPECT_EQ(values<float>(run({x, update, integers(DType::Int32, {}, {-3})},
                              [](Builder& b, auto& p) { return b.dynamic_update_slice(p[0], p[1], {&p[2], 1}); })),
            (std::vector<float>{8, 9, 2, 3, 4}));
}

TEST(InterpretIndexed, RefusesSlicesThatASymbolMakesTooLarge) {
  Graph graph;
  Value x = graph.add_parameter({DType::Float32, {graph.add_symbol()}});
  Value sliced = Builder(graph).slice(x, {0}, {4}, {1});
  graph.set_results({&sliced, 1});
  Buffer three = floats(DType::Float32, {3}, {1, 2, 3});
  int64_t size = 3;
  try {
    evaluate(graph, {&three, 1}, {&size, 1});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "slice: limit 4 of dimension 0 is beyond its size 3");
  }
}

TEST(InterpretWindow, MaximumPoolingWithPaddingStrideAndDilation) {
  Buffer x = floats(DType::Float32, {1, 5}, {1, 5, 2, 4, 3});
  auto pool = [&](std::vector<int64_t> strides, std::vector<int64_t> dilations, std::vector<int64_t> padding) {
    return values<float>(run({x}, [&](Builder& b, auto& p) {
      return b.reduce_window(Opcode::Maximum, p[0], b.constant({DType::Float32, {}}, -inf), {1, 2}, strides, dilations,
                             padding);
    }));
  };
  EXPECT_EQ(pool({1, 1}, {1, 1}, {0, 0, 0, 0}), (std::vector<float>{5, 5, 4, 4}));
  EXPECT_EQ(pool({1, 2}, {1, 1}, {0, 0, 1, 0}), (std::vector<float>{1, 5, 4}));
  EXPECT_EQ(pool({1, 1}, {1, 3}, {0, 0, 0, 0}), (std::vector<float>{4, 5}));
}

TEST(InterpretSort, IsStableAndSurvivesNan) {
  auto comparator = std::make_shared<Graph>("comparator");
  Value a = comparator->add_parameter({DType::Float32, {}}), b = comparator->add_parameter({DType::Float32, {}});
  comparator->add_parameter({DType::Int32, {}});
  comparator->add_parameter({DType::Int32, {}});
  Value less = Builder(*comparator).compare(ir::ComparisonDirection::LT, a, b);
  comparator->set_results({&less, 1});
  auto sorted_indices = [&](std::vector<double> keys) {
    Buffer x = floats(DType::Float32, {static_cast<int64_t>(keys.size())}, keys);
    return values<int32_t>(run({x}, [&](Builder& builder, auto& p) {
      Type types[] = {builder.type(p[0]), builder.type(p[0]).with(DType::Int32)};
      Value operands[] = {p[0], builder.iota(types[1], 0)};
      Attributes attributes;
      attributes.set("dimension", int64_t{0});
      attributes.set("is_stable", true);
      builder.operation(Opcode::Sort, operands, types, attributes, {comparator});
      return builder.graph().operations().back().results[1];
    }));
  };
  EXPECT_EQ(sorted_indices({3, 1, 2, 1, 3}), (std::vector<int32_t>{1, 3, 2, 0, 4}));
  std::vector<int32_t> order = sorted_indices({nan, 1, nan, 0});
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(InterpretRandom, IsPhiloxWithOneBlockPerElement) {
  Buffer state(DType::UInt64, {2});
  auto bits = [&](DType dtype) {
    Graph graph;
    Value x = graph.add_parameter({DType::UInt64, {2}});
    Type types[] = {{DType::UInt64, {2}}, {dtype, {3}}};
    Attributes attributes;
    attributes.set("rng_algorithm", std::string("PHILOX"));
    graph.add_operation(Opcode::RngBitGenerator, {&x, 1}, types, attributes);
    graph.set_results(graph.operations()[0].results);
    return evaluate(graph, {&state, 1}, {});
  };
  // Random123's known answer for counter 0, key 0.
  EXPECT_EQ(values<uint32_t>(bits(DType::UInt32)[1])[0], 0x6627e8d5u);
  EXPECT_EQ(values<uint64_t>(bits(DType::UInt64)[1])[0], 0xe169c58d6627e8d5u);
  EXPECT_EQ(values<uint64_t>(bits(DType::UInt32)[0]), (std::vector<uint64_t>{0, 3}));
  uint64_t second = values<uint64_t>(bits(DType::UInt64)[1])[1];
  state.data<uint64_t>()[1] = 1;
  EXPECT_EQ(values<uint64_t>(bits(DType::UInt64)[1])[0], second);
}

TEST(InterpretComposite, RunsItsDecomposition) {
  Graph graph;
  Value x = graph.add_parameter({DType::Float32, {2}});
  auto body = std::make_shared<Graph>("twice");
  Value y = body->add_parameter({DType::Float32, {2}});
  Value twice = Builder(*body).add(y, y);
  body->set_results({&twice, 1});
  std::vector<Value> results = Builder(graph).composite("neuron.twice", {&x, 1}, {}, body);
  graph.set_results(results);
  Buffer argument = floats(DType::Float32, {2}, {1, -3});
  EXPECT_EQ(values<float>(evaluate(graph, {&argument, 1}, {})[0]), (std::vector<float>{2, -6}));
}

}  // namespace
}  // namespace neuron::interpret
