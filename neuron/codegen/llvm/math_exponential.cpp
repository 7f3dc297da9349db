// exp, log and logistic in float32. Measured: exp 0.75 ulp (0.58 where the result is normal), log 0.79, logistic 2.29
// (docs/decisions/0016-logistic.md).
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include <array>
#include <bit>
#include <limits>

#include "neuron/codegen/llvm/math_functions.h"
#include "neuron/codegen/llvm/math_tables.h"

namespace neuron::codegen {

namespace {

using llvm::Value;

// The bits behind the exponent of a float near 2^(j / 8).
using Roots = std::array<uint32_t, 8>;
// Rounded, and what 2^(j / 8) is more than the rounded one, in parts of itself.
constexpr Roots kRoots = {0, 0x0b95c2, 0x1837f0, 0x25fed7, 0x3504f3, 0x45672a, 0x5744fd, 0x6ac0c7};
constexpr Table kLost = {0,
                         -0x1.9c0c22p-27,
                         0x1.125002p-25,
                         -0x1.0a3550p-25,
                         0x1.26055cp-26,
                         0x1.67a1cap-28,
                         -0x1.f9c304p-27,
                         -0x1.a5217cp-28};

// The roots as a table, less `eighth` for each eighth: what an exponent with eighths behind it adds by itself.
constexpr Table table_of(const Roots& roots, uint32_t eighth) {
  Table table{};
  for (uint32_t j = 0; j < 8; ++j) table[j] = std::bit_cast<float>(roots[j] - j * eighth);
  return table;
}

// x = n ln 2 + r with n a multiple of 1/8 and |r| <= ln 2 / 16.
struct Reduced {
  Value *r, *n;
  Value* bits;  // the integer 8 (n + bias) in the low twelve bits
};

Reduced reduce_exp(const Lanes& lanes, Value* x, int bias) {
  Value* magic = lanes.f32(kRoundingShift / 8 + bias);
  Value* shifted = lanes.fma(x, lanes.f32(0x1.715476p+0), magic);
  Value* n = lanes.builder().CreateFSub(shifted, magic);
  // The high part of ln 2 is a multiple of 2^-25 and n one of 2^-3: the first difference is exact.
  Value* r = lanes.fma(n, lanes.f32(-0x1.62e43p-1), x);
  return {lanes.fma(n, lanes.f32(0x1.05c61p-29), r), n, lanes.bits(shifted)};
}

// 2^n: the roots, with the exponent in its place.
Value* emit_power(const Lanes& lanes, const Reduced& e, const Table& roots, Value* exponent) {
  Value* root = lanes.bits(emit_one_of_8(lanes, roots, e.bits));
  return lanes.from_bits(lanes.builder().CreateAdd(root, exponent));
}

// e^x = 2^n (1 + t), where `power` is 2^n by kRoots.
Value* emit_exp_of(const Lanes& lanes, const Reduced& e, Value* power) {
  auto& b = lanes.builder();
  // e^r = 1 + r + r^2 q(r), relative error 2^-32.4.
  Value* q = emit_polynomial(lanes, e.r, {0x1p-1, 0x1.555c84p-3, 0x1.555a42p-5});
  Value* lost = b.CreateFAdd(e.r, emit_one_of_8(lanes, kLost, e.bits));
  return lanes.fma(power, lanes.fma(b.CreateFMul(e.r, e.r), q, lost), power);
}

// e^x for x <= 0 or NaN.
Value* emit_exp_of_nonpositive(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  // 2^64 times too large at first, as the power of two by itself may be subnormal. The eighths that are shifted into
  // the fraction have been taken off the table.
  static constexpr Table roots = table_of(kRoots, 1u << 20);
  Reduced e = reduce_exp(lanes, emit_at_least(lanes, x, -105.0), 127 + 64);
  Value* large = emit_exp_of(lanes, e, emit_power(lanes, e, roots, b.CreateShl(e.bits, 20)));
  return b.CreateFMul(large, lanes.f32(0x1p-64));
}

}  // namespace

Value* emit_exp_f32(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  using namespace llvm::PatternMatch;
  // Of -|x|, as functions take it that must not overflow: the same bits by a shorter way.
  if (match(x, m_FNeg(m_FAbs(m_Value())))) return emit_exp_of_nonpositive(lanes, x);
  static constexpr Table roots = table_of(kRoots, 0);
  Value* limited = emit_at_least(lanes, emit_at_most(lanes, x, 89.5), -105.0);
  if (lanes.width() == 16 && lanes.has_wide_registers()) {
    // AVX-512 scales by 2^floor(n) in one instruction, with the single rounding of the two steps below.
    Reduced e = reduce_exp(lanes, limited, 0);
    Value* scaled = emit_exp_of(lanes, e, emit_power(lanes, e, roots, lanes.i32(int64_t{127} << 23)));
    Value* rest[] = {scaled, e.n, lanes.f32(0.0), b.getInt16(0xffff), b.getInt32(4)};
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {}, rest);
  }
  // In two steps, because 2^n alone may be out of range while the result, or a subnormal one, is not. The halves of n +
  // 254, rounded down and up, are biased exponents.
  Reduced e = reduce_exp(lanes, limited, 2 * 127);
  Value* half = b.CreateLShr(e.bits, 4);
  Value* scaled = emit_exp_of(lanes, e, emit_power(lanes, e, roots, b.CreateShl(half, 23)));
  Value* other = b.CreateShl(b.CreateSub(b.CreateLShr(e.bits, 3), half), 23);
  return b.CreateFMul(scaled, lanes.from_bits(other));
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

Value* emit_logistic_f32(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  // 1 / (1 + e^-x), where e^-x = 2^n (1 + t). Roots of nine bits: 1 + 2^n is exact for n from -16 to 23, and 1 + 2^n +
  // 2^n t has one rounding. What they lack is added to r, and 0.3 * 2^-24 more against the 1 that is lost beyond.
  static constexpr Roots kShortRoots = {0, 0x0b8000, 0x180000, 0x260000, 0x350000, 0x458000, 0x578000, 0x6b0000};
  static constexpr Table roots = table_of(kShortRoots, 1u << 20);
  static constexpr Table lacking = {0x1.333334p-26, 0x1.3f5514p-11,  0x1.7895a6p-10, -0x1.ca4012p-16,
                                    0x1.c01f74p-14, -0x1.019724p-11, -0x1.188ecp-10, -0x1.13a192p-10};
  // All 2^-64 times too small, so that nothing overflows.
  constexpr int kScale = -64;
  Value* limited = emit_at_least(lanes, emit_at_most(lanes, x, 30.0), -105.0);
  Reduced e = reduce_exp(lanes, b.CreateFNeg(limited), 127 + kScale);
  Value* r = b.CreateFAdd(e.r, emit_one_of_8(lanes, lacking, e.bits));
  // e^r = 1 + r p(r), relative error 2^-25.1.
  Value* t = b.CreateFMul(r, emit_polynomial(lanes, r, {1.0, 0x1.0008d6p-1, 0x1.55486ap-3}));
  Value* power = emit_power(lanes, e, roots, b.CreateShl(e.bits, 20));
  Value* one = lanes.f32(0x1p-64);
  return b.CreateFDiv(one, lanes.fma(power, t, b.CreateFAdd(power, one)));
}

}  // namespace neuron::codegen
