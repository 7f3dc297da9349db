// Pointwise parts of loss functions; the mean or sum over them is recorded as a reduction. The gradients take a last
// input `norm` (1 / number of elements for a mean, else 1) in the place of the reduction.
#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"

namespace neuron::lowering {

namespace {

// mse_loss(self, target).
void squared_error(Context& c) {
  Expression difference = operand(c, 0) - operand(c, 1);
  c.set_output(difference * difference);
}
// mse_loss_backward(grad_output, self, target, norm).
void squared_error_backward(Context& c) {
  c.set_output(2.0 * operand(c, 3) * (operand(c, 1) - operand(c, 2)) * operand(c, 0));
}

// smooth_l1_loss(self, target, beta).
void smooth_l1(Context& c) {
  Expression distance = abs(operand(c, 0) - operand(c, 1)), beta = operand(c, 2);
  c.set_output(select(distance < beta, 0.5 * distance * distance / beta, distance - 0.5 * beta));
}
// smooth_l1_loss_backward(grad_output, self, target, beta, norm).
void smooth_l1_backward(Context& c) {
  Expression scaled = operand(c, 4) * operand(c, 0), beta = operand(c, 3);
  Expression x = operand(c, 1) - operand(c, 2);
  Expression inside = select(x >= beta, scaled, scaled * x / beta);
  c.set_output(select(x <= -beta, -scaled, inside));
}

// huber_loss(self, target, delta).
void huber(Context& c) {
  Expression distance = abs(operand(c, 0) - operand(c, 1)), delta = operand(c, 2);
  c.set_output(select(distance <= delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta)));
}
// huber_loss_backward(grad_output, self, target, delta, norm).
void huber_backward(Context& c) {
  Expression scaled = operand(c, 4) * operand(c, 0), delta = operand(c, 3);
  Expression x = operand(c, 1) - operand(c, 2);
  Expression inside = select(x > delta, scaled * delta, scaled * x);
  c.set_output(select(x < -delta, -scaled * delta, inside));
}

// binary_cross_entropy(self, target, weight?): logarithms are kept above -100. Attribute: has weight.
void binary_cross_entropy(Context& c) {
  Expression x = operand(c, 0), target = operand(c, 1);
  Expression loss = (target - 1.0) * max(log1p(-x), -100.0) - target * max(log(x), -100.0);
  c.set_output(c.attribute(0) != 0 ? loss * operand(c, 2) : loss);
}
// binary_cross_entropy_backward(grad_output, self, target, weight?, norm). Attribute: has weight.
void binary_cross_entropy_backward(Context& c) {
  bool has_weight = c.attribute(0) != 0;
  Expression x = operand(c, 1);
  Expression slope = operand(c, 0) * (x - operand(c, 2)) / max((1.0 - x) * x, 1e-12);
  if (has_weight) slope = slope * operand(c, 3);
  c.set_output(slope * operand(c, 3 + has_weight));
}

// nll_loss_backward(index, target, scale): the gradient is `scale` at each target's class and 0 elsewhere. `index` is
// the position along the classes.
void pick_gradient(Context& c) {
  Expression index{c, c.raw_input(0)}, target{c, c.input(1, c.input_dtype(0))}, scale{c, c.raw_input(2)};
  c.set_exact_output(0, select(index == target, scale, 0.0));
}

}  // namespace

std::span<const Rule> loss_rules() {
  static const Rule rules[] = {
      {"mse_loss", squared_error},
      {"mse_loss_backward", squared_error_backward},
      {"smooth_l1_loss", smooth_l1},
      {"smooth_l1_loss_backward", smooth_l1_backward},
      {"huber_loss", huber},
      {"huber_loss_backward", huber_backward},
      {"binary_cross_entropy", binary_cross_entropy},
      {"binary_cross_entropy_backward", binary_cross_entropy_backward},
      {"nll_loss_backward", pick_gradient},
  };
  return rules;
}

}  // namespace neuron::lowering
