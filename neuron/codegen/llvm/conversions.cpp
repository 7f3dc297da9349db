#include "neuron/codegen/llvm/conversions.h"

#include <llvm/IR/PatternMatch.h>

#include <bit>
#include <cmath>
#include <limits>

#include "neuron/base/error.h"

namespace neuron::codegen {

namespace {

using llvm::Value;

// Of a float32 that holds a bfloat16.
constexpr uint32_t kUpperHalf = 0xffff0000;

Value* widen_float8_e4m3fn(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  Value* wide = b.CreateZExt(x, lanes.i32());
  Value* magnitude = b.CreateAnd(wide, lanes.i32(0x7f));
  Value* sign = b.CreateShl(b.CreateAnd(wide, lanes.i32(0x80)), 24);
  Value* normal = b.CreateAdd(b.CreateShl(magnitude, 20), lanes.i32((127 - 7) << 23));
  Value* subnormal = lanes.bits(b.CreateFMul(b.CreateSIToFP(magnitude, lanes.f32()), lanes.f32(std::ldexp(1.0, -9))));
  Value* value = lanes.select(b.CreateICmpULT(magnitude, lanes.i32(8)), subnormal, normal);
  value = lanes.select(b.CreateICmpEQ(magnitude, lanes.i32(0x7f)), lanes.i32(0x7fc00000), value);
  return lanes.from_bits(b.CreateOr(value, sign));
}

// |x| rounded to a format with `mantissa` stored bits and exponent bias `bias`, as an integer of exponent and mantissa
// bits; values beyond the format give large integers. Normal results round in integer arithmetic; subnormal ones by an
// addition whose unit in the last place is the format's smallest number.
Value* round_magnitude(const Lanes& lanes, Value* magnitude_bits, int mantissa, int bias) {
  auto& b = lanes.builder();
  const int shift = 23 - mantissa;
  Value* rebased = b.CreateSub(magnitude_bits, lanes.i32((127 - bias) << 23));
  Value* odd = b.CreateAnd(b.CreateLShr(rebased, shift), lanes.i32(1));
  Value* normal = b.CreateLShr(b.CreateAdd(rebased, b.CreateAdd(odd, lanes.i32((1 << (shift - 1)) - 1))), shift);
  const float magic = std::ldexp(1.0f, 23 + 1 - bias - mantissa);
  Value* shifted = lanes.bits(b.CreateFAdd(lanes.from_bits(magnitude_bits), lanes.f32(magic)));
  Value* subnormal = b.CreateSub(shifted, lanes.i32(std::bit_cast<int32_t>(magic)));
  return lanes.select(b.CreateICmpULT(magnitude_bits, lanes.i32((127 - bias + 1) << 23)), subnormal, normal);
}

Value* narrow_float8(const Lanes& lanes, Value* x, DType to) {
  auto& b = lanes.builder();
  Value* all = lanes.bits(x);
  Value* magnitude = b.CreateAnd(all, lanes.i32(0x7fffffff));
  Value* sign = b.CreateAnd(b.CreateLShr(all, 24), lanes.i32(0x80));
  const bool e4m3 = to == DType::Float8E4M3FN;
  Value* rounded = round_magnitude(lanes, magnitude, e4m3 ? 3 : 2, e4m3 ? 7 : 15);
  Value* limit = lanes.i32(e4m3 ? 0x7e : 0x7c);  // the largest number where there is no infinity
  rounded = lanes.select(b.CreateICmpUGT(rounded, limit), limit, rounded);
  rounded = lanes.select(b.CreateICmpUGT(magnitude, lanes.i32(0x7f800000)), lanes.i32(0x7f), rounded);
  return b.CreateTrunc(b.CreateOr(rounded, sign), lanes.integer(8));
}

Value* narrow_bfloat16(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  Value* all = lanes.bits(x);
  Value* odd = b.CreateAnd(b.CreateLShr(all, 16), lanes.i32(1));
  Value* rounded = b.CreateAdd(all, b.CreateAdd(odd, lanes.i32(0x7fff)));
  rounded = lanes.select(lanes.is_nan(x), lanes.i32(0x7fc00000), rounded);
  return lanes.from_bits(b.CreateAnd(rounded, lanes.i32(kUpperHalf)));
}

// The upper halves of float32 lanes.
Value* upper_halves(const Lanes& lanes, Value* x) {
  using namespace llvm::PatternMatch;
  auto& b = lanes.builder();
  Value* all = lanes.bits(x);
  // Whether lower halves were cleared does not matter here.
  match(x, m_BitCast(m_And(m_Value(all), m_SpecificInt(llvm::APInt(32, kUpperHalf)))));
  if (lanes.width() > 1 && lanes.has_wide_registers()) {
    // The upper halves by one permutation, where shifting and truncating takes three instructions.
    llvm::SmallVector<int, 64> upper;
    for (int i = 0; i < lanes.width(); ++i) upper.push_back(2 * i + 1);
    auto* halves = llvm::FixedVectorType::get(b.getInt16Ty(), static_cast<unsigned>(2 * lanes.width()));
    return b.CreateShuffleVector(b.CreateBitCast(all, halves), upper);
  }
  return b.CreateTrunc(b.CreateLShr(all, 16), lanes.integer(16));
}

Value* integer_to_float(const Lanes& lanes, Value* x, DType from, llvm::Type* to) {
  auto& b = lanes.builder();
  return is_unsigned_integer(from) ? b.CreateUIToFP(x, to) : b.CreateSIToFP(x, to);
}

}  // namespace

Value* emit_from_memory(const Lanes& lanes, Value* x, DType dtype) {
  auto& b = lanes.builder();
  if (dtype == DType::Bool) return b.CreateICmpNE(x, lanes.integer(x, 0));
  if (dtype == DType::BFloat16) return lanes.from_bits(b.CreateShl(b.CreateZExt(x, lanes.i32()), 16));
  return x;
}

Value* emit_to_memory(const Lanes& lanes, Value* x, DType dtype) {
  if (dtype == DType::Bool) return lanes.builder().CreateZExt(x, lanes.integer(8));
  return dtype == DType::BFloat16 ? upper_halves(lanes, x) : x;
}

std::pair<Value*, Value*> emit_two_from_memory(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  const int width = lanes.width();
  Value* zero = llvm::Constant::getNullValue(x->getType());
  auto part = [&](int first) {
    llvm::SmallVector<int, 64> mask;
    for (int i = 0; i < width; ++i) mask.push_back(2 * width + i), mask.push_back(first + i);
    return lanes.from_bits(b.CreateBitCast(b.CreateShuffleVector(x, zero, mask), lanes.i32()));
  };
  return {part(0), part(width)};
}

Value* emit_widen(const Lanes& lanes, Value* x, DType from) {
  auto& b = lanes.builder();
  auto from_half = [&](Value* half_bits) {
    return b.CreateFPExt(b.CreateBitCast(half_bits, lanes.of(b.getHalfTy())), lanes.f32());
  };
  switch (from) {
    case DType::Float16:
      return from_half(x);
    // The upper byte of a float16 is a float8_e5m2.
    case DType::Float8E5M2:
      return from_half(b.CreateShl(b.CreateZExt(x, lanes.integer(16)), 8));
    case DType::Float8E4M3FN:
      return widen_float8_e4m3fn(lanes, x);
    default:
      return x;
  }
}

Value* emit_narrow(const Lanes& lanes, Value* x, DType to) {
  auto& b = lanes.builder();
  switch (to) {
    case DType::BFloat16:
      return narrow_bfloat16(lanes, x);
    case DType::Float16:
      return b.CreateBitCast(b.CreateFPTrunc(x, lanes.of(b.getHalfTy())), lanes.integer(16));
    case DType::Float8E5M2:
    case DType::Float8E4M3FN:
      return narrow_float8(lanes, x, to);
    default:
      return x;
  }
}

Value* emit_float_to_integer(const Lanes& lanes, Value* x, DType to) {
  auto& b = lanes.builder();
  // Unsigned values of the upper half are converted after subtracting it, by the same signed instruction on every
  // target.
  auto unsigned_of = [&](llvm::Type* type, double half, int64_t top) -> Value* {
    Value* large = b.CreateFCmpOGE(x, lanes.number(x, half));
    Value* reduced = b.CreateFSub(x, lanes.select(large, lanes.number(x, half), lanes.number(x, 0)));
    Value* converted = b.CreateFPToSI(reduced, type);
    return b.CreateXor(converted, lanes.select(large, lanes.integer(converted, top), lanes.integer(converted, 0)));
  };
  const bool from_double = x->getType()->getScalarSizeInBits() == 64;
  switch (to) {
    case DType::Int64:
      return b.CreateFPToSI(x, lanes.i64());
    case DType::UInt64:
      return unsigned_of(lanes.i64(), std::ldexp(1.0, 63), std::numeric_limits<int64_t>::min());
    case DType::Int32:
      return b.CreateFPToSI(x, lanes.i32());
    case DType::UInt32:
      return unsigned_of(lanes.i32(), std::ldexp(1.0, 31), std::numeric_limits<int32_t>::min());
    // By way of 64 bits; from float32 the low byte of anything beyond 31 bits is 0 either way.
    case DType::UInt8:
      return b.CreateTrunc(b.CreateFPToSI(x, from_double ? lanes.i64() : lanes.i32()), lanes.integer(8));
    default:
      return b.CreateTrunc(b.CreateFPToSI(x, lanes.i32()), lanes.of(to));
  }
}

Value* emit_convert(const Lanes& lanes, Value* x, DType from, DType to) {
  auto& b = lanes.builder();
  if (from == to) return x;
  if (is_reduced_float(from)) {
    x = emit_widen(lanes, x, from);
    from = DType::Float32;
    if (to == from) return x;
  }
  if (is_float(from)) {
    if (to == DType::Bool) return b.CreateFCmpUNE(x, lanes.number(x, 0));
    if (!is_float(to)) return emit_float_to_integer(lanes, x, to);
    if (to == DType::Float64) return b.CreateFPExt(x, lanes.f64());
    if (from == DType::Float64) x = b.CreateFPTrunc(x, lanes.f32());
    return emit_narrow(lanes, x, to);
  }
  if (to == DType::Bool) return b.CreateICmpNE(x, lanes.integer(x, 0));
  if (to == DType::Float64) {
    return from == DType::Bool ? b.CreateUIToFP(x, lanes.f64()) : integer_to_float(lanes, x, from, lanes.f64());
  }
  if (is_float(to)) {
    Value* wide = from == DType::Bool ? lanes.select(x, lanes.f32(1.0), lanes.f32(0.0))
                                      : integer_to_float(lanes, x, from, lanes.f32());
    // Integers of a byte are bfloat16 as they are.
    return to == DType::BFloat16 && dtype_size(from) == 1 ? wide : emit_narrow(lanes, wide, to);
  }
  return is_signed_integer(from) ? b.CreateSExtOrTrunc(x, lanes.of(to)) : b.CreateZExtOrTrunc(x, lanes.of(to));
}

}  // namespace neuron::codegen
