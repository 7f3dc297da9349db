#include "neuron/ir/verifier.h"

#include <gtest/gtest.h>

#include "neuron/base/error.h"
#include "neuron/ir/builder.h"

namespace neuron::ir {
namespace {

constexpr DType f32 = DType::Float32;

std::string error_of(const Graph& graph) {
  try {
    verify(graph);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Internal);
    return error.what();
  }
  return "";
}

TEST(Verifier, HasARuleForEveryOperation) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    auto opcode = static_cast<Opcode>(i);
    EXPECT_TRUE(has_rule(opcode)) << op_info(opcode).name;
  }
}

TEST(Verifier, AcceptsASymbolicSoftmax) {
  Graph graph;
  Dim rows = graph.add_symbol(), columns = graph.add_symbol();
  Value x = graph.add_parameter({f32, {rows, columns}});
  Builder b(graph);
  Value maximum = b.reduce(Opcode::Maximum, x, b.constant({f32, {}}, -1e30), {1});
  Value shifted = b.subtract(x, b.broadcast_in_dim(maximum, {rows, columns}, {0}));
  Value exponential = b.unary(Opcode::Exponential, shifted);
  Value sum = b.reduce(Opcode::Add, exponential, b.constant({f32, {}}, 0), {1});
  Value result = b.divide(exponential, b.broadcast_in_dim(sum, {rows, columns}, {0}));
  graph.set_results({&result, 1});
  graph.add_alias({0, 0});
  EXPECT_EQ(error_of(graph), "");
}

// Appends one operation of the given operand types and results, and returns what the verifier says of it.
std::string refusal(Opcode opcode, std::vector<Type> operands, std::vector<Type> results, Attributes attributes = {},
                    std::vector<std::shared_ptr<const Graph>> regions = {}) {
  Graph graph;
  std::vector<Value> values;
  for (const Type& type : operands) values.push_back(graph.add_parameter(type));
  graph.add_operation(opcode, values, results, std::move(attributes), std::move(regions));
  return error_of(graph);
}

Attributes ints(std::initializer_list<std::pair<const char*, std::vector<int64_t>>> entries) {
  Attributes attributes;
  for (const auto& [name, value] : entries) attributes.set(name, value);
  return attributes;
}

TEST(Verifier, NamesOperationIndexAndTypes) {
  EXPECT_EQ(refusal(Opcode::Add, {{f32, {4}}, {DType::Float64, {4}}}, {{f32, {4}}}),
            "operation 0 'add' of 'main': operands must have one type; it is (tensor<4xf32>, tensor<4xf64>) -> "
            "(tensor<4xf32>)");
  EXPECT_EQ(refusal(Opcode::Add, {{f32, {4}}}, {{f32, {4}}}),
            "operation 0 'add' of 'main': it takes 2 operands and has 1; it is (tensor<4xf32>) -> (tensor<4xf32>)");
  EXPECT_EQ(refusal(Opcode::Not, {{f32, {4}}}, {{f32, {4}}}),
            "operation 0 'not' of 'main': it is not defined for f32; it is (tensor<4xf32>) -> (tensor<4xf32>)");
  EXPECT_EQ(refusal(Opcode::IsFinite, {{f32, {4}}}, {{f32, {4}}}),
            "operation 0 'is_finite' of 'main': the result should be tensor<4xi1>; it is (tensor<4xf32>) -> "
            "(tensor<4xf32>)");
  EXPECT_EQ(refusal(Opcode::Transpose, {{f32, {2, 3}}}, {{f32, {3, 2}}}, ints({{"permutation", {1, 1}}})),
            "operation 0 'transpose' of 'main': permutation names dimension 1 twice; it is (tensor<2x3xf32>) -> "
            "(tensor<3x2xf32>)");
  EXPECT_EQ(refusal(Opcode::Transpose, {{f32, {2, 3}}}, {{f32, {3, 2}}}),
            "operation 0 'transpose' of 'main': attribute 'permutation' is missing; it is (tensor<2x3xf32>) -> "
            "(tensor<3x2xf32>)");
  EXPECT_EQ(refusal(Opcode::Reshape, {{f32, {2, 3}}}, {{f32, {5}}}),
            "operation 0 'reshape' of 'main': 6 elements cannot become 5; it is (tensor<2x3xf32>) -> (tensor<5xf32>)");
}

struct Refused {
  const char* reason;
  Opcode opcode;
  std::vector<Type> operands, results;
  Attributes attributes;
};

