// Exponential functions in float32. Measured: exp 0.96 ulp, log 0.79, tanh 1.28, logistic 1.41, erf 1.12.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>

#include "neuron/codegen/llvm/math_functions.h"

namespace neuron::codegen {

namespace {

using llvm::Value;

constexpr double kMagic = 12582912.0;  // 1.5 * 2^23: adding it rounds to an integer, held in the low bits

// e^x = p * 2^n with p near 1: x = n ln 2 + r. The high part of ln 2 has few enough bits for the first step to be
// exact.
struct Reduced {
  Value* p;
  Value* whole;  // n as a float
  Value* n;      // and as an i32
};

Reduced exp_reduced(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  Value* shifted = lanes.fma(x, lanes.f32(0x1.715476p+0), lanes.f32(kMagic));
  Value* n = b.CreateFSub(shifted, lanes.f32(kMagic));
  Value* r = lanes.fma(n, lanes.f32(-0x1.62e4p-1), x);
  r = lanes.fma(n, lanes.f32(-0x1.7f7d1cp-20), r);
  // e^r = 1 + r + r^2 q(r), relative error 2^-28.2.
  Value* q = emit_polynomial(lanes, r, {0x1.0p-1, 0x1.55549p-3, 0x1.5554bep-5, 0x1.123afep-7, 0x1.6d7c9ep-10});
  Value* p = b.CreateFAdd(lanes.f32(1.0), lanes.fma(b.CreateFMul(r, r), q, r));
  return {p, n, b.CreateSub(lanes.bits(shifted), lanes.bits(lanes.f32(kMagic)))};
}

Value* power_of_two(const Lanes& lanes, Value* n) {
  auto& b = lanes.builder();
  return lanes.from_bits(b.CreateShl(b.CreateAdd(n, lanes.i32(127)), 23));
}

// table[index % 16] of each lane.
Value* emit_one_of_16(const Lanes& lanes, const std::array<float, 16>& table, Value* index) {
  auto& b = lanes.builder();
  auto constant = [&](size_t first, size_t count) {
    return llvm::ConstantDataVector::get(b.getContext(), llvm::ArrayRef(table).slice(first, count));
  };
  if (lanes.width() == 16 && lanes.has_wide_registers())
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {constant(0, 16), index});
  if (lanes.width() % 8 == 0) {
    // Registers of eight lanes, which look at three bits: from both halves of the table.
    llvm::SmallVector<Value*, 4> parts;
    for (int first = 0; first < lanes.width(); first += 8) {
      llvm::SmallVector<int, 8> lanes_of_part(8);
      std::iota(lanes_of_part.begin(), lanes_of_part.end(), first);
      Value* part = b.CreateShuffleVector(index, lanes_of_part);
      Value* low = b.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {}, {constant(0, 8), part});
      Value* high = b.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {}, {constant(8, 8), part});
      Value* eight = llvm::ConstantInt::get(part->getType(), 8);
      parts.push_back(b.CreateSelect(b.CreateICmpEQ(b.CreateAnd(part, eight), eight), high, low));
    }
    return llvm::concatenateVectors(b, parts);
  }
  Value* data = llvm::ConstantDataArray::get(b.getContext(), llvm::ArrayRef(table));
  auto* memory = new llvm::GlobalVariable(*b.GetInsertBlock()->getModule(), data->getType(), true,
                                          llvm::GlobalValue::PrivateLinkage, llvm::cast<llvm::Constant>(data));
  return lanes.each(b.getFloatTy(), {index}, [&](llvm::ArrayRef<Value*> operands) -> Value* {
    return b.CreateLoad(b.getFloatTy(), b.CreateGEP(b.getFloatTy(), memory, b.CreateAnd(operands[0], b.getInt32(15))));
  });
}

using Table = std::array<float, 16>;

// The polynomial in t whose coefficients, the lowest first, are those of each lane's index.
Value* emit_polynomial_of_16(const Lanes& lanes, Value* t, std::span<const Table> coefficients, Value* index) {
  Value* p = nullptr;
  for (size_t i = coefficients.size(); i-- > 0;) {
    Value* term = emit_one_of_16(lanes, coefficients[i], index);
    p = p == nullptr ? term : lanes.fma(p, t, term);
  }
  return p;
}

