// exp, expm1 and log on double lanes to about 2^-43: what the rarer float32 functions are made of. In double no float32
// argument overflows or cancels, so each of them is its textbook formula.
#include <bit>
#include <cmath>

#include "neuron/codegen/llvm/math_functions.h"

namespace neuron::codegen {

using llvm::Value;

namespace {

constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52

struct Reduced {
  Value* expm1;  // of the remainder
  Value* scale;  // 2^n
};

Reduced reduce(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  x = emit_at_least(lanes, emit_at_most(lanes, x, 200.0), -200.0);
  Value* shifted = lanes.fma(x, lanes.f64(0x1.71547652b82fep+0), lanes.f64(kMagic));
  Value* n = b.CreateFSub(shifted, lanes.f64(kMagic));
  Value* r = lanes.fma(n, lanes.f64(-0x1.62e42fep-1), x);
  r = lanes.fma(n, lanes.f64(-0x1.f473de6af278fp-30), r);
  // e^r - 1 = r + r^2 q(r), relative error 2^-43.5.
  Value* q =
      emit_polynomial(lanes, r,
                      {0x1.fffffffff7a01p-2, 0x1.555555556768bp-3, 0x1.555555737a283p-5, 0x1.111110e0af2ecp-7,
                       0x1.6c164ef2475dap-10, 0x1.a01a7e2a9762cp-13, 0x1.a1597e9f370f6p-16, 0x1.71e94ca860f02p-19});
  Value* bits = b.CreateSub(lanes.bits(shifted), lanes.bits(lanes.f64(kMagic)));
  bits = b.CreateAdd(bits, lanes.integer(bits, 1023));
  return {lanes.fma(b.CreateFMul(r, r), q, r), lanes.from_bits(b.CreateShl(bits, 52))};
}

}  // namespace

Value* emit_exp_f64(const Lanes& lanes, Value* x) {
  Reduced e = reduce(lanes, x);
  return lanes.fma(e.scale, e.expm1, e.scale);
}

Value* emit_expm1_f64(const Lanes& lanes, Value* x) {
  Reduced e = reduce(lanes, x);
  return lanes.fma(e.scale, e.expm1, lanes.builder().CreateFSub(e.scale, lanes.f64(1.0)));
}

Value* emit_log_f64(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  const int64_t root_half = std::bit_cast<int64_t>(0x1.6a09e667f3bcdp-1);
  // x = 2^k m with m in [sqrt(1/2), sqrt(2)). The exponent is made positive, as AVX2 has no arithmetic 64-bit shift,
  // and becomes a double by being the low bits of 2^52.
  Value* bits = lanes.bits(x);
  Value* offset = b.CreateSub(bits, lanes.integer(bits, root_half));
  Value* m = lanes.from_bits(
      b.CreateAdd(b.CreateAnd(offset, lanes.integer(bits, (int64_t{1} << 52) - 1)), lanes.integer(bits, root_half)));
  Value* exponent = b.CreateLShr(b.CreateAdd(offset, lanes.integer(bits, int64_t{1024} << 52)), 52);
  exponent = lanes.from_bits(b.CreateOr(exponent, lanes.integer(bits, 0x4330000000000000)));
  Value* k = b.CreateFSub(exponent, lanes.f64(0x1p52 + 1024));
  // log m = 2 s + s^3 p(s^2), s = (m - 1) / (m + 1), relative error 2^-44.9.
  Value* one = lanes.f64(1.0);
  Value* s = b.CreateFDiv(b.CreateFSub(m, one), b.CreateFAdd(m, one));
  Value* z = b.CreateFMul(s, s);
  Value* p = emit_polynomial(
      lanes, z,
      {0x1.555555561e2e1p-1, 0x1.999996a98c707p-2, 0x1.249411cf1a677p-2, 0x1.c62b1fe7f2387p-3, 0x1.9114dde870d48p-3});
  Value* log_m = lanes.fma(b.CreateFMul(s, z), p, b.CreateFAdd(s, s));
  return lanes.fma(k, lanes.f64(0x1.62e42fefa39efp-1), log_m);
}

}  // namespace neuron::codegen
