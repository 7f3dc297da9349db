#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "neuron/base/error.h"
#include "neuron/base/float_formats.h"
#include "neuron/interpret/interpreter.h"
#include "neuron/ir/builder.h"
#include "tests/core/interpret_testing.h"

namespace neuron::interpret {
namespace {

using namespace testing;
using ir::Builder;
using ir::Graph;
using ir::Opcode;
using ir::Value;

Buffer convert(Buffer x, DType dtype) {
  return run({std::move(x)}, [&](Builder& b, auto& p) { return b.convert(p[0], dtype); });
}

Buffer binary(Opcode opcode, Buffer x, Buffer y) {
  return run({std::move(x), std::move(y)}, [&](Builder& b, auto& p) { return b.binary(opcode, p[0], p[1]); });
}

TEST(Interpret, ConvertsFloatsToIntegersAsPyTorchOnX86) {
  Buffer x = floats(DType::Float64, {7}, {3000000005.0, nan, 1e20, -1.7, 300.9, -3e9, -inf});
  EXPECT_EQ(values<int8_t>(convert(x, DType::Int8)), (std::vector<int8_t>{0, 0, 0, -1, 44, 0, 0}));
  EXPECT_EQ(values<uint8_t>(convert(x, DType::UInt8)), (std::vector<uint8_t>{5, 0, 0, 255, 44, 0, 0}));
  EXPECT_EQ(values<int16_t>(convert(x, DType::Int16)), (std::vector<int16_t>{0, 0, 0, -1, 300, 0, 0}));
  EXPECT_EQ(values<int32_t>(convert(x, DType::Int32)),
            (std::vector<int32_t>{INT32_MIN, INT32_MIN, INT32_MIN, -1, 300, INT32_MIN, INT32_MIN}));
  EXPECT_EQ(values<uint32_t>(convert(x, DType::UInt32)),
            (std::vector<uint32_t>{3000000005u, 1u << 31, 0, ~0u, 300, 1u << 31, 1u << 31}));
  EXPECT_EQ(values<int64_t>(convert(x, DType::Int64)),
            (std::vector<int64_t>{3000000005, INT64_MIN, INT64_MIN, -1, 300, -3000000000, INT64_MIN}));
  EXPECT_EQ(
      values<uint64_t>(convert(x, DType::UInt64)),
      (std::vector<uint64_t>{3000000005, 1ull << 63, 0, ~0ull, 300, static_cast<uint64_t>(-3000000000), 1ull << 63}));
  EXPECT_EQ(values<bool>(convert(floats(DType::Float32, {4}, {0.0, -0.0, nan, 0.1}), DType::Bool)),
            (std::vector<bool>{false, false, true, true}));
}

TEST(Interpret, RoundsNarrowFloatsOncePerOperation) {
  // 256 + 1 is a tie in bfloat16 and goes to even; the second addition then starts from 256 again.
  Buffer x = floats(DType::BFloat16, {1}, {256}), one = floats(DType::BFloat16, {1}, {1});
  Buffer sum = run({x, one}, [](Builder& b, auto& p) { return b.add(b.add(p[0], p[1]), p[1]); });
  EXPECT_EQ(load_as_double(DType::BFloat16, sum.bytes.data()), 256.0);
  Buffer half = binary(Opcode::Multiply, floats(DType::Float16, {1}, {60000}), floats(DType::Float16, {1}, {2}));
  EXPECT_EQ(load_as_double(DType::Float16, half.bytes.data()), inf);
}

TEST(Interpret, IntegersWrapAround) {
  auto i32 = [](std::vector<int64_t> v) { return integers(DType::Int32, {static_cast<int64_t>(v.size())}, v); };
  EXPECT_EQ(values<int32_t>(binary(Opcode::Add, i32({INT32_MAX}), i32({1}))), std::vector<int32_t>{INT32_MIN});
  EXPECT_EQ(values<int32_t>(binary(Opcode::Multiply, i32({65537}), i32({65537}))), std::vector<int32_t>{131073});
  EXPECT_EQ(values<uint16_t>(
                binary(Opcode::Multiply, integers(DType::UInt16, {1}, {65535}), integers(DType::UInt16, {1}, {65535}))),
            std::vector<uint16_t>{1});
  EXPECT_EQ(values<int32_t>(binary(Opcode::Divide, i32({7, -7, 7, INT32_MIN}), i32({-2, 2, 0, -1}))),
            (std::vector<int32_t>{-3, -3, -1, INT32_MIN}));
  EXPECT_EQ(values<int32_t>(binary(Opcode::Remainder, i32({7, -7, 7, INT32_MIN}), i32({-2, 2, 0, -1}))),
            (std::vector<int32_t>{1, -1, 7, 0}));
  EXPECT_EQ(values<int32_t>(binary(Opcode::Power, i32({3, -1, 2, 1, 7}), i32({4, -3, -1, -9, 0}))),
            (std::vector<int32_t>{81, -1, 0, 1, 1}));
  EXPECT_EQ(values<int32_t>(binary(Opcode::ShiftLeft, i32({1, 1, 1}), i32({31, 32, -1}))),
            (std::vector<int32_t>{INT32_MIN, 0, 0}));
  EXPECT_EQ(values<int32_t>(binary(Opcode::ShiftRightArithmetic, i32({-8, -8}), i32({1, 99}))),
            (std::vector<int32_t>{-4, -1}));
  EXPECT_EQ(values<int32_t>(binary(Opcode::ShiftRightLogical, i32({-8, -8}), i32({28, 32}))),
            (std::vector<int32_t>{15, 0}));
  EXPECT_EQ(values<int64_t>(
                binary(Opcode::Multiply, integers(DType::Int64, {1}, {INT64_MAX}), integers(DType::Int64, {1}, {3}))),
            std::vector<int64_t>{INT64_MAX - 2});
}

TEST(Interpret, MaximumAndMinimumPropagateNanAndTakeTheSecondOfEqualZeros) {
  Buffer x = floats(DType::Float32, {4}, {1, nan, 0.0, -0.0}), y = floats(DType::Float32, {4}, {nan, 1, -0.0, 0.0});
  for (Opcode opcode : {Opcode::Maximum, Opcode::Minimum}) {
    auto result = values<float>(binary(opcode, x, y));
    EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1]));
    EXPECT_TRUE(std::signbit(result[2]));
    EXPECT_FALSE(std::signbit(result[3]));
  }
}

