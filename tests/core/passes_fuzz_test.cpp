// Random elementwise programs give the same bits before and after the passes, each alone and all together.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <fmt/format.h>

#include "neuron/ir/verifier.h"
#include "neuron/passes/pipeline.h"
#include "tests/core/interpret_testing.h"

namespace neuron::passes {
namespace {

using interpret::Buffer;
using ir::Builder;
using ir::Graph;
using ir::Opcode;
using ir::Value;

constexpr int64_t rows = 2, columns = 9;

class ProgramMaker {
 public:
  explicit ProgramMaker(uint32_t seed) : random_(seed), builder_(graph_) {
    ir::Dim d0 = graph_.add_symbol(), d1 = graph_.add_symbol();
    dims_ = {d0, d1};
  }

  Graph make(int operations) {
    for (int i = 0; i < 4; ++i) values_.push_back(graph_.add_parameter({any_dtype(), dims_}));
    for (int i = 0; i < operations; ++i) values_.push_back(next());
    std::vector<Value> results;
    for (int i = 0; i < 8; ++i) results.push_back(values_[values_.size() - 1 - pick(20)]);
    graph_.set_results(results);
    return std::move(graph_);
  }

  std::vector<Buffer> arguments(const Graph& graph) {
    std::vector<Buffer> result;
    for (Value parameter : graph.parameters()) {
      Buffer& buffer = result.emplace_back(graph.type(parameter).dtype, Dims{rows, columns});
      for (int64_t i = 0; i < buffer.numel(); ++i)
        store_from_double(buffer.dtype, number(), buffer.bytes.data() + i * dtype_size(buffer.dtype));
    }
    return result;
  }

 private:
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }

  DType any_dtype() {
    static constexpr DType list[] = {DType::Bool,     DType::UInt8,      DType::UInt32,   DType::Int8,
                                     DType::Int32,    DType::Int64,      DType::UInt64,   DType::Float8E4M3FN,
                                     DType::BFloat16, DType::Float16,    DType::Float32,  DType::Float64,
                                     DType::Float32,  DType::Float8E5M2, DType::Complex64};
    return list[pick(std::size(list))];
  }

  // Numbers at which rules go wrong.
  double number() {
    static constexpr double list[] = {0.0, -0.0, 1,   -1,  2,    0.5,   -2.5,  3,   127,
                                      128, 255,  256, 257, -128, 65504, 1e-40, 1e30};
    size_t i = pick(std::size(list) + 4);
    if (i == std::size(list)) return interpret::testing::inf;
    if (i == std::size(list) + 1) return -interpret::testing::inf;
    if (i == std::size(list) + 2) return interpret::testing::nan;
    if (i == std::size(list) + 3) return std::uniform_real_distribution<double>(-300, 300)(random_);
    return list[i];
  }

  Value any_value() { return values_[pick(values_.size())]; }
  Value value_of(DType dtype) {
    if (pick(4) == 0) return builder_.constant({dtype, dims_}, number());
    // The neutral elements, which rules look for.
    static constexpr double neutral[] = {0.0, -0.0, 1};
    if (pick(3) == 0) return builder_.constant({dtype, dims_}, neutral[pick(3)]);
    Value value = any_value();
    return builder_.convert(value, dtype);
  }

