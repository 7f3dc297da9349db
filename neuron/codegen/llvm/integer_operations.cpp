#include "neuron/codegen/llvm/integer_operations.h"

#include "neuron/codegen/llvm/conversions.h"

namespace neuron::codegen {

namespace {

using ir::Opcode;
using llvm::Value;

// Quotient of integers of up to 32 bits in floating point: a float (8 and 16 bits) or double (32 bits) has more than
// twice the bits needed for the truncated, correctly rounded quotient to be exact.
Value* divide_in_floating_point(const Lanes& lanes, DType dtype, Value* x, Value* y) {
  auto& b = lanes.builder();
  llvm::Type* wide = dtype_size(dtype) < 4 ? lanes.f32() : lanes.f64();
  const bool is_unsigned = is_unsigned_integer(dtype);
  auto widen = [&](Value* v) { return is_unsigned ? b.CreateUIToFP(v, wide) : b.CreateSIToFP(v, wide); };
  Value* quotient = b.CreateFDiv(widen(x), widen(y));
  if (dtype_size(dtype) < 4) return b.CreateTrunc(b.CreateFPToSI(quotient, lanes.i32()), lanes.of(dtype));
  return emit_float_to_integer(lanes, quotient, dtype);
}

Value* divide_64(const Lanes& lanes, DType dtype, Value* x, Value* y) {
  auto& b = lanes.builder();
  Value* zero = b.CreateICmpEQ(y, lanes.integer(y, 0));
  Value* one = lanes.integer(y, 1);
  if (is_unsigned_integer(dtype)) return b.CreateUDiv(x, lanes.select(zero, one, y));
  Value* minus = b.CreateICmpEQ(y, lanes.integer(y, -1));
  Value* quotient = b.CreateSDiv(x, lanes.select(b.CreateOr(zero, minus), one, y));
  return lanes.select(minus, b.CreateNeg(x), quotient);
}

}  // namespace

Value* emit_integer_divide(const Lanes& lanes, DType dtype, Value* x, Value* y) {
  auto& b = lanes.builder();
  Value* quotient =
      dtype_size(dtype) == 8 ? divide_64(lanes, dtype, x, y) : divide_in_floating_point(lanes, dtype, x, y);
  return lanes.select(b.CreateICmpEQ(y, lanes.integer(y, 0)), lanes.integer(y, -1), quotient);
}

Value* emit_integer_remainder(const Lanes& lanes, DType dtype, Value* x, Value* y) {
  auto& b = lanes.builder();
  // A quotient by zero is multiplied by zero: the dividend is left.
  return b.CreateSub(x, b.CreateMul(emit_integer_divide(lanes, dtype, x, y), y));
}

Value* emit_integer_power(const Lanes& lanes, DType dtype, Value* x, Value* y) {
  auto& b = lanes.builder();
  const bool is_unsigned = is_unsigned_integer(dtype);
  auto widen = [&](Value* v) { return is_unsigned ? b.CreateZExt(v, lanes.i64()) : b.CreateSExt(v, lanes.i64()); };
  Value* power = lanes.call_each(is_unsigned ? "neuron_power_unsigned" : "neuron_power_signed", b.getInt64Ty(),
                                 {widen(x), widen(y)});
  return b.CreateTrunc(power, lanes.of(dtype));
}

Value* emit_shift(const Lanes& lanes, Opcode opcode, Value* x, Value* y) {
  auto& b = lanes.builder();
  const int bits = static_cast<int>(x->getType()->getScalarSizeInBits());
  Value* within = b.CreateICmpULT(y, lanes.integer(y, bits));
  Value* amount = lanes.select(within, y, lanes.integer(y, bits - 1));
  if (opcode == Opcode::ShiftRightArithmetic) return b.CreateAShr(x, amount);
  Value* shifted = opcode == Opcode::ShiftLeft ? b.CreateShl(x, amount) : b.CreateLShr(x, amount);
  return lanes.select(within, shifted, lanes.integer(x, 0));
}

}  // namespace neuron::codegen
