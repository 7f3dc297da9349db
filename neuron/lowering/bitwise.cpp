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

// A shift by a negative count, or by the width or more, shifts everything out: 0, or the sign to the right.
struct Shift {
  Expression x, count, out_of_range;
};
Shift shift_operands(Context& c) {
  Expression x = operand(c, 0), count = operand(c, 1);
  int bits = static_cast<int>(dtype_size(x.dtype())) * 8;
  Expression out_of_range = count >= count.same_int(bits);
  if (is_signed_integer(x.dtype())) out_of_range = out_of_range | (count < count.same_int(0));
  return {x, count, out_of_range};
}
void shift_left(Context& c) {
  auto [x, count, out_of_range] = shift_operands(c);
  Expression safe = select(out_of_range, count.same_int(0), count);
  c.set_output(select(out_of_range, x.same_int(0), x.binary(ir::Opcode::ShiftLeft, safe)));
}
void shift_right(Context& c) {
  auto [x, count, out_of_range] = shift_operands(c);
  if (is_signed_integer(x.dtype())) {
    int bits = static_cast<int>(dtype_size(x.dtype())) * 8;
    Expression safe = select(out_of_range, count.same_int(bits - 1), count);
    return c.set_output(x.binary(ir::Opcode::ShiftRightArithmetic, safe));
  }
  Expression safe = select(out_of_range, count.same_int(0), count);
  c.set_output(select(out_of_range, x.same_int(0), x.binary(ir::Opcode::ShiftRightLogical, safe)));
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
