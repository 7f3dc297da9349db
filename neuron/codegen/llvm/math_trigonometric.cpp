// Trigonometric float32 functions, computed in double and rounded once: 0.51 ulp.
#include <cmath>
#include <limits>

#include "neuron/codegen/llvm/math_functions.h"

namespace neuron::codegen {

namespace {

using llvm::Value;

constexpr double kHalfPi = 0x1.921fb54442d18p+0;
constexpr double kHalfPiRest = 0x1.1a62633145c07p-54;
constexpr double kPi = 2 * kHalfPi;

// Beyond this the multiple of pi/2 has no room left in a double: the C library takes over.
constexpr double kReducible = 0x1p40;

struct Circular {
  Value* sine;  // of the remainder in [-pi/4, pi/4]
  Value* cosine;
  Value* quarter;  // i64, the number of quarter turns
};

Circular reduce(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  Value* magic = lanes.f64(6755399441055744.0);  // 1.5 * 2^52
  Value* shifted = lanes.fma(x, lanes.f64(0x1.45f306dc9c883p-1), magic);
  Value* n = b.CreateFSub(shifted, magic);
  // The first step is exact: both terms are multiples of 2^-52 and the difference is below 1.
  Value* r = lanes.fma(n, lanes.f64(-kHalfPi), x);
  r = lanes.fma(n, lanes.f64(-kHalfPiRest), r);
  Value* z = b.CreateFMul(r, r);
  // sin r = r + r^3 p(z), relative error 2^-37.6; cos r = 1 - z/2 + z^2 q(z), 2^-43.2.
  Value* p = emit_polynomial(
      lanes, z, {-0x1.5555554cb1f93p-3, 0x1.1111089072508p-7, -0x1.a00f98e293bc7p-13, 0x1.6cd73277a696dp-19});
  Value* q = emit_polynomial(
      lanes, z, {0x1.5555554f48b20p-5, -0x1.6c16b892afb43p-10, 0x1.a0111c10d6ee6p-16, -0x1.2429fb1c27ce5p-22});
  Value* sine = lanes.fma(b.CreateFMul(r, z), p, r);
  Value* cosine = lanes.fma(b.CreateFMul(z, z), q, lanes.fma(z, lanes.f64(-0.5), lanes.f64(1.0)));
  return {sine, cosine, lanes.bits(shifted)};
}

Value* bit(const Lanes& lanes, Value* word, int64_t mask) {
  auto& b = lanes.builder();
  return b.CreateICmpNE(b.CreateAnd(word, lanes.integer(word, mask)), lanes.integer(word, 0));
}

Value* circular(const Lanes& lanes, std::string_view name, std::span<Value* const> operands) {
  auto& b = lanes.builder();
  Value *x = operands[0], *a = lanes.absolute(x);
  Circular c = reduce(lanes, x);
  Value* odd = bit(lanes, c.quarter, 1);
  Value* result;
  if (name == "tan") {
    Value* numerator = lanes.select(odd, b.CreateFNeg(c.cosine), c.sine);
    result = b.CreateFDiv(numerator, lanes.select(odd, c.sine, c.cosine));
  } else {
    const bool cosine = name == "cos";
    result = cosine ? lanes.select(odd, c.sine, c.cosine) : lanes.select(odd, c.cosine, c.sine);
    // The cosine is the sine a quarter turn later; each half turn changes the sign.
    Value* quarter = cosine ? b.CreateAdd(c.quarter, lanes.integer(c.quarter, 1)) : c.quarter;
    result = lanes.select(bit(lanes, quarter, 2), b.CreateFNeg(result), result);
  }
  if (name != "cos") result = lanes.select(b.CreateFCmpOLT(a, lanes.f64(0x1p-20)), x, result);
  return emit_unless_rare(lanes, b.CreateFCmpOGE(a, lanes.f64(kReducible)), result, name, operands);
}

// atan of t in [0, 1]: t + t^3 p(t^2), relative error 2^-36.7.
Value* atan_of_unit(const Lanes& lanes, Value* t) {
  auto& b = lanes.builder();
  Value* z = b.CreateFMul(t, t);
  Value* p =
      emit_polynomial(lanes, z,
                      {-0x1.555555326fd2fp-2, 0x1.999985e9eb4fdp-3, -0x1.24905741074c8p-3, 0x1.c6eab9960b91ep-4,
                       -0x1.72e40db845f61p-4, 0x1.33d4690f52d12p-4, -0x1.f12532eefdd5ap-5, 0x1.6b739c500dff1p-5,
                       -0x1.b6338f45f78f1p-6, 0x1.864b9d1ff0d77p-7, -0x1.baa727af639f9p-9, 0x1.d70168051babbp-12});
  return lanes.fma(b.CreateFMul(t, z), p, t);
}

Value* arc_tangent(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  Value *a = lanes.absolute(x), *one = lanes.f64(1.0);
  Value* large = b.CreateFCmpOGT(a, one);
  Value* angle = atan_of_unit(lanes, lanes.select(large, b.CreateFDiv(one, a), a));
  return lanes.copy_sign(lanes.select(large, b.CreateFSub(lanes.f64(kHalfPi), angle), angle), x);
}

Value* arc_tangent_of_quotient(const Lanes& lanes, Value* y, Value* x) {
  auto& b = lanes.builder();
  Value *ay = lanes.absolute(y), *ax = lanes.absolute(x), *zero = lanes.f64(0.0);
  Value* steep = b.CreateFCmpOGT(ay, ax);
  Value *small = lanes.select(steep, ax, ay), *big = lanes.select(steep, ay, ax);
  // Equal magnitudes, infinities among them, are at 45 degrees; two zeros at 0.
  Value* t = lanes.select(b.CreateFCmpOEQ(small, big), lanes.f64(1.0), b.CreateFDiv(small, big));
  t = lanes.select(b.CreateFCmpOEQ(big, zero), zero, t);
  Value* angle = atan_of_unit(lanes, t);
  angle = lanes.select(steep, b.CreateFSub(lanes.f64(kHalfPi), angle), angle);
  Value* backward = b.CreateICmpSLT(lanes.bits(x), lanes.integer(lanes.bits(x), 0));
  angle = lanes.select(backward, b.CreateFSub(lanes.f64(kPi), angle), angle);
  angle = lanes.copy_sign(angle, y);
  return lanes.select(b.CreateFCmpUNO(x, y), b.CreateFAdd(x, y), angle);
}

Value* arc_sine_or_cosine(const Lanes& lanes, std::string_view name, Value* x) {
  auto& b = lanes.builder();
  Value *a = lanes.absolute(x), *half = lanes.f64(0.5);
  // asin s = s + s^3 p(s^2) up to 1/2, relative error 2^-43.9; beyond, asin a = pi/2 - 2 asin sqrt((1 - a) / 2).
  Value* large = b.CreateFCmpOGT(a, half);
  Value* z = lanes.select(large, b.CreateFMul(b.CreateFSub(lanes.f64(1.0), a), half), b.CreateFMul(a, a));
  Value* s = lanes.select(large, lanes.unary(llvm::Intrinsic::sqrt, z), a);
  Value* p = emit_polynomial(
      lanes, z,
      {0x1.555555566203fp-3, 0x1.333331eab9f24p-4, 0x1.6db7656db2749p-5, 0x1.f1aacbd5bbc47p-6, 0x1.702d9487238fap-6,
       0x1.0de965c0a66a7p-6, 0x1.317e19afccbf3p-6, -0x1.7b396b821deb6p-9, 0x1.0614b9f57867dp-5});
  Value* angle = lanes.fma(b.CreateFMul(s, z), p, s);
  Value* twice = b.CreateFAdd(angle, angle);
  Value* quarter = lanes.f64(kHalfPi);
  if (name == "asin") return lanes.copy_sign(lanes.select(large, b.CreateFSub(quarter, twice), angle), x);
  Value* negative = b.CreateFCmpOLT(x, lanes.f64(0.0));
  Value* outer = lanes.select(negative, b.CreateFSub(lanes.f64(kPi), twice), twice);
  return lanes.select(large, outer, b.CreateFSub(quarter, lanes.copy_sign(angle, x)));
}

}  // namespace

Value* emit_trigonometric_f32(const Lanes& lanes, std::string_view name, std::span<Value* const> operands) {
  if (name == "sin" || name == "cos" || name == "tan") return circular(lanes, name, operands);
  if (name == "asin" || name == "acos") return arc_sine_or_cosine(lanes, name, operands[0]);
  if (name == "atan") return arc_tangent(lanes, operands[0]);
  if (name == "atan2") return arc_tangent_of_quotient(lanes, operands[0], operands[1]);
  return nullptr;
}

}  // namespace neuron::codegen
