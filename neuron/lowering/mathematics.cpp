// Exponentials, logarithms, powers, trigonometric, hyperbolic and special functions.
#include <numbers>

#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"

namespace neuron::lowering {

namespace {

template <ir::Opcode opcode>
void unary(Context& c) {
  c.set_output(operand(c, 0).unary(opcode));
}

// pow(self, exponent).
void pow(Context& c) { c.set_output(power(operand(c, 0), operand(c, 1))); }
// The exponents that PyTorch computes without a power function.
void cube(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(x * x * x);
}
void reciprocal_square(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(1.0 / (x * x));
}

// logit(self, eps?): the argument is clamped to [eps, 1 - eps].
void logit(Context& c) {
  Expression x = operand(c, 0);
  if (c.attribute(0) != 0) {
    Expression eps = operand(c, 1);
    x = min(max(x, eps), 1.0 - eps);
  }
  c.set_output(log(x / (1.0 - x)));
}
// logit_backward(grad_output, self, eps?).
void logit_backward(Context& c) {
  Expression gradient = operand(c, 0), x = operand(c, 1);
  Expression inside = gradient / (x * (1.0 - x));
  if (c.attribute(0) == 0) {
    Expression outside = (x < 0.0) | (x > 1.0);
    return c.set_output(select(outside, kNaN, inside));
  }
  Expression eps = operand(c, 2);
  Expression clamped = (x < eps) | (x > 1.0 - eps);
  c.set_output(select(clamped, 0.0, inside));
}

void sinc(Context& c) {
  Expression x = operand(c, 0);
  Expression angle = x * std::numbers::pi;
  c.set_output(select(x == 0.0, 1.0, angle.unary(ir::Opcode::Sine) / angle));
}

// x * f(y), and 0 where x is 0 unless y is NaN.
void xlogy(Context& c) {
  Expression x = operand(c, 0), y = operand(c, 1);
  c.set_output(select(is_nan(y), kNaN, select(x == 0.0, 0.0, x * log(y))));
}
void xlog1py(Context& c) {
  Expression x = operand(c, 0), y = operand(c, 1);
  c.set_output(select(is_nan(y), kNaN, select(x == 0.0, 0.0, x * log1p(y))));
}

// -x log(x): 0 at zeros of either sign, -inf below.
void entropy(Context& c) {
  Expression x = operand(c, 0);
  Expression inside = select(x > 0.0, -(x * log(x)), abs(x));
  c.set_output(select(x < 0.0, -kInfinity, inside));
}

// Of two equal infinities: that infinity.
void logaddexp(Context& c) {
  Expression x = operand(c, 0), y = operand(c, 1);
  Expression equal_infinities = (x == y) & (abs(x) == kInfinity);
  c.set_output(select(equal_infinities, x, max(x, y) + log1p(exp(-abs(x - y)))));
}
void logaddexp2(Context& c) {
  Expression x = operand(c, 0), y = operand(c, 1);
  Expression equal_infinities = (x == y) & (abs(x) == kInfinity);
  Expression rest = log1p((-abs(x - y)).function("exp2")) * std::numbers::log2e;
  c.set_output(select(equal_infinities, x, max(x, y) + rest));
}

void degrees(Context& c) { c.set_output(operand(c, 0) * (180.0 / std::numbers::pi)); }
void radians(Context& c) { c.set_output(operand(c, 0) * (std::numbers::pi / 180.0)); }

#define NEURON_FUNCTION_RULE(name)                                       \
  Rule {                                                                 \
    name, [](Context& c) { c.set_output(operand(c, 0).function(name)); } \
  }

}  // namespace

std::span<const Rule> mathematics_rules() {
  using ir::Opcode;
  static const Rule rules[] = {
      {"pow", pow},
      {"cube", cube},
      {"reciprocal_square", reciprocal_square},
      {"exp", unary<Opcode::Exponential>},
      {"expm1", unary<Opcode::ExponentialMinusOne>},
      {"log", unary<Opcode::Log>},
      {"log1p", unary<Opcode::LogPlusOne>},
      {"sqrt", unary<Opcode::Sqrt>},
      {"rsqrt", unary<Opcode::Rsqrt>},
      {"sin", unary<Opcode::Sine>},
      {"cos", unary<Opcode::Cosine>},
      {"tan", unary<Opcode::Tan>},
      {"tanh", unary<Opcode::Tanh>},
      {"sigmoid", unary<Opcode::Logistic>},
      {"atan2", [](Context& c) { c.set_output(operand(c, 0).binary(Opcode::Atan2, operand(c, 1))); }},
      NEURON_FUNCTION_RULE("exp2"),
      NEURON_FUNCTION_RULE("log2"),
      NEURON_FUNCTION_RULE("log10"),
      NEURON_FUNCTION_RULE("asin"),
      NEURON_FUNCTION_RULE("acos"),
      NEURON_FUNCTION_RULE("atan"),
      NEURON_FUNCTION_RULE("sinh"),
      NEURON_FUNCTION_RULE("cosh"),
      NEURON_FUNCTION_RULE("asinh"),
      NEURON_FUNCTION_RULE("acosh"),
      NEURON_FUNCTION_RULE("atanh"),
      NEURON_FUNCTION_RULE("erf"),
      NEURON_FUNCTION_RULE("erfc"),
      NEURON_FUNCTION_RULE("erfinv"),
      NEURON_FUNCTION_RULE("lgamma"),
      NEURON_FUNCTION_RULE("digamma"),
      {"logit", logit},
      {"logit_backward", logit_backward},
      {"sinc", sinc},
      {"xlogy", xlogy},
      {"special_xlog1py", xlog1py},
      {"special_entr", entropy},
      {"logaddexp", logaddexp},
      {"logaddexp2", logaddexp2},
      {"deg2rad", radians},
      {"rad2deg", degrees},
  };
  return rules;
}

}  // namespace neuron::lowering