TEST(Interpret, ComparesAndSelects) {
  Buffer x = floats(DType::Float32, {3}, {1, nan, 3});
  auto less = run(
      {x}, [](Builder& b, auto& p) { return b.compare(ir::ComparisonDirection::LT, p[0], b.constant_like(p[0], 2)); });
  EXPECT_EQ(values<bool>(less), (std::vector<bool>{true, false, false}));
  auto chosen = run({x}, [](Builder& b, auto& p) {
    Value same = b.compare(ir::ComparisonDirection::EQ, p[0], p[0]);
    return b.select(same, p[0], b.constant_like(p[0], -1));
  });
  EXPECT_EQ(values<float>(chosen), (std::vector<float>{1, -1, 3}));
}

TEST(Interpret, UnaryOperationsOfEveryClass) {
  auto unary = [](Opcode opcode, Buffer x) {
    return run({std::move(x)}, [&](Builder& b, auto& p) { return b.unary(opcode, p[0]); });
  };
  Buffer x = floats(DType::Float32, {5}, {-2.5, 2.5, -0.5, 0.5, -0.0});
  EXPECT_EQ(values<float>(unary(Opcode::RoundNearestEven, x)), (std::vector<float>{-2, 2, -0.0, 0, -0.0}));
  EXPECT_EQ(values<float>(unary(Opcode::RoundNearestAfz, x)), (std::vector<float>{-3, 3, -1, 1, -0.0}));
  EXPECT_EQ(values<float>(unary(Opcode::Sign, x)), (std::vector<float>{-1, 1, -1, 1, -0.0}));
  EXPECT_EQ(values<int8_t>(unary(Opcode::Abs, integers(DType::Int8, {2}, {-128, -3}))), (std::vector<int8_t>{-128, 3}));
  EXPECT_EQ(values<uint8_t>(unary(Opcode::CountLeadingZeros, integers(DType::UInt8, {2}, {0, 3}))),
            (std::vector<uint8_t>{8, 6}));
  EXPECT_EQ(values<float>(unary(Opcode::Exponential, floats(DType::Float32, {1}, {1})))[0], 2.7182817f);
  Buffer z(DType::Complex64, {1});
  z.data<float>()[0] = 3;
  z.data<float>()[1] = -4;
  EXPECT_EQ(values<float>(unary(Opcode::Abs, z)), std::vector<float>{5});
  EXPECT_EQ(values<float>(unary(Opcode::Imag, z)), std::vector<float>{-4});
}