// value + t p(t) of each lane's index.
Value* emit_piece(const Lanes& lanes, Value* t, const Table& value, std::span<const Table> coefficients, Value* index) {
  return lanes.fma(t, emit_polynomial_of_16(lanes, t, coefficients, index), emit_one_of_16(lanes, value, index));
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
  // Half an octave of |x| is a piece, from [0, 3/32) (place 6 of the tables) to [8, 9.5], from where on the result
  // is 1. With t = |x| - c: tanh(c) + t p(t). The centres c are floats whose tanh is one but for 2^-30. Fitted by
  // weighted least squares on Chebyshev nodes, a coefficient rounded at a time.
  static constexpr std::array<float, 16> centre = {
      0x1.3ffe4cp+1, 0x1.bfff5cp+1, 0x1.40019cp+2, 0x1.bfe368p+2, 0x1.154246p+3, 0x1.154246p+3, 0,
      0x1.bffecp-4,  0x1.40023ap-3, 0x1.bffda6p-3, 0x1.3fff52p-2, 0x1.c000cep-2, 0x1.3ffe2ep-1, 0x1.c0003ep-1,
      0x1.400036p+0, 0x1.bfff9p+0};
  static constexpr std::array<float, 16> value = {
      0x1.f92554p-1, 0x1.ff112ap-1, 0x1.fff41ap-1, 0x1.ffffc8p-1, 0x1.fffffep-1, 0x1.fffffep-1, 0,
      0x1.be379cp-4, 0x1.3d6df4p-3, 0x1.b8fac6p-3, 0x1.35f8ecp-2, 0x1.a5734ap-2, 0x1.1bf33cp-1, 0x1.68667p-1,
      0x1.b2525ap-1, 0x1.e1fbep-1};
  static constexpr std::array<float, 16> coefficients[] = {
      {0x1.b3bbc8p-6, 0x1.dd3efap-9, 0x1.7d5112p-13, 0x1.c0acb8p-19, 0x1.000c0cp-23, 0x1.000c0cp-23, 0x1p+0,
       0x1.f9ec74p-1, 0x1.f3b334p-1, 0x1.e84308p-1, 0x1.d115a4p-1, 0x1.a94574p-1, 0x1.62862ap-1, 0x1.024fdep-1,
       0x1.1f24a4p-2, 0x1.d22e14p-4},
      {-0x1.ade57ep-6, -0x1.dc5ed6p-9, -0x1.7cf1cep-13, -0x1.c03118p-19, -0x1.ffc3eap-24, -0x1.ffc3eap-24,
       -0x1.4ddef4p-27, -0x1.b8ec6p-4, -0x1.35cdd4p-3, -0x1.a488c2p-3, -0x1.1991bp-2, -0x1.5e0f5cp-2, -0x1.893b26p-2,
       -0x1.6ba7acp-2, -0x1.e7288ap-3, -0x1.b6d9ap-4},
      {0x1.16d73ap-6, 0x1.3c1f3ap-9, 0x1.f24524p-14, 0x1.253004p-19, 0x1.53e95cp-24, 0x1.53e95cp-24, -0x1.5554f4p-2,
       -0x1.451f66p-2, -0x1.351dd4p-2, -0x1.183a34p-2, -0x1.c19ec2p-3, -0x1.16e966p-3, -0x1.246d62p-6, 0x1.4f142ap-4,
       0x1.bbb444p-4, 0x1.01c1a2p-4},
      {-0x1.07d56p-7, -0x1.39f1bep-10, -0x1.f57c14p-15, -0x1.27985ap-20, -0x1.586dfep-25, -0x1.586dfep-25,
       -0x1.2935f2p-14, 0x1.33377p-4, 0x1.8f6172p-4, 0x1.04edf8p-3, 0x1.43eeb2p-3, 0x1.5c11e2p-3, 0x1.1a685ep-3,
       0x1.f20356p-5, -0x1.9c6fe8p-7, -0x1.8169fcp-6},
      {0x1.7a804ep-9, 0x1.011b9cp-11, 0x1.ddc622p-16, 0x1.19abfcp-21, 0x1.279036p-26, 0x1.279036p-26, 0x1.142c58p-3,
       -0x1.3ff418p-2, 0x1.a033eap-4, 0x1.4c38ap-4, 0x1.616162p-5, -0x1.8bd64cp-9, -0x1.bc07aep-5, -0x1.dffa4cp-5,
       -0x1.42a7e8p-6, 0x1.c88122p-9},
      {-0x1.6e77ep-11, -0x1.496716p-13, -0x1.35295cp-17, -0x1.6af2dp-23, -0x1.51a9c4p-28, -0x1.51a9c4p-28,
       -0x1.e4aba8p-7, -0x1.84dce2p+3, -0x1.e7e04p-3, -0x1.71f2bcp-4, -0x1.539324p-4, -0x1.b4f438p-5, -0x1.868c7ep-6,
       0x1.ab58aap-7, 0x1.ef1d02p-7, 0x1.11c9c6p-9},
  };
  Value* a = emit_at_most(lanes, lanes.absolute(x), 9.5);
  Value* which = b.CreateLShr(lanes.bits(emit_at_least(lanes, a, 0.0625)), 22);  // in the low bits
  Value* t = b.CreateFSub(a, emit_one_of_16(lanes, centre, which));
  return lanes.copy_sign(emit_piece(lanes, t, value, coefficients, which), x);
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
  // With the nearest multiple c of 17/64 and t = |x| - c: erf(c) + (t + t p(t)), where p is a polynomial of its own for
  // each c. Fitted by weighted least squares on Chebyshev nodes, a coefficient rounded at a time.
  constexpr double step = 17.0 / 64;
  static constexpr std::array<float, 16> value = {0,
                                                  0x1.2bd9dcp-2,
                                                  0x1.1855a6p-1,
                                                  0x1.7b0058p-1,
                                                  0x1.bbef1p-1,
                                                  0x1.e11a3ep-1,
                                                  0x1.f39bc2p-1,
                                                  0x1.fb9f6p-1,
                                                  0x1.fea422p-1,
                                                  0x1.ffa14ap-1,
                                                  0x1.ffe96ap-1,
                                                  0x1.fffb4ap-1,
                                                  0x1.ffff24p-1,
                                                  0x1.ffffdep-1,
                                                  0x1.fffffcp-1,
                                                  0x1p+0};
  static constexpr std::array<float, 16> lost = {0,
                                                 -0x1.e10fbp-27,
                                                 -0x1.61158p-32,
                                                 -0x1.cf67f2p-27,
                                                 -0x1.086778p-27,
                                                 0x1.19e9d8p-26,
                                                 0x1.0b90fap-27,
                                                 -0x1.718dd2p-26,
                                                 -0x1.ca69aep-27,
                                                 -0x1.6f56ccp-26,
                                                 0x1.e2812ap-27,
                                                 0x1.0858b8p-28,
                                                 0x1.b510eep-28,
                                                 -0x1.f4b142p-26,
                                                 -0x1.b6e78cp-26,
                                                 -0x1.2d2c08p-26};  // erf(c) - value
  static constexpr std::array<float, 16> coefficients[] = {
      {0x1.06eba8p-3, 0x1.a5f51ep-5, -0x1.3153eep-3, -0x1.9bafc2p-2, -0x1.452b72p-1, -0x1.9cfe34p-1, -0x1.d27034p-1,
       -0x1.edcae4p-1, -0x1.f9ae76p-1, -0x1.fe188cp-1, -0x1.ff807p-1, -0x1.ffe302p-1, -0x1.fffa48p-1, -0x1.ffff06p-1,
       -0x1.ffffdap-1, -0x1.fffffcp-1},
      {0x1.368b6ap-22, -0x1.1e0122p-2, -0x1.cee3f4p-2, -0x1.e7ef32p-2, -0x1.8d040cp-2, -0x1.06fd92p-2, -0x1.2275d8p-3,
       -0x1.0ed6aep-4, -0x1.ada76ep-6, -0x1.2350fap-7, -0x1.52ce1ep-9, -0x1.52be72p-11, -0x1.23aaa2p-13,
       -0x1.b11c5ep-16, -0x1.15955ep-18, -0x1.359cdap-21},
      {-0x1.812b6cp-2, -0x1.344e1ep-2, -0x1.fa34dep-4, 0x1.b8d616p-5, 0x1.395144p-3, 0x1.4db46p-3, 0x1.efbd1p-4,
       0x1.1f2d94p-4, 0x1.0e9c54p-5, 0x1.a7bc52p-7, 0x1.16e896p-8, 0x1.35a36cp-10, 0x1.29d84ap-12, 0x1.05331cp-14,
       0x1.ac2bfp-18, 0x1.820f88p-18},
      {0x1.3583b4p-12, 0x1.0e6f08p-3, 0x1.755b48p-3, 0x1.185328p-3, 0x1.8b03cap-5, -0x1.692c5ep-6, -0x1.8f98e6p-5,
       -0x1.60746p-5, -0x1.b09f48p-6, -0x1.9bd338p-7, -0x1.3d24d6p-8, -0x1.93b924p-10, -0x1.ae2b8p-12, -0x1.82c7c2p-14,
       -0x1.271e54p-16, -0x1.58864cp-19},
      {0x1.c656d8p-4, 0x1.3d53cap-4, 0x1.235ccep-12, -0x1.e576dap-5, -0x1.0d7458p-4, -0x1.2f3412p-5, -0x1.586a92p-8,
       0x1.646a0cp-7, 0x1.9d60d2p-7, 0x1.066e6ep-7, 0x1.e8e612p-9, 0x1.9f447cp-10, 0x1.4786ap-12, -0x1.bef744p-14,
       0x1.59c78ap-13, -0x1.59a888p-13},
  };
  Value* a = emit_at_most(lanes, lanes.absolute(x), 4.0);
  Value* shifted = lanes.fma(a, lanes.f32(1 / step), lanes.f32(kMagic));
  Value* which = lanes.bits(shifted);  // in the low bits
  Value* t = lanes.fma(b.CreateFSub(shifted, lanes.f32(kMagic)), lanes.f32(-step), a);
  Value* p = emit_polynomial_of_16(lanes, t, coefficients, which);
  Value* rest = lanes.fma(t, p, b.CreateFAdd(t, emit_one_of_16(lanes, lost, which)));
  return lanes.copy_sign(b.CreateFAdd(emit_one_of_16(lanes, value, which), rest), x);
}

