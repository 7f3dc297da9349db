// Gradients of activation functions. Which side of a kink a value on it belongs to follows PyTorch.
#include <numbers>

#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"
#include "neuron/lowering/operator_attributes.h"

namespace neuron::lowering {

namespace {

// threshold_backward(grad_output, self, threshold).
void threshold_backward(Context& c) {
  c.set_output(select(rounded_operand(c, 1) <= rounded_operand(c, 2), 0.0, operand(c, 0)));
}

// leaky_relu_backward(grad_output, self, negative_slope).
void leaky_relu_backward(Context& c) {
  Expression gradient = operand(c, 0);
  c.set_output(select(operand(c, 1) > 0.0, gradient, gradient * operand(c, 2)));
}
// _prelu_kernel_backward(grad_output, self, weight) -> (gradient of self, gradient of weight before its sum).
void prelu_backward(Context& c) {
  Expression gradient = operand(c, 0), x = operand(c, 1);
  Expression positive = x > 0.0;
  c.set_output(0, select(positive, gradient, operand(c, 2) * gradient));
  c.set_output(1, select(positive, 0.0, x * gradient));
}

// gelu_backward(grad_output, self, approximate).
void gelu_backward(Context& c) {
  Expression gradient = operand(c, 0), x = operand(c, 1);
  if (static_cast<Approximate>(c.attribute(0)) == Approximate::None) {
    return c.set_output(gradient * x.function("gelu_derivative"));
  }
  constexpr double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kappa = 0.044715;
  Expression square = x * x;
  Expression t = tanh(beta * (x + kappa * (square * x)));
  Expression outer = 0.5 * (1.0 + t);
  Expression inner = 0.5 * x * (1.0 - t * t) * (beta * (1.0 + 3 * kappa * square));
  c.set_output(gradient * (outer + inner));
}

// silu_backward, mish_backward(grad_output, self).
void silu_backward(Context& c) {
  Expression x = operand(c, 1);
  Expression s = sigmoid(x);
  c.set_output(operand(c, 0) * s * (1.0 + x * (1.0 - s)));
}
void mish_backward(Context& c) {
  Expression gradient = operand(c, 0), x = operand(c, 1);
  Expression u = exp(x);
  Expression n = u * (u + 2.0);
  Expression t = n / (n + 2.0);
  Expression slope = t + x * (u / (1.0 + u)) * (1.0 - t * t);
  c.set_output(select(x > 20.0, gradient, gradient * slope));
}

// sigmoid_backward, tanh_backward(grad_output, output).
void sigmoid_backward(Context& c) {
  Expression y = operand(c, 1);
  c.set_output(operand(c, 0) * (1.0 - y) * y);
}
void tanh_backward(Context& c) {
  Expression y = operand(c, 1);
  c.set_output(operand(c, 0) * (1.0 - y * y));
}

// elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result).
void elu_backward(Context& c) {
  Expression gradient = operand(c, 0), alpha = operand(c, 1), scale = operand(c, 2), input_scale = operand(c, 3);
  Expression x = operand(c, 4);
  Expression negative = alpha * scale;
  bool is_result = c.attribute(0) != 0;
  Expression slope = is_result ? input_scale * (x + negative) : input_scale * negative * exp(x * input_scale);
  c.set_output(select(x <= 0.0, gradient * slope, gradient * scale));
}

// softplus_backward(grad_output, self, beta, threshold).
void softplus_backward(Context& c) {
  Expression gradient = operand(c, 0);
  Expression scaled = operand(c, 1) * operand(c, 2);
  c.set_output(select(scaled > operand(c, 3), gradient, gradient * sigmoid(scaled)));
}

// hardtanh_backward(grad_output, self, min_val, max_val).
void hardtanh_backward(Context& c) {
  Expression x = operand(c, 1);
  Expression clamped = (x <= rounded_operand(c, 2)) | (x >= rounded_operand(c, 3));
  c.set_output(select(clamped, 0.0, operand(c, 0)));
}
// hardsigmoid_backward, hardswish_backward(grad_output, self).
void hardsigmoid_backward(Context& c) {
  Expression x = operand(c, 1);
  c.set_output(select((x > -3.0) & (x < 3.0), operand(c, 0) / 6.0, 0.0));
}
void hardswish_backward(Context& c) {
  Expression gradient = operand(c, 0), x = operand(c, 1);
  Expression inside = select(x < 3.0, gradient * (x / 3.0 + 0.5), gradient);
  c.set_output(select(x <= -3.0, 0.0, inside));
}

// log_sigmoid_backward(grad_output, self, buffer): 1 - sigmoid(x), from exp(-|x|) for both signs.
void log_sigmoid_backward(Context& c) {
  Expression gradient = operand(c, 0), x = operand(c, 1);
  Expression z = exp(-abs(x));
  Expression share = z / (1.0 + z);
  c.set_output(gradient * select(x < 0.0, 1.0 - share, share));
}

// hardshrink_backward, softshrink_backward(grad_output, self, lambd).
void shrink_backward(Context& c) {
  Expression x = operand(c, 1), lambda = operand(c, 2);
  c.set_output(select(abs(x) <= lambda, 0.0, operand(c, 0)));
}

// glu_backward(grad_output, a, b) -> (gradient of a, gradient of b); a and b are the halves of the input.
void glu_backward(Context& c) {
  Expression gradient = operand(c, 0);
  Expression s = sigmoid(operand(c, 2));
  Expression first = gradient * s;
  c.set_output(0, first);
  c.set_output(1, first * (1.0 - s) * operand(c, 1));
}

}  // namespace

std::span<const Rule> activation_gradient_rules() {
  static const Rule rules[] = {
      {"threshold_backward", threshold_backward},
      {"leaky_relu_backward", leaky_relu_backward},
      {"_prelu_kernel_backward", prelu_backward},
      {"gelu_backward", gelu_backward},
      {"silu_backward", silu_backward},
      {"mish_backward", mish_backward},
      {"sigmoid_backward", sigmoid_backward},
      {"tanh_backward", tanh_backward},
      {"elu_backward", elu_backward},
      {"softplus_backward", softplus_backward},
      {"hardtanh_backward", hardtanh_backward},
      {"hardsigmoid_backward", hardsigmoid_backward},
      {"hardswish_backward", hardswish_backward},
      {"log_sigmoid_backward", log_sigmoid_backward},
      {"hardshrink_backward", shrink_backward},
      {"softshrink_backward", shrink_backward},
      {"glu_backward", glu_backward},
  };
  return rules;
}

}  // namespace neuron::lowering
