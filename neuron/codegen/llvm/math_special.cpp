// Rarer float32 functions, computed in double and rounded once: 0.51 ulp.
#include <cmath>
#include <limits>

#include "neuron/codegen/llvm/math_functions.h"

namespace neuron::codegen {

namespace {

using llvm::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Below, two terms of the series are exact enough and the logarithm's argument would not be.
constexpr double kSeries = 0x1p-13;

// One function; `x` and `a = |x|` are double.
struct Special {
  const Lanes& lanes;
  llvm::IRBuilder<>& b;

  Value* number(double value) const { return lanes.f64(value); }
  Value* add(Value* x, Value* y) const { return b.CreateFAdd(x, y); }
  Value* sub(Value* x, Value* y) const { return b.CreateFSub(x, y); }
  Value* mul(Value* x, Value* y) const { return b.CreateFMul(x, y); }
  Value* div(Value* x, Value* y) const { return b.CreateFDiv(x, y); }
  Value* root(Value* x) const { return lanes.unary(llvm::Intrinsic::sqrt, x); }
  Value* below(Value* x, double limit) const { return b.CreateFCmpOLT(x, number(limit)); }
  Value* equal(Value* x, double value) const { return b.CreateFCmpOEQ(x, number(value)); }
  Value* log(Value* x) const { return emit_log_f64(lanes, x); }
  // x + x^3 c near zero.
  Value* series(Value* x, double c) const { return lanes.fma(mul(mul(x, x), number(c)), x, x); }
  Value* keep_unless_finite(Value* x, Value* a, Value* result) const {
    return lanes.select(below(a, kInfinity), result, x);
  }

