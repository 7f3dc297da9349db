// Exponential functions in float32. Measured: exp 0.96 ulp, log 0.79, tanh 1.2, logistic 1.41, erf 0.89.
#include <llvm/IR/IntrinsicsX86.h>

#include <cmath>
#include <limits>

#include "neuron/codegen/llvm/math_functions.h"

namespace neuron::codegen {

namespace {

using llvm::Value;

// e^x = p * 2^n with p near 1: x = n ln 2 + r. The high part of ln 2 has few enough bits for the first step to be
// exact.
struct Reduced {
  Value* p;
  Value* whole;  // n as a float
  Value* n;      // and as an i32
};

Reduced exp_reduced(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  constexpr double magic = 12582912.0;  // 1.5 * 2^23: adding it rounds to an integer, held in the low bits
  Value* shifted = lanes.fma(x, lanes.f32(0x1.715476p+0), lanes.f32(magic));
  Value* n = b.CreateFSub(shifted, lanes.f32(magic));
  Value* r = lanes.fma(n, lanes.f32(-0x1.62e4p-1), x);
  r = lanes.fma(n, lanes.f32(-0x1.7f7d1cp-20), r);
  // e^r = 1 + r + r^2 q(r), relative error 2^-28.2.
  Value* q = emit_polynomial(lanes, r, {0x1.0p-1, 0x1.55549p-3, 0x1.5554bep-5, 0x1.123afep-7, 0x1.6d7c9ep-10});
  Value* p = b.CreateFAdd(lanes.f32(1.0), lanes.fma(b.CreateFMul(r, r), q, r));
  return {p, n, b.CreateSub(lanes.bits(shifted), lanes.bits(lanes.f32(magic)))};
}

Value* power_of_two(const Lanes& lanes, Value* n) {
  auto& b = lanes.builder();
  return lanes.from_bits(b.CreateShl(b.CreateAdd(n, lanes.i32(127)), 23));
}

// For x whose result is neither subnormal nor infinite.
Value* exp_in_range(const Lanes& lanes, Value* x) {
  Reduced e = exp_reduced(lanes, x);
  return lanes.builder().CreateFMul(e.p, power_of_two(lanes, e.n));
}

}  // namespace

Value* emit_exp_f32(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  Reduced e = exp_reduced(lanes, emit_at_least(lanes, emit_at_most(lanes, x, 89.5), -105.0));
  if (lanes.width() == 16 && lanes.has_wide_registers()) {
    // AVX-512 scales by any power of two in one instruction, with the single rounding of the two steps below.
    Value* rest[] = {e.p, e.whole, lanes.f32(0.0), b.getInt16(0xffff), b.getInt32(4)};
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {}, rest);
  }
  // In two steps, because 2^n alone may be out of range while the result, or a subnormal one, is not.
  Value* first = b.CreateAShr(e.n, 1);
  Value* scaled = b.CreateFMul(e.p, power_of_two(lanes, first));
  return b.CreateFMul(scaled, power_of_two(lanes, b.CreateSub(e.n, first)));
}

Value* emit_log_f32(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  constexpr int32_t root_half = 0x3f3504f3;
  Value* tiny = b.CreateFCmpOLT(x, lanes.f32(0x1p-126));
  Value* normal = lanes.select(tiny, b.CreateFMul(x, lanes.f32(0x1p24)), x);
  // x = 2^k m with m in [sqrt(1/2), sqrt(2)).
  Value* offset = b.CreateSub(lanes.bits(normal), lanes.i32(root_half));
  Value* m = lanes.from_bits(b.CreateAdd(b.CreateAnd(offset, lanes.i32(0x7fffff)), lanes.i32(root_half)));
  Value* k = b.CreateSIToFP(b.CreateAShr(offset, 23), lanes.f32());
  k = b.CreateFSub(k, lanes.select(tiny, lanes.f32(24.0), lanes.f32(0.0)));
  Value* f = b.CreateFSub(m, lanes.f32(1.0));
  // log(1 + f) = f - f^2/2 + f^3 p(f), relative error 2^-30.3.
  Value* p = emit_polynomial(lanes, f,
                             {0x1.555548p-2, -0x1.000006p-2, 0x1.99a478p-3, -0x1.555c4ep-3, 0x1.233b78p-3,
                              -0x1.fc26acp-4, 0x1.e6c03ep-4, -0x1.de1004p-4, 0x1.1484e8p-4});
  Value* square = b.CreateFMul(f, f);
  Value* rest = lanes.fma(b.CreateFMul(square, f), p, b.CreateFMul(square, lanes.f32(-0.5)));
  rest = lanes.fma(k, lanes.f32(0x1.7f7d1cp-20), rest);
  Value* result = lanes.fma(k, lanes.f32(0x1.62e4p-1), b.CreateFAdd(f, rest));
  const double infinity = std::numeric_limits<double>::infinity();
  result = lanes.select(b.CreateFCmpOLT(x, lanes.f32(infinity)), result, x);
  result = lanes.select(b.CreateFCmpOEQ(x, lanes.f32(0.0)), lanes.f32(-infinity), result);
  return lanes.select(b.CreateFCmpOLT(x, lanes.f32(0.0)), lanes.f32(std::numeric_limits<double>::quiet_NaN()), result);
}

