// Activation functions. Parameters are inputs in schema order.
#include <numbers>

#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"
#include "neuron/lowering/operator_attributes.h"

namespace neuron::lowering {

namespace {

void relu(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(max(x.same_int(0), x));
}
// threshold(self, threshold, value).
void threshold(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(select(x <= rounded_operand(c, 1), rounded_operand(c, 2), x));
}
// leaky_relu(self, negative_slope); the same formula with a tensor of slopes.
void leaky_relu(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(select(x > 0.0, x, x * operand(c, 1)));
}

// gelu(self, approximate).
void gelu(Context& c) {
  Expression x = operand(c, 0);
  if (static_cast<Approximate>(c.attribute(0)) == Approximate::None) {
    Expression error = (x * (std::numbers::sqrt2 / 2)).function("erf");
    return c.set_output(x * 0.5 * (1.0 + error));
  }
  constexpr double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
  Expression inner = beta * (x + 0.044715 * (x * x * x));
  c.set_output(0.5 * x * (1.0 + tanh(inner)));
}

// x sigmoid(x) as one fraction; with e^-|x| nothing overflows.
void silu(Context& c) {
  Expression x = operand(c, 0);
  Expression e = exp(-abs(x));
  c.set_output(select(x < 0.0, x * e, x) / (1.0 + e));
}

// x tanh(log(1 + exp x)): with u = exp x the tanh is (u² + 2u) / (u² + 2u + 2), which is 1 to the last bit above 20.
void mish(Context& c) {
  Expression x = operand(c, 0);
  Expression u = exp(x);
  Expression n = u * (u + 2.0);
  c.set_output(select(x > 20.0, x, x * (n / (n + 2.0))));
}

// elu(self, alpha, scale, input_scale).
void elu(Context& c) {
  Expression x = operand(c, 0), alpha = operand(c, 1), scale = operand(c, 2), input_scale = operand(c, 3);
  c.set_output(select(x <= 0.0, expm1(x * input_scale) * (alpha * scale), x * scale));
}
// celu(self, alpha): alpha expm1(x / alpha) below 0.
void celu(Context& c) {
  Expression x = operand(c, 0), alpha = operand(c, 1);
  c.set_output(select(x <= 0.0, expm1(x / alpha) * alpha, x));
}
void selu(Context& c) {
  constexpr double alpha = 1.6732632423543772848170429916717;
  constexpr double scale = 1.0507009873554804934193349852946;
  Expression x = operand(c, 0);
  c.set_output(select(x <= 0.0, expm1(x) * (alpha * scale), x * scale));
}

// softplus(self, beta, threshold): the identity where beta x > threshold.
void softplus(Context& c) {
  Expression x = operand(c, 0), beta = operand(c, 1), threshold = operand(c, 2);
  Expression scaled = x * beta;
  c.set_output(select(scaled > threshold, x, log1p(exp(scaled)) / beta));
}

void hardsigmoid(Context& c) { c.set_output(min(max(operand(c, 0) + 3.0, 0.0), 6.0) / 6.0); }
void hardswish(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(x * min(max(x + 3.0, 0.0), 6.0) / 6.0);
}

// log_sigmoid_forward(self) -> (output, buffer); the buffer, exp(-|x|), is what the gradient reuses.
void log_sigmoid(Context& c) {
  Expression x = operand(c, 0);
  Expression buffer = exp(-abs(x));
  c.set_output(0, min(x, 0.0) - log1p(buffer));
  if (c.output_count() > 1) c.set_output(1, buffer);
}

// hardshrink, softshrink(self, lambd). NaN passes.
void hardshrink(Context& c) {
  Expression x = operand(c, 0), lambda = operand(c, 1);
  c.set_output(select(abs(x) <= lambda, 0.0, x));
}
void softshrink(Context& c) {
  Expression x = operand(c, 0), lambda = operand(c, 1);
  Expression below = select(x < -lambda, x + lambda, select(is_nan(x), x, 0.0));
  c.set_output(select(x > lambda, x - lambda, below));
}

// The two halves of the tensor are the inputs.
void glu(Context& c) { c.set_output(operand(c, 0) * sigmoid(operand(c, 1))); }

}  // namespace

std::span<const Rule> activation_rules() {
  static const Rule rules[] = {
      {"relu", relu},
      {"threshold", threshold},
      {"leaky_relu", leaky_relu},
      {"_prelu_kernel", leaky_relu},
      {"gelu", gelu},
      {"silu", silu},
      {"mish", mish},
      {"elu", elu},
      {"celu", celu},
      {"selu", selu},
      {"softplus", softplus},
      {"hardsigmoid", hardsigmoid},
      {"hardswish", hardswish},
      {"log_sigmoid_forward", log_sigmoid},
      {"hardshrink", hardshrink},
      {"softshrink", softshrink},
      {"glu", glu},
  };
  return rules;
}

}  // namespace neuron::lowering
