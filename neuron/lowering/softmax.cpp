// Softmax and its kin along the reduced dimension. The maximum is subtracted first: nothing overflows.
#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"

namespace neuron::lowering {

namespace {

// exp(x - max) and its sum; `shifted` is x - max. A NaN in the row is in the sum, wherever the maximum lies.
struct Exponentials {
  Expression shifted, values, sum;
};
Exponentials exponentials(Context& c, Expression x) {
  Expression shifted = x - Expression{c, c.spread(c.reduce_largest(x))};
  Expression values = exp(shifted);
  return {shifted, values, {c, c.reduce(ir::Opcode::Add, values, 0)}};
}

void softmax(Context& c) {
  Exponentials e = exponentials(c, operand(c, 0));
  // One division a row. The sum is at least 1: its reciprocal is neither subnormal nor infinite.
  Expression inverse{c, c.spread(1.0 / e.sum)};
  c.set_output(e.values * inverse);
}

void log_softmax(Context& c) {
  Exponentials e = exponentials(c, operand(c, 0));
  c.set_output(e.shifted - Expression{c, c.spread(log(e.sum))});
}

// _softmax_backward_data(grad_output, output).
void softmax_backward(Context& c) {
  Expression gradient = operand(c, 0), output = operand(c, 1);
  Expression sum{c, c.reduce(ir::Opcode::Add, gradient * output, 0)};
  c.set_output((gradient - Expression{c, c.spread(sum)}) * output);
}

// _log_softmax_backward_data(grad_output, output).
void log_softmax_backward(Context& c) {
  Expression gradient = operand(c, 0), output = operand(c, 1);
  Expression sum{c, c.reduce(ir::Opcode::Add, gradient, 0)};
  c.set_output(gradient - exp(output) * Expression{c, c.spread(sum)});
}

// An infinite maximum is not subtracted: inf - inf would give NaN where the answer is that infinity.
void logsumexp(Context& c) {
  Expression x = operand(c, 0);
  Expression maximum{c, c.reduce_largest(x)};
  Expression base = select(abs(maximum) == kInfinity, 0.0, maximum);
  Expression sum{c, c.reduce(ir::Opcode::Add, exp(x - Expression{c, c.spread(base)}), 0)};
  c.set_output(log(sum) + base);
}

}  // namespace

std::span<const Rule> softmax_rules() {
  static const Rule rules[] = {
      {"_softmax", softmax, IterationKind::Normalize},
      {"_log_softmax", log_softmax, IterationKind::Normalize},
      {"_softmax_backward_data", softmax_backward, IterationKind::Normalize},
      {"_log_softmax_backward_data", log_softmax_backward, IterationKind::Normalize},
      {"logsumexp", logsumexp, IterationKind::Normalize},
  };
  return rules;
}

}  // namespace neuron::lowering