TEST(Interpret, FunctionsMatchKnownValues) {
  auto function = [](const char* name, double x) {
    Buffer out = run({floats(DType::Float64, {1}, {x})}, [&](Builder& b, auto& p) { return b.function(name, p[0]); });
    return values<double>(out)[0];
  };
  EXPECT_NEAR(function("digamma", 1.0), -0.57721566490153286, 1e-15);
  EXPECT_NEAR(function("digamma", -1.5), 0.70315664064524319, 1e-14);
  EXPECT_TRUE(std::isnan(function("digamma", -2.0)));
  for (double y : {1e-12, 0.1, -0.5, 0.9, 0.999999, -0.9999999999}) {
    EXPECT_NEAR(std::erf(function("erfinv", y)), y, 2e-16 + 1e-15 * std::fabs(y));
  }
  EXPECT_EQ(function("erfinv", 1.0), inf);
  EXPECT_EQ(function("trunc", -1.5), -1.0);
  EXPECT_EQ(function("exp2", 10.0), 1024.0);
  Buffer x = floats(DType::Float32, {1}, {1 + 0x1p-12}), y = floats(DType::Float32, {1}, {-1});
  Buffer fused = run({x, x, y}, [](Builder& b, auto& p) { return b.function("fma", p); });
  EXPECT_EQ(values<float>(fused)[0], static_cast<float>(0x1p-11 + 0x1p-24));
}

TEST(Interpret, DoesNotDependOnTheThreadsFloatingPointControl) {
  Buffer x = floats(DType::Float32, {2}, {1e-39, 0x1.fffffep0}), y = floats(DType::Float32, {2}, {1e-39, 0x1p-24});
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040 | 0x6000);  // flush to zero, denormals are zero, round towards zero
  unsigned control = _mm_getcsr();
  Buffer sum = binary(Opcode::Add, x, y);
  EXPECT_EQ(_mm_getcsr() | 0x3f, control | 0x3f);  // the low bits are sticky flags
  _mm_setcsr(before);
  EXPECT_EQ(values<float>(sum), (std::vector<float>{2 * 1e-39f, 2.0f}));
}

TEST(Interpret, NamesTheArgumentThatDoesNotFit) {
  Graph graph;
  Value x = graph.add_parameter({DType::Float32, {graph.add_symbol(), 2}});
  graph.set_results({&x, 1});
  Buffer argument(DType::Float32, {4, 2});
  int64_t five = 5;
  try {
    evaluate(graph, {&argument, 1}, {&five, 1});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "argument 0 of 'main' is tensor<4x2xf32>, wanted tensor<5x2xf32>");
  }
}

