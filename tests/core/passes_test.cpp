#include "neuron/passes/pass.h"

#include <gtest/gtest.h>

#include "neuron/base/error.h"
#include "neuron/ir/verifier.h"
#include "neuron/passes/pipeline.h"
#include "tests/core/interpret_testing.h"

namespace neuron::passes {
namespace {

using ir::Builder;
using ir::Graph;
using ir::Opcode;
using ir::Type;
using ir::Value;

constexpr DType f32 = DType::Float32, i32 = DType::Int32;

// Builds a graph of one result over parameters of the types, runs simplify and drops what is dead.
template <typename Build>
Graph simplified(std::vector<Type> types, Build build) {
  Graph graph;
  Builder builder(graph);
  std::vector<Value> parameters;
  for (const Type& type : types) parameters.push_back(graph.add_parameter(type));
  Value result = build(builder, parameters);
  graph.set_results({&result, 1});
  const Pass* list[] = {&fold_constants, &simplify, &eliminate_dead_code};
  return run_passes(graph, list, {.observe = {}, .verify = true});
}

// The result is the first parameter itself.
bool is_identity(const Graph& graph) { return graph.results()[0] == graph.parameters()[0]; }

template <typename Build>
bool vanishes(Type type, Build build) {
  return is_identity(simplified({type}, [&](Builder& b, auto& p) { return build(b, p[0]); }));
}

TEST(Passes, AreListedWithNameAndPurpose) {
  EXPECT_EQ(all_passes().size(), 5u);
  for (const Pass* pass : all_passes()) {
    EXPECT_EQ(find_pass(pass->name), pass);
    EXPECT_GT(pass->purpose.size(), 80u) << pass->name;
  }
  EXPECT_EQ(find_pass("make_it_fast"), nullptr);
}

TEST(Passes, EliminateDeadCodeKeepsParametersAliasesAndDonations) {
  Graph graph;
  graph.add_symbol("batch");
  Value x = graph.add_parameter({f32, {-1}}), y = graph.add_parameter({f32, {-1}});
  Builder b(graph);
  b.add(x, y);
  Value kept = b.negate(y);
  graph.set_results({&kept, 1});
  graph.add_alias({0, 1});
  graph.donate(0);
  Graph result = eliminate_dead_code.run(graph);
  ASSERT_EQ(result.operations().size(), 1u);
  EXPECT_EQ(result.operations()[0].opcode, Opcode::Negate);
  EXPECT_EQ(result.parameters().size(), 2u);
  EXPECT_EQ(result.aliases(), (std::vector<ir::Alias>{{0, 1}}));
  EXPECT_EQ(result.donated(), std::vector<int>{0});
  EXPECT_EQ(result.symbol_name(0), "batch");
}

TEST(Passes, SimplifyRemovesConversionsThatLoseNothing) {
  auto through = [](DType from, DType middle) {
    return vanishes({from, {2}}, [&](Builder& b, Value x) { return b.convert(b.convert(x, middle), from); });
  };
  EXPECT_TRUE(through(DType::BFloat16, f32));
  EXPECT_TRUE(through(DType::Float8E5M2, DType::Float16));
  EXPECT_TRUE(through(DType::Int8, DType::BFloat16));
  EXPECT_TRUE(through(i32, DType::Float64));
  EXPECT_TRUE(through(DType::UInt16, i32));
  EXPECT_TRUE(through(f32, DType::Complex64));
  EXPECT_TRUE(through(DType::Bool, DType::Float8E4M3FN));
  EXPECT_FALSE(through(f32, DType::BFloat16));
  EXPECT_FALSE(through(DType::Int64, DType::Float64));
  EXPECT_FALSE(through(DType::UInt8, DType::Int8));
  EXPECT_FALSE(through(DType::BFloat16, DType::Float16));
  EXPECT_FALSE(through(DType::Float16, DType::BFloat16));
  EXPECT_FALSE(through(DType::Int16, DType::Float16));
  EXPECT_FALSE(through(i32, f32));
}

TEST(Passes, SimplifyKnowsWhichZerosAndOnesAreNeutral) {
  auto with_constant = [](Opcode opcode, DType dtype, double number) {
    return vanishes({dtype, {2}}, [&](Builder& b, Value x) { return b.binary(opcode, x, b.constant_like(x, number)); });
  };
  EXPECT_TRUE(with_constant(Opcode::Multiply, DType::BFloat16, 1));
  EXPECT_TRUE(with_constant(Opcode::Divide, f32, 1));
  EXPECT_TRUE(with_constant(Opcode::Subtract, f32, 0.0));
  EXPECT_FALSE(with_constant(Opcode::Subtract, f32, -0.0));
  EXPECT_FALSE(with_constant(Opcode::Add, f32, 0.0));
  EXPECT_TRUE(with_constant(Opcode::Add, f32, -0.0));
  EXPECT_TRUE(with_constant(Opcode::Add, i32, 0));
  EXPECT_FALSE(with_constant(Opcode::Multiply, f32, 0));
  EXPECT_FALSE(with_constant(Opcode::Multiply, DType::Complex64, 1));
}

TEST(Passes, SimplifyUndoesPairsAndDecidesSelects) {
  Type t{f32, {2, 3}};
  EXPECT_TRUE(vanishes(t, [](Builder& b, Value x) { return b.negate(b.negate(x)); }));
  EXPECT_TRUE(vanishes(t, [](Builder& b, Value x) { return b.reshape(b.reshape(x, {6}), {2, 3}); }));
  EXPECT_TRUE(vanishes(t, [](Builder& b, Value x) { return b.transpose(b.transpose(x, {1, 0}), {1, 0}); }));
  EXPECT_TRUE(vanishes(t, [](Builder& b, Value x) { return b.slice(x, {0, 0}, {2, 3}, {1, 1}); }));
  EXPECT_FALSE(vanishes(t, [](Builder& b, Value x) { return b.reverse(x, {0}); }));
  EXPECT_TRUE(vanishes(t, [](Builder& b, Value x) { return b.broadcast_in_dim(x, {2, 3}, {0, 1}); }));
  EXPECT_TRUE(vanishes(t, [](Builder& b, Value x) {
    Value one = b.constant_like(x, 1), yes = b.compare(ir::ComparisonDirection::EQ, one, one);
    return b.select(yes, x, b.negate(x));
  }));
  Graph swapped = simplified({t, {DType::Bool, {2, 3}}},
                             [](Builder& b, auto& p) { return b.select(b.logical_not(p[1]), p[0], b.negate(p[0])); });
  ASSERT_EQ(swapped.operations().size(), 2u);
  EXPECT_EQ(swapped.operations()[1].operands[0], swapped.parameters()[1]);
}

TEST(Passes, FoldConstantsKeepsSplatsOfSymbolicSize) {
  Graph graph;
  ir::Dim d = graph.add_symbol();
  Builder b(graph);
  Value two = b.constant({f32, {d, 4}}, 2), three = b.broadcast_in_dim(b.constant({f32, {}}, 3), {d, 4}, {});
  Value sum = b.convert(b.multiply(two, three), i32);
  Value exponential = b.unary(Opcode::Exponential, two);
  Value results[] = {sum, exponential};
  graph.set_results(results);
  Graph folded = eliminate_dead_code.run(fold_constants.run(graph));
  ASSERT_EQ(folded.operations().size(), 3u);  // 6, 2, exp(2): a transcendental is the code generator's to compute
  Value result = folded.results()[0];
  const auto& literal = folded.operations()[folded.defining_operation(result)].attributes.get<ir::Literal>("value");
  EXPECT_TRUE(literal.is_splat());
  EXPECT_EQ(ir::literal_int(literal), 6);
  EXPECT_EQ(to_string(folded.type(result)), "tensor<?x4xi32>");
}

TEST(Passes, DeduplicateSharesEqualOperations) {
  Graph graph;
  Value x = graph.add_parameter({f32, {4}});
  Builder b(graph);
  auto sum = [&] { return b.reduce(Opcode::Add, b.unary(Opcode::Tanh, x), b.constant({f32, {}}, 0), {0}); };
  Value results[] = {sum(), sum(), b.reduce(Opcode::Maximum, x, b.constant({f32, {}}, -0.0), {0})};
  graph.set_results(results);
  Graph shared = eliminate_dead_code.run(deduplicate.run(graph));
  EXPECT_EQ(shared.operations().size(), 5u);
  EXPECT_EQ(shared.results()[0], shared.results()[1]);
  EXPECT_NE(shared.results()[0], shared.results()[2]);
}

TEST(Passes, InlineCompositesOpensNestedDecompositions) {
  auto inner = std::make_shared<Graph>("inner");
  Value y = inner->add_parameter({f32, {2}});
  Value erf = Builder(*inner).function("erf", y);
  inner->set_results({&erf, 1});
  auto outer = std::make_shared<Graph>("outer");
  Value z = outer->add_parameter({f32, {2}});
  outer->set_results(Builder(*outer).composite("neuron.inner", {&z, 1}, {}, inner));
  Graph graph;
  Value x = graph.add_parameter({f32, {2}});
  graph.set_results(Builder(graph).composite("neuron.outer", {&x, 1}, {}, outer));
  Graph flat = inline_composites.run(graph);
  ir::verify(flat);
  ASSERT_EQ(flat.operations().size(), 1u);
  EXPECT_EQ(flat.operations()[0].attributes.get<std::string>("name"), "neuron.erf");
}

TEST(Pipeline, ShowsEveryStepAndNamesTheFaultyPass) {
  Graph graph;
  Value x = graph.add_parameter({f32, {2}});
  graph.set_results({&x, 1});
  std::vector<std::string> seen;
  run_pipeline(graph, {.observe = [&](std::string_view pass, const Graph&) { seen.emplace_back(pass); }});
  EXPECT_EQ(seen, (std::vector<std::string>{"input", "inline_composites", "fold_constants", "simplify", "deduplicate",
                                            "eliminate_dead_code"}));
  Pass faulty{"break_it", "Adds an alias that does not exist.", [](const Graph& g) {
                Graph broken = g;
                broken.add_alias({7, 0});
                return broken;
              }};
  const Pass* list[] = {&faulty};
  try {
    run_passes(graph, list, {.observe = {}, .verify = true});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "after pass 'break_it': graph 'main': alias names result 7 of 1");
  }
}

}  // namespace
}  // namespace neuron::passes