TEST(Verifier, RefusesEachKindOfMistake) {
  Attributes wrong_kind, literal, direction;
  wrong_kind.set("dimension", true);
  literal.set("value", Literal{Type{f32, Dims(1, 2)}, std::vector<std::byte>(12)});
  direction.set("comparison_direction", ComparisonDirection::LT);
  Type t2{f32, {2}}, t23{f32, {2, 3}}, scalar{f32, {}}, c2{DType::Complex64, {2}}, index{DType::Int64, {}};
  Attributes slice = ints({{"start_indices", {0}}, {"limit_indices", {3}}, {"strides", {1}}});
  Attributes dot = ints({{"lhs_batching_dimensions", {}},
                         {"rhs_batching_dimensions", {}},
                         {"lhs_contracting_dimensions", {1}},
                         {"rhs_contracting_dimensions", {0}}});
  Refused cases[] = {
      {"the literal has 12 bytes, wanted 4 or 8", Opcode::Constant, {}, {t2}, literal},
      {"attribute 'dimension' is missing or of another kind", Opcode::Concatenate, {t2, t2}, {{f32, {4}}}, wrong_kind},
      {"complex numbers compare only EQ and NE", Opcode::Compare, {c2, c2}, {{DType::Bool, {2}}}, direction},
      {"the predicate must be i1", Opcode::Select, {t2, t2, t2}, {t2}, {}},
      {"a bound must have", Opcode::Clamp, {t23, t2, t2}, {t2}, {}},
      {"neither 1 nor the size", Opcode::BroadcastInDim, {t2}, {t23}, ints({{"broadcast_dimensions", {1}}})},
      {"[0, 3) of dimension 0 is not inside it", Opcode::Slice, {t2}, {{f32, {3}}}, slice},
      {"it has 0 start indices, wanted 1", Opcode::DynamicSlice, {t2}, {t2}, ints({{"slice_sizes", {2}}})},
      {"dimension 0 of the update does not fit", Opcode::DynamicUpdateSlice, {t2, {f32, {3}}, index}, {t2}, {}},
      {"it has 0 regions, wanted 1", Opcode::Reduce, {t2, scalar}, {scalar}, ints({{"dimensions", {0}}})},
      {"contracting dimensions 1 and 0 have different sizes", Opcode::DotGeneral, {t23, t2}, {t2}, dot},
      {"does not start with 'neuron.'", Opcode::Composite, {t2}, {t2}, {}},
      {"element sizes must be equal", Opcode::BitcastConvert, {t2}, {{DType::Int8, {2}}}, {}},
      {"it has no attribute 'extra'", Opcode::Negate, {t2}, {t2}, ints({{"extra", {}}})},
  };
  cases[11].attributes.set("name", std::string("other.name"));
  for (const Refused& one : cases) {
    std::string error = refusal(one.opcode, one.operands, one.results, one.attributes);
    EXPECT_NE(error.find(one.reason), std::string::npos) << op_info(one.opcode).name << ": " << error;
  }
}

TEST(Verifier, ChecksFunctionsAndDecompositions) {
  Attributes erf, other;
  erf.set("name", std::string("neuron.erf"));
  other.set("name", std::string("neuron.softmax"));
  Type t{f32, {2}}, integer{DType::Int32, {2}};
  EXPECT_EQ(refusal(Opcode::Composite, {t}, {t}, erf), "");
  EXPECT_NE(refusal(Opcode::Composite, {t, t}, {t}, erf).find("neuron.erf takes 1 operands"), std::string::npos);
  EXPECT_NE(refusal(Opcode::Composite, {integer}, {integer}, erf).find("not defined for i32"), std::string::npos);
  EXPECT_NE(refusal(Opcode::Composite, {t}, {t}, other).find("has no decomposition"), std::string::npos);
  auto body = std::make_shared<Graph>("body");
  Value x = body->add_parameter({f32, {3}});
  body->set_results({&x, 1});
  EXPECT_NE(refusal(Opcode::Composite, {t}, {t}, other, {body}).find("parameter 0 of the decomposition"),
            std::string::npos);
}

TEST(Verifier, LooksIntoRegions) {
  auto body = std::make_shared<Graph>("reducer");
  Value a = body->add_parameter({f32, {}}), b = body->add_parameter({f32, {}});
  Value operands[] = {a, b};
  Type wrong{DType::Float64, {}};
  Value sum = body->add_operation(Opcode::Add, operands, {&wrong, 1});
  Type right{f32, {}};
  Value back = body->add_operation(Opcode::Convert, {&sum, 1}, {&right, 1});
  body->set_results({&back, 1});
  EXPECT_EQ(refusal(Opcode::Reduce, {{f32, {2}}, {f32, {}}}, {{f32, {}}}, ints({{"dimensions", {0}}}), {body}),
            "operation 0 'add' of 'reducer': the result should be tensor<f32>; it is (tensor<f32>, tensor<f32>) -> "
            "(tensor<f64>)");
}

TEST(Verifier, ChecksMemory) {
  auto graph = [] {
    Graph g;
    Value x = g.add_parameter({f32, {2}}), y = g.add_parameter({f32, {3}});
    Value results[] = {x, y};
    g.set_results(results);
    return g;
  };
  Graph unequal = graph();
  unequal.add_alias({0, 1});
  EXPECT_EQ(error_of(unequal),
            "graph 'main': result 0 of type tensor<2xf32> cannot alias parameter 1 of type tensor<3xf32>");
  Graph twice = graph();
  twice.add_alias({0, 0});
  twice.add_alias({0, 0});
  EXPECT_EQ(error_of(twice), "graph 'main': parameter 0 is aliased twice");
  Graph both = graph();
  both.add_alias({0, 0});
  both.donate(0);
  EXPECT_EQ(error_of(both), "graph 'main': parameter 0 is donated and aliased");
  Graph outside = graph();
  outside.donate(2);
  EXPECT_EQ(error_of(outside), "graph 'main': donates parameter 2 of 2");
}

TEST(Verifier, RefusesUseBeforeDefinitionAndUnknownSymbols) {
  Graph graph;
  Value x = graph.add_parameter({f32, {2}});
  Builder b(graph);
  Value y = b.negate(x);
  b.negate(y);
  graph.mutable_operations()[0].operands[0] = Value{2};
  EXPECT_EQ(error_of(graph), "operation 0 'negate' of 'main': operand 0 is value 2, which is not defined before it");
  Graph symbols;
  symbols.add_parameter({f32, {symbolic_dim(3)}});
  EXPECT_EQ(error_of(symbols), "graph 'main': parameter 0 names symbol 3, the graph has 0");
}

}  // namespace
}  // namespace neuron::ir