Value* emit_gelu_derivative_f32(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  // 1/2 + h(x), where h is odd. With a centre c near the nearest multiple of 53/128 and t = |x| - c: h(c) + t p(t). The
  // centres are floats for which h(c) is almost one. Fitted by least squares on Chebyshev nodes, a coefficient rounded
  // at a time.
  static constexpr std::array<float, 16> centre = {0,
                                                   0x1.a801c6p-2,
                                                   0x1.a7fd04p-1,
                                                   0x1.3e014cp+0,
                                                   0x1.a7ffe6p+0,
                                                   0x1.0901aap+1,
                                                   0x1.3e0118p+1,
                                                   0x1.73022ep+1,
                                                   0x1.a80014p+1,
                                                   0x1.dcfe52p+1,
                                                   0x1.08fd12p+2,
                                                   0x1.237df6p+2,
                                                   0x1.3e043ep+2,
                                                   0x1.585a8ep+2,
                                                   0x1.726e04p+2,
                                                   0x1.8e1c3ep+2};
  static constexpr std::array<float, 16> value = {0,
                                                  0x1.3fb32ap-2,
                                                  0x1.0fb2f6p-1,
                                                  0x1.3e79a8p-1,
                                                  0x1.3cd354p-1,
                                                  0x1.27c2c4p-1,
                                                  0x1.13db92p-1,
                                                  0x1.07e98cp-1,
                                                  0x1.029104p-1,
                                                  0x1.00af4ep-1,
                                                  0x1.0026bcp-1,
                                                  0x1.00071cp-1,
                                                  0x1.000116p-1,
                                                  0x1.000024p-1,
                                                  0x1.000004p-1,
                                                  0x1p-1};
  static constexpr std::array<float, 16> coefficients[] = {
      {0x1.988454p-1, 0x1.56cfcp-1, 0x1.7d0bcep-2, 0x1.592c24p-4, -0x1.3417e6p-4, -0x1.b62b6ep-4, -0x1.376c0ep-4,
       -0x1.39816cp-5, -0x1.e5f486p-7, -0x1.2be34cp-8, -0x1.2bf39ap-10, -0x1.eac91ap-13, -0x1.4a43f8p-15,
       -0x1.751994p-18, -0x1.6684bap-21, -0x1.88e7eap-25},
      {-0x1.8df812p-20, -0x1.293482p-2, -0x1.8dde48p-2, -0x1.203286p-2, -0x1.af7efp-4, 0x1.c68af4p-7, 0x1.92d2ecp-5,
       0x1.3864ep-5, 0x1.38bb02p-6, 0x1.d0c0eap-8, 0x1.0d7a4p-9, 0x1.f3339ap-12, 0x1.7625cap-14, 0x1.d0407p-17,
       0x1.e2ed44p-20, 0x1.02cd88p-19},
      {-0x1.104ef2p-2, -0x1.619886p-3, 0x1.fe02bap-7, 0x1.1642a2p-3, 0x1.093abep-3, 0x1.e78c28p-5, 0x1.b9cb14p-9,
       -0x1.017fc2p-6, -0x1.ad9c5ap-7, -0x1.a2fa0ap-8, -0x1.25a28ep-9, -0x1.3b61ccp-11, -0x1.0b427p-13, -0x1.70b4dep-16,
       -0x1.a7c56cp-19, -0x1.eddf76p-20},
      {-0x1.ad743ep-12, 0x1.a1b452p-4, 0x1.b53be6p-4, 0x1.0a7732p-5, -0x1.0a074ep-5, -0x1.64550cp-5, -0x1.6ca84ep-6,
       -0x1.6abc9ep-9, 0x1.08972cp-8, 0x1.c7260ep-9, 0x1.a56372p-10, 0x1.116e48p-11, 0x1.0b54a8p-13, 0x1.a9c1fp-16,
       0x1.2b0daap-18, -0x1.5321d8p-14},
      {0x1.fe9b4p-5, 0x1.e159f2p-6, -0x1.72c2dap-6, -0x1.4731p-5, -0x1.31ef9cp-6, 0x1.66e3fep-8, 0x1.7e25d6p-7,
       0x1.9bac88p-8, 0x1.e18088p-11, -0x1.d155b8p-11, -0x1.88af98p-11, -0x1.52cbd2p-12, -0x1.932f8cp-14,
       -0x1.6b2cbcp-16, -0x1.ef084cp-19, 0x1.248484p-15},
      {-0x1.f5f8d2p-8, -0x1.58038cp-6, -0x1.0e64bp-6, 0x1.5ef556p-9, 0x1.7cf8f6p-7, 0x1.a1d364p-8, -0x1.957658p-11,
       -0x1.634eeep-9, -0x1.713952p-10, -0x1.82c666p-13, 0x1.7e65e2p-13, 0x1.1ed684p-13, 0x1.e8a6f8p-15, 0x1.e5139cp-18,
       -0x1.08ee56p-18, 0x1.1c168p-10},
  };
  Value* a = emit_at_most(lanes, lanes.absolute(x), 6.25);
  Value* which = lanes.bits(lanes.fma(a, lanes.f32(128.0 / 53), lanes.f32(kMagic)));  // in the low bits
  Value* t = b.CreateFSub(a, emit_one_of_16(lanes, centre, which));
  Value* odd = lanes.copy_sign(emit_piece(lanes, t, value, coefficients, which), x);
  // An infinite x gives NaN, as the formula does.
  return b.CreateFAdd(odd, lanes.fma(x, lanes.f32(0.0), lanes.f32(0.5)));
}

}  // namespace neuron::codegen
