// Arithmetic on numbers: add … clamp, lerp, rounding.
#include <cmath>
#include <numbers>

#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"
#include "neuron/lowering/operator_attributes.h"

namespace neuron::lowering {

namespace {

// add(self, other, alpha). On truth values: or.
void add(Context& c) {
  Expression x = operand(c, 0), y = operand(c, 1), alpha = operand(c, 2);
  c.set_output(c.common() == DType::Bool ? x | (y & alpha) : x + alpha * y);
}
void add_unscaled(Context& c) {
  Expression x = operand(c, 0), y = operand(c, 1);
  c.set_output(c.common() == DType::Bool ? x | y : x + y);
}
void subtract(Context& c) { c.set_output(operand(c, 0) - operand(c, 2) * operand(c, 1)); }
void subtract_unscaled(Context& c) { c.set_output(operand(c, 0) - operand(c, 1)); }
void reverse_subtract(Context& c) { c.set_output(operand(c, 1) - operand(c, 2) * operand(c, 0)); }
void multiply(Context& c) {
  Expression x = operand(c, 0), y = operand(c, 1);
  c.set_output(c.common() == DType::Bool ? x & y : x * y);
}

// Division of integers by zero gives -1 with remainder x, as the IR defines it: CPU PyTorch raises, a device that runs
// later cannot.
Expression floor_divide(Expression x, Expression y) {
  if (is_float(x.dtype())) {
    // Through the remainder: the quotient of the rounded division may lie on the wrong side of an integer.
    Expression rest = remainder(x, y);
    Expression exact = (x - rest) / y;
    Expression borrow = (rest != 0.0) & ((y < 0.0) ^ (rest < 0.0));
    Expression quotient = select(borrow, exact - 1.0, exact);
    Expression floored = floor(quotient);
    Expression nearest = select(quotient - floored > 0.5, floored + 1.0, floored);
    Expression ratio = x / y;
    Expression signed_zero = select(sign_bit(ratio), -0.0, x.same(0.0));
    return select(y == 0.0, ratio, select(quotient == 0.0, signed_zero, nearest));
  }
  Expression quotient = x / y;
  if (!is_signed_integer(x.dtype())) return quotient;
  Expression rest = remainder(x, y);
  Expression zero = x.same_int(0);
  Expression borrow = (rest != zero) & ((rest < zero) ^ (y < zero));
  return select(borrow, quotient - x.same_int(1), quotient);
}

// div(self, other, rounding_mode): without a mode the common dtype is a float.
void divide(Context& c) {
  Expression x = operand(c, 0), y = operand(c, 1);
  switch (static_cast<RoundingMode>(c.attribute(0))) {
    case RoundingMode::None:
      return c.set_output(x / y);
    case RoundingMode::Trunc:
      return c.set_output(is_float(x.dtype()) ? trunc(x / y) : x / y);
    case RoundingMode::Floor:
      return c.set_output(floor_divide(x, y));
  }
}
void floor_divide_rule(Context& c) { c.set_output(floor_divide(operand(c, 0), operand(c, 1))); }

// Sign of the divisor.
void floored_remainder(Context& c) {
  Expression x = operand(c, 0), y = operand(c, 1);
  Expression rest = remainder(x, y);
  if (is_unsigned_integer(x.dtype())) return c.set_output(rest);
  Expression zero = x.same_int(0);
  Expression borrow = (rest != zero) & ((rest < zero) ^ (y < zero));
  c.set_output(select(borrow, rest + y, rest));
}

// Sign of the dividend.
void truncated_remainder(Context& c) { c.set_output(remainder(operand(c, 0), operand(c, 1))); }

void absolute(Context& c) {
  Expression x = operand(c, 0);
  bool plain = x.dtype() == DType::Bool || is_unsigned_integer(x.dtype());
  c.set_output(plain ? x : abs(x));
}

// NaN has sign 0, as has -0.
void sign(Context& c) {
  Expression x = operand(c, 0);
  if (x.dtype() == DType::Bool) return c.set_output(x);
  Expression zero = x.same_int(0);
  Expression positive = select(zero < x, x.same_int(1), zero);
  if (is_unsigned_integer(x.dtype())) return c.set_output(positive);
  c.set_output(select(x < zero, x.same_int(-1), positive));
}

// Of equal operands (zeros of either sign) the IR takes the second, PyTorch the first.
void maximum(Context& c) { c.set_output(max(rounded_operand(c, 1), rounded_operand(c, 0))); }
void minimum(Context& c) { c.set_output(min(rounded_operand(c, 1), rounded_operand(c, 0))); }

// fmax and fmin prefer a number to a NaN.
Expression prefer_number(Expression x, Expression y, Expression extreme) {
  if (!is_float(x.dtype())) return extreme;
  return select(is_nan(x), y, select(is_nan(y), x, extreme));
}
void fmax(Context& c) {
  Expression x = rounded_operand(c, 0), y = rounded_operand(c, 1);
  c.set_output(prefer_number(x, y, max(y, x)));
}
void fmin(Context& c) {
  Expression x = rounded_operand(c, 0), y = rounded_operand(c, 1);
  c.set_output(prefer_number(x, y, min(y, x)));
}

// clamp(self, min?, max?): a NaN anywhere gives NaN; max wins where the bounds cross.
void clamp(Context& c) {
  Expression x = operand(c, 0);
  int next = 1;
  if (c.attribute(0) != 0) x = max(x, rounded_operand(c, next++));
  if (c.attribute(1) != 0) x = min(x, rounded_operand(c, next));
  c.set_output(x);
}
void clamp_below(Context& c) { c.set_output(max(operand(c, 0), rounded_operand(c, 1))); }
void clamp_above(Context& c) { c.set_output(min(operand(c, 0), rounded_operand(c, 1))); }
void hardtanh(Context& c) { c.set_output(min(max(operand(c, 0), rounded_operand(c, 1)), rounded_operand(c, 2))); }

// lerp(self, end, weight): from the nearer end, so that weight 1 gives `end` exactly.
void lerp(Context& c) {
  Expression x = operand(c, 0), end = operand(c, 1), weight = operand(c, 2);
  Expression near_start = abs(weight) < 0.5;
  Expression difference = end - x;
  Expression factor = select(near_start, weight, weight - 1.0);
  c.set_output(select(near_start, x, end) + factor * difference);
}

// addcmul, addcdiv(self, tensor1, tensor2, value).
void addcmul(Context& c) { c.set_output(operand(c, 0) + operand(c, 3) * operand(c, 1) * operand(c, 2)); }
void addcdiv(Context& c) { c.set_output(operand(c, 0) + operand(c, 3) * operand(c, 1) / operand(c, 2)); }

// Rounding of an integer is the integer.
template <Expression (*function)(Expression)>
void rounding(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(is_float(x.dtype()) ? function(x) : x);
}

// round(self, decimals): scaled by a power of ten, rounded to even, scaled back.
void round_decimals(Context& c) {
  Expression x = operand(c, 0);
  int64_t decimals = c.attribute(0);
  if (!is_float(x.dtype())) return c.set_output(x);
  if (decimals == 0) return c.set_output(round(x));
  double scale = 1;
  for (int64_t i = 0; i < (decimals < 0 ? -decimals : decimals) && scale < 1e308; ++i) scale *= 10;
  c.set_output(decimals < 0 ? round(x / scale) * scale : round(x * scale) / scale);
}
void fraction(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(x - trunc(x));
}

void copysign(Context& c) {
  Expression magnitude = abs(operand(c, 0)), sign = operand(c, 1);
  c.set_output(select(sign_bit(sign), -magnitude, magnitude));
}

// In float64 for float32: no overflow on the way, one rounding. In float64: scaled by the larger leg.
void hypot(Context& c) {
  Expression x = abs(operand(c, 0)), y = abs(operand(c, 1));
  if (x.dtype() == DType::Float32) {
    Expression a = x.convert(DType::Float64), b = y.convert(DType::Float64);
    Expression infinite = (x == kInfinity) | (y == kInfinity);
    Expression length = sqrt(a * a + b * b).convert(DType::Float32);
    return c.set_output(select(infinite, kInfinity, length));
  }
  Expression larger = max(x, y), smaller = min(x, y);
  Expression ratio = smaller / larger;
  Expression length = larger * sqrt(1.0 + ratio * ratio);
  Expression infinite = (x == kInfinity) | (y == kInfinity);
  c.set_output(select(infinite, kInfinity, select(larger == 0.0, larger, length)));
}

// The bits of a float are ordered like its magnitude: the neighbour is one bit pattern away.
void nextafter(Context& c) {
  Expression x{c, c.input(0, c.common())}, y{c, c.input(1, c.common())};
  DType bits_dtype = same_width_integer(c.common());
  Expression bits = x.bitcast(bits_dtype);
  Expression one = bits.same_int(1);
  Expression wide_x = x.convert(c.compute()), wide_y = y.convert(c.compute());
  Expression away = (wide_x < wide_y) ^ sign_bit(x);
  Expression stepped = select(away, bits + one, bits - one).bitcast(c.common());
  Expression lowest_bits = one.bitcast(c.common());
  Expression from_zero = select(sign_bit(y), -lowest_bits, lowest_bits);
  Expression moved = select(wide_x == 0.0, from_zero, stepped);
  Expression result = select(wide_x == wide_y, y, moved);
  c.set_exact_output(0, select(is_nan(wide_x) | is_nan(wide_y), kNaN, result));
}

// frexp(self) -> (mantissa, exponent). A number is mantissa 2^exponent with a mantissa in [1/2, 1); zeros, infinities
// and NaN are their own mantissa, with exponent 0.
void split_exponent(Context& c) {
  Expression x = operand(c, 0);
  const bool is_double = x.dtype() == DType::Float64;
  const int fraction_bits = is_double ? 52 : 23, bias = is_double ? 1022 : 126;  // of 1/2
  // Subnormal numbers are made normal.
  Expression small = abs(x) < (is_double ? 0x1p-1022 : 0x1p-126);
  Expression bits = select(small, x * std::ldexp(1.0, fraction_bits), x).bitcast(same_width_integer(x.dtype()));
  const int64_t field = static_cast<int64_t>(is_double ? 0x7ff : 0xff) << fraction_bits;
  Expression exponent = (bits & bits.same_int(field))
                            .binary(ir::Opcode::ShiftRightLogical, bits.same_int(fraction_bits))
                            .convert(DType::Int32);
  exponent = exponent - select(small, bias + fraction_bits, exponent.same_int(bias));
  Expression half = bits.same_int(static_cast<int64_t>(bias) << fraction_bits);
  Expression mantissa = ((bits & bits.same_int(~field)) | half).bitcast(x.dtype());
  Expression whole = (x == 0.0) | (abs(x) == kInfinity) | is_nan(x);
  c.set_output(0, select(whole, x, mantissa));
  c.set_output(1, select(whole, 0.0, exponent));
}

// The argument of a real number as a complex one.
void angle(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(select(is_nan(x), x, select(x < 0.0, std::numbers::pi, x.same(0.0))));
}

void square(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(x * x);
}

}  // namespace

std::span<const Rule> arithmetic_rules() {
  static const Rule rules[] = {
      {"add", add},
      {"add_unscaled", add_unscaled},  // alpha is 1
      {"sub", subtract},
      {"sub_unscaled", subtract_unscaled},  // alpha is 1
      {"rsub", reverse_subtract},
      {"rsub_unscaled", [](Context& c) { c.set_output(operand(c, 1) - operand(c, 0)); }},
      {"mul", multiply},
      {"div", divide},
      {"floor_divide", floor_divide_rule},
      {"remainder", floored_remainder},
      {"fmod", truncated_remainder},
      {"neg", [](Context& c) { c.set_output(-operand(c, 0)); }},
      {"abs", absolute},
      {"sign", sign},
      {"sgn", sign},
      {"reciprocal", [](Context& c) { c.set_output(1.0 / operand(c, 0)); }},
      {"square", square},
      {"maximum", maximum},
      {"minimum", minimum},
      {"fmax", fmax},
      {"fmin", fmin},
      {"clamp", clamp},
      {"clamp_min", clamp_below},
      {"clamp_max", clamp_above},
      {"hardtanh", hardtanh},
      {"lerp", lerp},
      {"addcmul", addcmul},
      {"addcdiv", addcdiv},
      {"floor", rounding<floor>},
      {"ceil", rounding<ceil>},
      {"trunc", rounding<trunc>},
      {"round", round_decimals},
      {"frac", fraction},
      {"frexp", split_exponent},
      {"angle", angle},
      {"copysign", copysign},
      {"hypot", hypot},
      {"nextafter", nextafter},
  };
  return rules;
}

}  // namespace neuron::lowering