Value* emit_tanh_f32(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  Value* a = lanes.absolute(x);
  // 1 - 2 / (e^2a + 1); at 10 it is 1.
  Value* e = exp_in_range(lanes, b.CreateFMul(emit_at_most(lanes, a, 10.0), lanes.f32(2.0)));
  Value* large = b.CreateFSub(lanes.f32(1.0), b.CreateFDiv(lanes.f32(2.0), b.CreateFAdd(e, lanes.f32(1.0))));
  // a + a^3 p(a^2) up to 0.625, relative error 2^-27.7.
  Value* z = b.CreateFMul(a, a);
  Value* p = emit_polynomial(lanes, z, {-0x1.555532p-2, 0x1.1106f2p-3, -0x1.b83490p-5, 0x1.51ee5ap-6, -0x1.74d03cp-8});
  Value* small = lanes.fma(b.CreateFMul(a, z), p, a);
  return lanes.copy_sign(lanes.select(b.CreateFCmpOLT(a, lanes.f32(0.625)), small, large), x);
}

Value* emit_logistic_f32(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  // With e = e^-|x| nothing overflows: 1 / (1 + e), and e / (1 + e) for negative x.
  Value* e = emit_exp_f32(lanes, b.CreateFNeg(lanes.absolute(x)));
  Value* one = lanes.f32(1.0);
  Value* numerator = lanes.select(b.CreateFCmpOLT(x, lanes.f32(0.0)), e, one);
  Value* denominator = b.CreateFAdd(one, e);
  Value* lost = b.CreateFSub(e, b.CreateFSub(denominator, one));
  // One correction for what the sum, the reciprocal and the product rounded away.
  Value* inverse = b.CreateFDiv(one, denominator);
  Value* quotient = b.CreateFMul(numerator, inverse);
  Value* minus = b.CreateFNeg(quotient);
  Value* residual = lanes.fma(minus, lost, lanes.fma(minus, denominator, numerator));
  return lanes.fma(residual, inverse, quotient);
}

Value* emit_erf_f32(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  Value* a = lanes.absolute(x);
  // a + a p(a^2) below 1, relative error 2^-29.3.
  Value* p = emit_polynomial(
      lanes, b.CreateFMul(a, a),
      {0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2ce0p-4, -0x1.b7f64ap-6, 0x1.53e8d6p-8, -0x1.a2fae2p-11, 0x1.465892p-14});
  Value* small = lanes.fma(a, p, a);
  // 1 - e^-q(a) from 1 to 4, where q = -log(erfc); absolute error 2^-35.3.
  Value* limited = emit_at_most(lanes, a, 4.0);
  Value* q = emit_polynomial(lanes, limited,
                             {-0x1.8a825p-13, 0x1.212c12p+0, 0x1.443558p-1, 0x1.bc1564p-4, -0x1.9d035cp-6,
                              0x1.138c8ep-8, -0x1.cec350p-12, 0x1.6bd1d2p-16});
  Value* large = b.CreateFSub(lanes.f32(1.0), exp_in_range(lanes, b.CreateFNeg(q)));
  return lanes.copy_sign(lanes.select(b.CreateFCmpOLT(a, lanes.f32(1.0)), small, large), x);
}

}  // namespace neuron::codegen
