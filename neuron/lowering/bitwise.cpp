// Logical and bitwise operators.
#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"

namespace neuron::lowering {

namespace {

// Operands of a logical operator keep their own dtypes: only zero or not counts.
void logical_and(Context& c) { c.set_output(truth(c, 0) & truth(c, 1)); }
void logical_or(Context& c) { c.set_output(truth(c, 0) | truth(c, 1)); }
void logical_xor(Context& c) { c.set_output(truth(c, 0) ^ truth(c, 1)); }
void logical_not(Context& c) { c.set_output(!truth(c, 0)); }

void bitwise_and(Context& c) { c.set_output(operand(c, 0) & operand(c, 1)); }
void bitwise_or(Context& c) { c.set_output(operand(c, 0) | operand(c, 1)); }
void bitwise_xor(Context& c) { c.set_output(operand(c, 0) ^ operand(c, 1)); }
void bitwise_not(Context& c) { c.set_output(!operand(c, 0)); }

// A count outside [0, width) shifts everything out: 0, or the sign to the right. That is the IR's own rule.
void shift_left(Context& c) { c.set_output(operand(c, 0).binary(ir::Opcode::ShiftLeft, operand(c, 1))); }
void shift_right(Context& c) {
  Expression x = operand(c, 0);
  bool arithmetic = is_signed_integer(x.dtype());
  c.set_output(x.binary(arithmetic ? ir::Opcode::ShiftRightArithmetic : ir::Opcode::ShiftRightLogical, operand(c, 1)));
}

}  // namespace

std::span<const Rule> bitwise_rules() {
  static const Rule rules[] = {
      {"logical_and", logical_and},         {"logical_or", logical_or},   {"logical_xor", logical_xor},
      {"logical_not", logical_not},         {"bitwise_and", bitwise_and}, {"bitwise_or", bitwise_or},
      {"bitwise_xor", bitwise_xor},         {"bitwise_not", bitwise_not}, {"bitwise_left_shift", shift_left},
      {"bitwise_right_shift", shift_right}, {"__lshift__", shift_left},   {"__rshift__", shift_right},
  };
  return rules;
}

}  // namespace neuron::lowering