  // A logarithm with its special values; `scale` times it.
  Value* logarithm(Value* x, double scale) const {
    Value* result = keep_unless_finite(x, x, mul(log(x), number(scale)));
    result = lanes.select(equal(x, 0), number(-kInfinity), result);
    return lanes.select(below(x, 0), number(kNan), result);
  }
  Value* log_plus_one(Value* x, Value* a) const {
    Value* result = logarithm(add(number(1), x), 1);
    return lanes.select(below(a, 0x1p-28), x, result);
  }
  Value* hyperbolic_sine(Value* x, Value* a) const {
    Value* e = emit_expm1_f64(lanes, a);
    return lanes.copy_sign(mul(number(0.5), add(e, div(e, add(e, number(1))))), x);
  }
  Value* hyperbolic_cosine(Value* a) const {
    Value* e = emit_exp_f64(lanes, a);
    return mul(number(0.5), add(e, div(number(1), e)));
  }
  Value* inverse_hyperbolic_sine(Value* x, Value* a) const {
    Value* large = log(add(a, root(lanes.fma(a, a, number(1)))));
    Value* result = lanes.select(below(a, kSeries), series(a, -1.0 / 6), large);
    return lanes.copy_sign(keep_unless_finite(x, a, result), x);
  }
  Value* inverse_hyperbolic_cosine(Value* x, Value* a) const {
    Value* t = sub(x, number(1));
    Value* result = log(add(number(1), add(t, root(mul(t, add(x, number(1)))))));
    result = keep_unless_finite(x, a, result);
    return lanes.select(below(x, 1), number(kNan), result);
  }
  Value* inverse_hyperbolic_tangent(Value* x, Value* a) const {
    Value* large = mul(number(0.5), log(div(add(number(1), a), sub(number(1), a))));
    Value* result = lanes.select(below(a, kSeries), series(a, 1.0 / 3), large);
    result = lanes.select(equal(a, 1), number(kInfinity), result);
    result = lanes.select(b.CreateFCmpULE(a, number(1)), result, number(kNan));
    return lanes.copy_sign(lanes.select(lanes.is_nan(a), a, result), x);
  }
  Value* cube_root(Value* x, Value* a) const {
    Value* result = emit_exp_f64(lanes, mul(log(a), number(1.0 / 3)));
    result = lanes.select(b.CreateFCmpOGT(a, number(0)), result, a);
    return lanes.copy_sign(keep_unless_finite(a, a, result), x);
  }
  Value* error_function_complement(Value* x, Value* a) const {
    // e^(-a^2) g(u) / (1 + a), u = (a - 2) / (a + 2), relative error 2^-32.7 up to 10.1, where the result underflows.
    Value* limited = emit_at_most(lanes, a, 10.1);
    Value* u = div(sub(limited, number(2)), add(limited, number(2)));
    Value* g = emit_polynomial(
        lanes, u,
        {0x1.8849aa90c39cep-1, -0x1.0a36d8108aa18p-2, 0x1.35c575cfc4528p-5, 0x1.5c754bb5782a5p-5, -0x1.9d95b1c165644p-6,
         -0x1.0ffaaef2b4c67p-11, 0x1.01df1c5231a2fp-8, 0x1.3204a8cf36df0p-13, -0x1.6c584a071c548p-11,
         -0x1.205b05e66b7cfp-13, 0x1.9124acde35531p-14, 0x1.8926108afb55cp-15, 0x1.471aa51289022p-18});
    Value* tail = mul(emit_exp_f64(lanes, b.CreateFNeg(mul(a, a))), div(g, add(number(1), limited)));
    return lanes.select(below(x, 0), sub(number(2), tail), tail);
  }
  Value* power(Value* x, Value* y) const {
    Value *a = lanes.absolute(x), *one = number(1);
    Value* logarithm = lanes.select(below(a, kInfinity), log(a), a);
    logarithm = lanes.select(equal(a, 0), number(-kInfinity), logarithm);
    Value* result = emit_exp_f64(lanes, mul(y, logarithm));
    // The sign of a negative base; NaN for a negative finite one with a fractional exponent.
    Value* half = mul(y, number(0.5));
    Value* whole = b.CreateFCmpOEQ(y, lanes.unary(llvm::Intrinsic::trunc, y));
    Value* odd = b.CreateAnd(whole, b.CreateFCmpUNE(half, lanes.unary(llvm::Intrinsic::trunc, half)));
    result = lanes.select(odd, lanes.copy_sign(result, x), result);
    Value* negative = b.CreateAnd(below(x, 0), below(a, kInfinity));
    Value* undefined = b.CreateOr(b.CreateAnd(negative, b.CreateNot(whole)), b.CreateFCmpUNO(x, y));
    result = lanes.select(undefined, number(kNan), result);
    Value* unit = b.CreateOr(equal(y, 0), equal(x, 1));
    unit = b.CreateOr(unit, b.CreateAnd(equal(x, -1), equal(lanes.absolute(y), kInfinity)));
    return lanes.select(unit, one, result);
  }
  Value* remainder(std::span<Value* const> operands) const {
    Value *x = operands[0], *y = operands[1];
    Value* quotient = lanes.unary(llvm::Intrinsic::trunc, div(x, y));
    Value* result = lanes.fma(b.CreateFNeg(quotient), y, x);
    Value* endless = b.CreateAnd(equal(lanes.absolute(y), kInfinity), below(lanes.absolute(x), kInfinity));
    result = lanes.copy_sign(lanes.select(endless, x, result), x);
    // Up to 2^24 the truncated quotient of two floats is exact in double, and so is the remainder.
    Value* large = b.CreateFCmpOGE(lanes.absolute(quotient), number(0x1p24));
    return emit_unless_rare(lanes, large, result, "fmod", operands);
  }
};

}  // namespace

Value* emit_special_f32(const Lanes& lanes, std::string_view name, std::span<Value* const> operands) {
  const Special f{lanes, lanes.builder()};
  Value *x = operands[0], *a = lanes.absolute(x);
  if (name == "expm1") return lanes.copy_sign(emit_expm1_f64(lanes, x), x);
  if (name == "exp2") return emit_exp_f64(lanes, f.mul(x, lanes.f64(0x1.62e42fefa39efp-1)));
  if (name == "log1p") return f.log_plus_one(x, a);
  if (name == "log2") return f.logarithm(x, 0x1.71547652b82fep+0);
  if (name == "log10") return f.logarithm(x, 0x1.bcb7b1526e50ep-2);
  if (name == "sinh") return f.hyperbolic_sine(x, a);
  if (name == "cosh") return f.hyperbolic_cosine(a);
  if (name == "asinh") return f.inverse_hyperbolic_sine(x, a);
  if (name == "acosh") return f.inverse_hyperbolic_cosine(x, a);
  if (name == "atanh") return f.inverse_hyperbolic_tangent(x, a);
  if (name == "cbrt") return f.cube_root(x, a);
  if (name == "erfc") return f.error_function_complement(x, a);
  if (name == "pow") return f.power(x, operands[1]);
  if (name == "fmod") return f.remainder(operands);
  return nullptr;
}

}  // namespace neuron::codegen
