#include "tests/core/lowering_fixture.h"

namespace neuron::lowering::testing {
namespace {

constexpr DType f32 = DType::Float32, f64 = DType::Float64, bf16 = DType::BFloat16, i64 = DType::Int64,
                i8 = DType::Int8;
constexpr DType u8 = DType::UInt8, i1 = DType::Bool;

TEST(Arithmetic, AddScalesTheSecondOperandAndRoundsOnce) {
  expect_values(evaluate("add", f32, {{f32, {1, 2}}, {f32, {3, -4}}, 2.0}), {7, -6});
  // In bfloat16 256 + 1 needs nine bits of significand: 256 after one rounding, to even.
  expect_values(evaluate("add", bf16, {{bf16, {256}}, {bf16, {1}}, 1}), {256});
  // 256 + 1.5 * 1 = 257.5 rounds up to 258; rounding 1.5 first would not change it, rounding 257.5 to 256 would.
  expect_values(evaluate("add", bf16, {{bf16, {256}}, {bf16, {1}}, 1.5}), {258});
  expect_values(evaluate("add", i1, {{i1, {1, 0, 1}}, {i1, {1, 0, 0}}, 1}), {1, 0, 1});
  expect_values(evaluate("add", i64, {{i64, {1}}, {i64, {2}}, 3}), {7});
}

TEST(Arithmetic, SubtractAndItsReverse) {
  expect_values(evaluate("sub", f32, {{f32, {1}}, {f32, {3}}, 2}), {-5});
  expect_values(evaluate("rsub", f32, {{f32, {1}}, 3, 2}), {1});
}

TEST(Arithmetic, DivisionModesOfIntegersFollowTheSign) {
  Operand x(i64, {7, -7, 7, -7, 6}), y(i64, {2, 2, -2, -2, -3});
  expect_values(evaluate("div", i64, {x, y}, {1}), {3, -3, -3, 3, -2});
  expect_values(evaluate("div", i64, {x, y}, {2}), {3, -4, -4, 3, -2});
  expect_values(evaluate("floor_divide", i64, {x, y}), {3, -4, -4, 3, -2});
  expect_values(evaluate("remainder", i64, {x, y}), {1, 1, -1, -1, 0});
  expect_values(evaluate("fmod", i64, {x, y}), {1, -1, 1, -1, 0});
  expect_values(evaluate("remainder", u8, {{u8, {200}}, {u8, {7}}}), {4});
}

TEST(Arithmetic, IntegerDivisionNeverTraps) {
  expect_values(evaluate("div", i64, {{i64, {5, 0}}, 0}, {1}), {-1, -1});
  expect_values(evaluate("div", i8, {{i8, {-128}}, -1}, {2}), {-128});
  expect_values(evaluate("remainder", i8, {{i8, {-128}}, -1}), {0});
}

TEST(Arithmetic, FloorDivisionOfFloats) {
  Operand x(f32, {7, -7, 0.0, -0.0, 1, kNaN, kInfinity, 1});
  Operand y(f32, {2, 2, 3, 3, 0, 1, 2, kInfinity});
  expect_values(evaluate("div", f32, {x, y}, {2}), {3, -4, 0.0, -0.0, kInfinity, kNaN, kNaN, 0});
  // The rounded quotient of 1 / 0.1f is 10, the exact one lies below.
  expect_values(evaluate("floor_divide", f32, {{f32, {1}}, {f32, {0.1}}}), {9});
  expect_values(evaluate("remainder", f32, {{f32, {5, -5, 5, -5}}, {f32, {3, 3, -3, -3}}}), {2, 1, -1, -2});
}

TEST(Arithmetic, ExtremesPropagateNaNUnlessAskedNotTo) {
  Operand x(f32, {1, kNaN, 2, kNaN, 0.0, -0.0}), y(f32, {3, 1, kNaN, kNaN, -0.0, 0.0});
  expect_values(evaluate("maximum", f32, {x, y}), {3, kNaN, kNaN, kNaN, 0.0, -0.0});
  expect_values(evaluate("minimum", f32, {x, y}), {1, kNaN, kNaN, kNaN, 0.0, -0.0});
  expect_values(evaluate("fmax", f32, {{f32, {1, kNaN, 2, kNaN}}, {f32, {3, 1, kNaN, kNaN}}}), {3, 1, 2, kNaN});
  expect_values(evaluate("fmin", f32, {{f32, {1, kNaN, 2, kNaN}}, {f32, {3, 1, kNaN, kNaN}}}), {1, 1, 2, kNaN});
}

TEST(Arithmetic, ClampTakesEitherBoundAndTheUpperWins) {
  Operand x(f32, {-5, 0, 5, kNaN});
  expect_values(evaluate("clamp", f32, {x, -1, 1}, {1, 1}), {-1, 0, 1, kNaN});
  expect_values(evaluate("clamp", f32, {x, -1}, {1, 0}), {-1, 0, 5, kNaN});
  expect_values(evaluate("clamp", f32, {x, 1}, {0, 1}), {-5, 0, 1, kNaN});
  expect_values(evaluate("clamp", f32, {x, 3, 1}, {1, 1}), {1, 1, 1, kNaN});
  expect_values(evaluate("clamp", f32, {x, kNaN}, {1, 0}), {kNaN, kNaN, kNaN, kNaN});
}

TEST(Arithmetic, SignOfNaNAndZero) {
  expect_values(evaluate("sign", f32, {{f32, {3, -2, 0.0, -0.0, kNaN, -kInfinity}}}), {1, -1, 0.0, 0.0, 0.0, -1});
  expect_values(evaluate("sign", u8, {{u8, {0, 9}}}), {0, 1});
  expect_values(evaluate("abs", i8, {{i8, {-128, -3}}}), {-128, 3});
}

TEST(Arithmetic, LerpIsExactAtBothEnds) {
  expect_values(evaluate("lerp", f32, {{f32, {1, 1, 1}}, {f32, {3, 3, 3}}, {f32, {0, 0.25, 1}}}), {1, 1.5, 3});
  expect_values(evaluate("lerp", f32, {{f32, {0.1}}, {f32, {0.7}}, 1}), {double{0.7f}});
}

TEST(Arithmetic, FusedMultiplies) {
  expect_values(evaluate("addcmul", f32, {{f32, {1}}, {f32, {2}}, {f32, {3}}, 0.5}), {4});
  expect_values(evaluate("addcdiv", f32, {{f32, {1}}, {f32, {3}}, {f32, {2}}, 2}), {4});
}

TEST(Arithmetic, Rounding) {
  Operand x(f32, {0.5, 1.5, -2.5, 2.7, -2.7});
  expect_values(evaluate("round", f32, {x}), {0, 2, -2, 3, -3});
  expect_values(evaluate("trunc", f32, {x}), {0, 1, -2, 2, -2});
  expect_values(evaluate("frac", f64, {{f64, {1.25, -1.25}}}), {0.25, -0.25});
  expect_values(evaluate("round", f64, {{f64, {1.256, -1251}}}, {2}), {1.26, -1251});
  expect_values(evaluate("round", f64, {{f64, {1256, -1249}}}, {-2}), {1300, -1200});
  expect_values(evaluate("floor", i64, {{i64, {3}}}), {3});
}

TEST(Arithmetic, SignsNeighboursAndLegs) {
  expect_values(evaluate("copysign", f32, {{f32, {1, -1, 2}}, {f32, {-0.0, 3, kNaN}}}), {-1, 1, 2});
  expect_values(evaluate("hypot", f32, {{f32, {3e30, kInfinity, 0, kNaN}}, {f32, {4e30, kNaN, 0, 1}}}),
                {5e30, kInfinity, 0, kNaN}, 1e-7);
  expect_values(evaluate("hypot", f64, {{f64, {3e300}}, {f64, {4e300}}}), {5e300}, 1e-15);
  expect_values(evaluate("nextafter", f32, {{f32, {1, 1, 0, -1, 2}}, {f32, {2, 0, -1, kInfinity, 2}}}),
                {std::nextafterf(1, 2), std::nextafterf(1, 0), -std::numeric_limits<float>::denorm_min(),
                 std::nextafterf(-1, 0), 2});
}

TEST(Comparison, RoundsANumberToTheTensorFirst) {
  // 0.1 in bfloat16 is larger than the double 0.1; the comparison is in bfloat16.
  expect_values(values(run("eq", bf16, {i1}, {{bf16, {0.1}}, 0.1})[0]), {1});
  expect_values(values(run("lt", f32, {i1}, {{f32, {1, kNaN}}, 2})[0]), {1, 0});
  expect_values(values(run("ne", f32, {i1}, {{f32, {1, kNaN}}, {f32, {1, kNaN}}})[0]), {0, 1});
}

TEST(Comparison, Predicates) {
  Operand x(f32, {1, kNaN, kInfinity, -kInfinity, -0.0});
  expect_values(values(run("isnan", f32, {i1}, {x})[0]), {0, 1, 0, 0, 0});
  expect_values(values(run("isinf", f32, {i1}, {x})[0]), {0, 0, 1, 1, 0});
  expect_values(values(run("isfinite", f32, {i1}, {x})[0]), {1, 0, 0, 0, 1});
  expect_values(values(run("isposinf", f32, {i1}, {x})[0]), {0, 0, 1, 0, 0});
  expect_values(values(run("signbit", f32, {i1}, {{f32, {1, -1, -0.0}}})[0]), {0, 1, 1});
  expect_values(values(run("isfinite", i64, {i1}, {{i64, {1}}})[0]), {1});
}

TEST(Comparison, SelectionsMoveElements) {
  expect_values(evaluate("where", f32, {{i1, {1, 0}}, {f32, {1, kNaN}}, {f32, {3, -0.0}}}), {1, -0.0});
  expect_values(evaluate("masked_fill", f32, {{f32, {1, 2}}, {i1, {1, 0}}, -kInfinity}), {-kInfinity, 2});
  expect_values(evaluate("nan_to_num", f32, {{f32, {kNaN, kInfinity, -kInfinity, 1}}, 5}, {1, 0, 0}),
                {5, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(), 1});
}

TEST(Bitwise, LogicIsAboutZeroOrNot) {
  expect_values(values(run("logical_and", f32, {i1}, {{f32, {0.5, kNaN, 0}}, {i64, {1, 2, 3}}})[0]), {1, 1, 0});
  expect_values(values(run("logical_not", f32, {i1}, {{f32, {0.5, -0.0}}})[0]), {0, 1});
  expect_values(evaluate("bitwise_xor", i64, {{i64, {6}}, {i64, {3}}}), {5});
  expect_values(evaluate("bitwise_not", i1, {{i1, {1, 0}}}), {0, 1});
}

TEST(Bitwise, ShiftsBeyondTheWidth) {
  Operand x(i8, {1, -8, 5}), count(i8, {9, -1, 7});
  expect_values(evaluate("__lshift__", i8, {x, count}), {0, 0, -128});
  expect_values(evaluate("__rshift__", i8, {x, count}), {0, -1, 0});
}

TEST(Mathematics, SpecialPoints) {
  expect_values(evaluate("xlogy", f32, {{f32, {0, 0, 1, kNaN}}, {f32, {kNaN, 0, 0, 1}}}), {kNaN, 0, -kInfinity, kNaN});
  expect_values(evaluate("logaddexp", f64, {{f64, {0, kInfinity, -kInfinity}}, {f64, {0, kInfinity, -kInfinity}}}),
                {std::log(2.0), kInfinity, -kInfinity}, 1e-15);
  expect_values(evaluate("sinc", f64, {{f64, {0, 0.5}}}), {1, 2 / M_PI}, 1e-15);
  expect_values(evaluate("logit", f64, {{f64, {0, 0.5, 1, 2}}}), {-kInfinity, 0, kInfinity, kNaN});
  expect_values(evaluate("logit", f64, {{f64, {-3, 0.5}}, 0.25}, {1}), {std::log(1.0 / 3), 0}, 1e-15);
  expect_values(evaluate("pow", i64, {{i64, {2, -2, 1, -1}}, {i64, {10, 3, -5, -5}}}), {1024, -8, 1, -1});
  expect_values(evaluate("special_entr", f64, {{f64, {0.5, 0, -1, kNaN}}}), {0.5 * std::log(2.0), 0, -kInfinity, kNaN},
                1e-15);
}

TEST(Creation, PositionsAndTriangles) {
  Operand index(i64, {0, 1, 2, 3});
  expect_values(evaluate("arange", f32, {index, 0.5, 0.25}), {0.5, 0.75, 1, 1.25});
  expect_values(evaluate("arange", i64, {index, 5, -2}), {5, 3, 1, -1});
  expect_values(evaluate("linspace", f32, {index, 0.0, 1.0, 1.0 / 3, 4}), {0, 1.0 / 3, 2.0 / 3, 1}, 1e-7);
  Operand diagonal(i64, {0, 1, -1, 0}, {2, 2}), x(f32, {1, 2, 3, 4}, {2, 2});
  expect_values(evaluate("tril", f32, {x, diagonal}), {1, 0, 3, 4});
  expect_values(evaluate("triu", f32, {x, diagonal}), {1, 2, 0, 4});
  expect_values(evaluate("eye", f32, {diagonal}), {1, 0, 0, 1});
}

TEST(Creation, CopyConvertsWithoutADetour) {
  Operand large(i64, {(1ll << 53)});
  EXPECT_EQ(*run("copy", i64, {DType::UInt64}, {large})[0].data<uint64_t>(), 1ull << 53);
  expect_values(values(run("copy", f32, {u8}, {{f32, {3.9, 200.1}}})[0]), {3, 200});
  expect_values(values(run("copy", f32, {i1}, {{f32, {0.1, 0, kNaN}}})[0]), {1, 0, 1});
}

}  // namespace
}  // namespace neuron::lowering::testing