TEST(Interpret, ReshapesTransposesAndBroadcasts) {
  Buffer x = floats(DType::Float32, {2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(values<float>(run({x}, [](Builder& b, auto& p) { return b.transpose(p[0], {1, 0}); })),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values<float>(run({x}, [](Builder& b, auto& p) { return b.slice(p[0], {0, 0}, {2, 3}, {1, 2}); })),
            (std::vector<float>{0, 2, 3, 5}));
  EXPECT_EQ(values<float>(run({x}, [](Builder& b, auto& p) { return b.reverse(p[0], {1}); })),
            (std::vector<float>{2, 1, 0, 5, 4, 3}));
  Buffer row = floats(DType::Float32, {3}, {7, 8, 9});
  EXPECT_EQ(values<float>(run({row}, [](Builder& b, auto& p) { return b.broadcast_in_dim(p[0], {2, 3}, {1}); })),
            (std::vector<float>{7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(values<float>(run({x, row},
                              [](Builder& b, auto& p) {
                                Value parts[] = {p[0], b.reshape(p[1], {1, 3})};
                                return b.concatenate(parts, 0);
                              })),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 7, 8, 9}));
  Buffer zero = floats(DType::Float32, {}, {-1});
  EXPECT_EQ(values<float>(run({row, zero}, [](Builder& b, auto& p) { return b.pad(p[0], p[1], {1}, {-1}, {1}); })),
            (std::vector<float>{-1, 7, -1, 8, -1}));
  EXPECT_EQ(values<int64_t>(run({}, [](Builder& b, auto&) { return b.iota({DType::Int64, {2, 2}}, 0); })),
            (std::vector<int64_t>{0, 0, 1, 1}));
}

// The rules of docs/numerics.md, written out again.
float inner_rule(const std::vector<float>& x, float init) {
  float result = init;
  for (size_t start = 0; start < x.size(); start += 4096) {
    float lane[32] = {};
    for (size_t i = start; i < std::min(x.size(), start + 4096); ++i) lane[(i - start) % 32] += x[i];
    for (int h = 16; h > 0; h /= 2)
      for (int l = 0; l < h; ++l) lane[l] += lane[l + h];
    result += lane[0];
  }
  return result;
}

TEST(Interpret, SumsInTheOrderOfTheNumericsPage) {
  constexpr int64_t n = 10000;
  std::vector<float> x(n);
  for (int64_t i = 0; i < n; ++i) x[i] = std::sin(static_cast<float>(i)) * static_cast<float>(1 + i % 97);
  Buffer buffer(DType::Float32, {n, 1});
  std::memcpy(buffer.bytes.data(), x.data(), buffer.bytes.size());
  auto sum = [](Builder& b, Value v, std::vector<int64_t> dimensions) {
    return b.reduce(Opcode::Add, v, b.constant({DType::Float32, {}}, 0.5), std::move(dimensions));
  };
  // The kept dimension of size 1 does not count: the inner rule.
  EXPECT_EQ(values<float>(run({buffer}, [&](Builder& b, auto& p) { return sum(b, p[0], {0}); }))[0],
            inner_rule(x, 0.5f));

  Buffer two(DType::Float32, {n, 2});
  for (int64_t i = 0; i < n; ++i) two.data<float>()[2 * i] = x[i], two.data<float>()[2 * i + 1] = -x[i];
  float expected = 0.5f;
  for (int64_t start = 0; start < n; start += 256) {
    float partial = 0;
    for (int64_t i = start; i < std::min(n, start + 256); ++i) partial += x[i];
    expected += partial;
  }
  auto outer = values<float>(run({two}, [&](Builder& b, auto& p) { return sum(b, p[0], {0}); }));
  EXPECT_EQ(outer[0], expected);

  // Not adjacent: the innermost first, then the outer rule on what is left.
  Buffer cube(DType::Float32, {10, 10, 100});
  std::memcpy(cube.bytes.data(), x.data(), cube.bytes.size());
  auto both = values<float>(run({cube}, [&](Builder& b, auto& p) { return sum(b, p[0], {0, 2}); }));
  std::vector<float> rows;
  for (int64_t i = 0; i < 100; ++i) rows.push_back(inner_rule({x.begin() + i * 100, x.begin() + (i + 1) * 100}, 0.0f));
  float column = 0;
  for (int64_t i = 0; i < 10; ++i) column += rows[static_cast<size_t>(i) * 10 + 3];
  EXPECT_EQ(both[3], 0.5f + column);
}

TEST(Interpret, ReducesOtherTypesAndBodies) {
  Buffer x = integers(DType::Int32, {4}, {5, -7, 5, 2});
  auto reduce = [](Opcode opcode, Buffer v, int64_t init) {
    return run({std::move(v)}, [&](Builder& b, auto& p) {
      return b.reduce(opcode, p[0], b.constant_int({b.type(p[0]).dtype, {}}, init), {0});
    });
  };
  EXPECT_EQ(values<int32_t>(reduce(Opcode::Maximum, x, INT32_MIN))[0], 5);
  EXPECT_EQ(values<int32_t>(reduce(Opcode::Multiply, x, 1))[0], -350);
  EXPECT_EQ(values<bool>(reduce(Opcode::And, integers(DType::Bool, {3}, {1, 1, 0}), 1)), std::vector<bool>{false});
  EXPECT_EQ(values<int32_t>(reduce(Opcode::Add, integers(DType::Int32, {0}, {}), 9))[0], 9);
  // bfloat16 accumulates in float32: 256 + 1 + 1 is 258, not 256.
  Buffer narrow = floats(DType::BFloat16, {3}, {256, 1, 1});
  EXPECT_EQ(load_as_double(DType::BFloat16, reduce(Opcode::Add, narrow, 0).bytes.data()), 258.0);

  // (value, index) with a body of several operations: the first maximum.
  auto body = std::make_shared<Graph>("argmax");
  Value a = body->add_parameter({DType::Int32, {}}), i = body->add_parameter({DType::Int64, {}});
  Value c = body->add_parameter({DType::Int32, {}}), j = body->add_parameter({DType::Int64, {}});
  Builder inside(*body);
  Value better = inside.compare(ir::ComparisonDirection::GT, c, a);
  Value results[] = {inside.select(better, c, a), inside.select(better, j, i)};
  body->set_results(results);
  Buffer index = run({x}, [&](Builder& b, auto& p) {
    Value inputs[] = {p[0], b.iota({DType::Int64, {4}}, 0)};
    Value inits[] = {b.constant_int({DType::Int32, {}}, INT32_MIN), b.constant_int({DType::Int64, {}}, -1)};
    return b.reduce(inputs, inits, {0}, body)[1];
  });
  EXPECT_EQ(values<int64_t>(index)[0], 0);
}

}  // namespace
}  // namespace neuron::interpret
