// One step of a recurrent cell: the gates' two matrix products are done, the rest is pointwise over [batch, hidden].
// Attribute: has biases. The workspace keeps what the gradient needs.
#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"

namespace neuron::lowering {

namespace {

// Part `gate` of the gates that come from the input, and of the `gates` that come from the hidden state, with their
// biases, which begin at input `biases`.
Expression from_input(Context& c, int gate, int biases) {
  Expression x = operand(c, gate);
  return c.attribute(0) != 0 ? x + operand(c, biases + gate) : x;
}
Expression from_hidden(Context& c, int gate, int gates, int biases) {
  Expression x = operand(c, gates + gate);
  return c.attribute(0) != 0 ? x + operand(c, biases + gates + gate) : x;
}

// _thnn_fused_lstm_cell(4 input gates, 4 hidden gates, cx, [4 input biases, 4 hidden biases]) -> (hy, cy, the 4 gates
// after their functions). Order of gates: input, forget, cell, output.
void lstm_cell(Context& c) {
  constexpr int kGates = 4, kBiases = 9;
  auto sum = [&](int gate) { return from_input(c, gate, kBiases) + from_hidden(c, gate, kGates, kBiases); };
  Expression in = sigmoid(sum(0)), forget = sigmoid(sum(1)), cell = tanh(sum(2)), out = sigmoid(sum(3));
  Expression cy = forget * operand(c, 8) + in * cell;
  c.set_output(0, out * tanh(cy));
  c.set_output(1, cy);
  c.set_output(2, in);
  c.set_output(3, forget);
  c.set_output(4, cell);
  c.set_output(5, out);
}

// lstm_cell_backward(cx, cy, 4 gates, [grad_hy], [grad_cy]) -> (gradients of the 4 gates before their functions,
// grad_cx). Attributes: has grad_hy, has grad_cy.
void lstm_cell_backward(Context& c) {
  Expression cx = operand(c, 0), cy = operand(c, 1);
  Expression in = operand(c, 2), forget = operand(c, 3), cell = operand(c, 4), out = operand(c, 5);
  const bool has_hy = c.attribute(0) != 0, has_cy = c.attribute(1) != 0;
  Expression squashed = tanh(cy);
  Expression grad_hy = has_hy ? operand(c, 6) : cy.same(0.0);
  Expression grad = grad_hy * out * (1.0 - squashed * squashed);
  if (has_cy) grad = grad + operand(c, has_hy ? 7 : 6);
  c.set_output(0, grad * cell * (1.0 - in) * in);
  c.set_output(1, grad * cx * (1.0 - forget) * forget);
  c.set_output(2, grad * in * (1.0 - cell * cell));
  c.set_output(3, grad_hy * squashed * (1.0 - out) * out);
  c.set_output(4, grad * forget);
}

// _thnn_fused_gru_cell(3 input gates, 3 hidden gates, hx, [3 input biases, 3 hidden biases]) -> (hy, reset, update,
// new, hx, hidden part of new).
void gru_cell(Context& c) {
  constexpr int kGates = 3, kBiases = 7;
  auto sum = [&](int gate) { return from_input(c, gate, kBiases) + from_hidden(c, gate, kGates, kBiases); };
  Expression reset = sigmoid(sum(0)), update = sigmoid(sum(1)), hx = operand(c, 6);
  Expression hidden = from_hidden(c, 2, kGates, kBiases);
  Expression fresh = tanh(from_input(c, 2, kBiases) + reset * hidden);
  c.set_output(0, (hx - fresh) * update + fresh);
  c.set_output(1, reset);
  c.set_output(2, update);
  c.set_output(3, fresh);
  c.set_output(4, hx);
  c.set_output(5, hidden);
}

// gru_cell_backward(grad_hy, reset, update, new, hx, hidden part of new) -> (gradients of the 3 input gates, of the 3
// hidden gates, grad_hx).
void gru_cell_backward(Context& c) {
  Expression grad = operand(c, 0), reset = operand(c, 1), update = operand(c, 2), fresh = operand(c, 3);
  Expression hx = operand(c, 4), hidden = operand(c, 5);
  Expression of_update = grad * (hx - fresh) * (1.0 - update) * update;
  Expression of_fresh = grad * (1.0 - update) * (1.0 - fresh * fresh);
  Expression of_reset = of_fresh * hidden * (1.0 - reset) * reset;
  c.set_output(0, of_reset);
  c.set_output(1, of_update);
  c.set_output(2, of_fresh);
  c.set_output(3, of_reset);
  c.set_output(4, of_update);
  c.set_output(5, of_fresh * reset);
  c.set_output(6, grad * update);
}

}  // namespace

std::span<const Rule> recurrent_rules() {
  static const Rule rules[] = {
      {"_thnn_fused_lstm_cell", lstm_cell},
      {"lstm_cell_backward", lstm_cell_backward},
      {"_thnn_fused_gru_cell", gru_cell},
      {"gru_cell_backward", gru_cell_backward},
  };
  return rules;
}

}  // namespace neuron::lowering