  Value next() {
    static constexpr Opcode binary[] = {Opcode::Add,     Opcode::Multiply, Opcode::Subtract, Opcode::Divide,
                                        Opcode::Maximum, Opcode::Minimum,  Opcode::And,      Opcode::Or};
    static constexpr Opcode unary[] = {Opcode::Negate, Opcode::Abs, Opcode::Not, Opcode::Tanh, Opcode::Sign};
    for (;;) {
      Value x = any_value();
      DType dtype = builder_.type(x).dtype;
      bool integral = is_integer(dtype) || dtype == DType::Bool, real = !is_complex(dtype);
      switch (pick(9)) {
        case 0:
          return builder_.convert(builder_.convert(x, pick(2) == 0 ? DType::Float64 : any_dtype()), any_dtype());
        case 1: {
          Opcode opcode = unary[pick(std::size(unary))];
          bool allowed = opcode == Opcode::Not                             ? integral
                         : opcode == Opcode::Abs || opcode == Opcode::Sign ? is_signed_integer(dtype) || is_float(dtype)
                         : opcode == Opcode::Tanh                          ? is_float(dtype)
                                                                           : dtype != DType::Bool;
          if (allowed) return builder_.unary(opcode, x);
          break;
        }
        case 2:
        case 6:
        case 7: {
          Opcode opcode = binary[pick(std::size(binary))];
          bool logical = opcode == Opcode::And || opcode == Opcode::Or;
          bool inverse = opcode == Opcode::Subtract || opcode == Opcode::Divide;
          if ((logical && !integral) || (inverse && dtype == DType::Bool)) break;
          Value y = pick(6) == 0 ? x : value_of(dtype);
          return pick(2) == 0 ? builder_.binary(opcode, x, y) : builder_.binary(opcode, y, x);
        }
        case 3:
          return builder_.select(value_of(DType::Bool), x, pick(6) == 0 ? x : value_of(dtype));
        case 4:
          if (real) return builder_.compare(ir::ComparisonDirection::LT, x, value_of(dtype));
          break;
        default: {
          Value turned = builder_.transpose(x, {1, 0});
          return builder_.transpose(pick(2) == 0 ? turned : builder_.negate(builder_.convert(turned, DType::Float32)),
                                    {1, 0});
        }
      }
    }
  }

  std::mt19937 random_;
  Graph graph_;
  Builder builder_;
  Dims dims_;
  std::vector<Value> values_;
};

bool equal_elements(DType dtype, const std::byte* a, const std::byte* b) {
  size_t size = dtype_size(dtype);
  if (is_complex(dtype)) {
    DType part = dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
    return equal_elements(part, a, b) && equal_elements(part, a + size / 2, b + size / 2);
  }
  if (is_float(dtype) && std::isnan(load_as_double(dtype, a))) return std::isnan(load_as_double(dtype, b));
  return std::equal(a, a + size, b);
}

void expect_equal(const Buffer& a, const Buffer& b, const std::string& what) {
  ASSERT_EQ(a.dtype, b.dtype);
  ASSERT_EQ(a.sizes, b.sizes);
  size_t size = dtype_size(a.dtype);
  for (int64_t i = 0; i < a.numel(); ++i)
    ASSERT_TRUE(equal_elements(a.dtype, a.bytes.data() + i * size, b.bytes.data() + i * size))
        << what << ": element " << i << " is " << load_as_double(b.dtype, b.bytes.data() + i * size) << ", was "
        << load_as_double(a.dtype, a.bytes.data() + i * size);
}

TEST(PassesFuzz, KeepEveryBit) {
  constexpr int64_t sizes[] = {rows, columns};
  size_t before = 0, after = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    ProgramMaker maker(seed);
    Graph graph = maker.make(24);
    ir::verify(graph);
    std::vector<Buffer> arguments = maker.arguments(graph);
    std::vector<Buffer> expected = interpret::evaluate(graph, arguments, sizes);
    auto check = [&](const Graph& changed, std::string_view pass) {
      std::vector<Buffer> actual = interpret::evaluate(changed, arguments, sizes);
      for (size_t r = 0; r < expected.size(); ++r)
        expect_equal(expected[r], actual[r], fmt::format("seed {}, {}, result {}", seed, pass, r));
    };
    for (const Pass* pass : all_passes()) check(pass->run(graph), pass->name);
    Graph optimized = run_pipeline(graph, {.observe = {}, .verify = true});
    check(optimized, "pipeline");
    if (HasFatalFailure()) return;
    before += graph.operations().size();
    after += optimized.operations().size();
  }
  EXPECT_LT(after * 4, before * 3);
}

}  // namespace
}  // namespace neuron::passes
