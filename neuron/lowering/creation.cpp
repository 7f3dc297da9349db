// Copies, conversions, and values that follow from the position. `index` inputs are Index operands (i64).
#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"

namespace neuron::lowering {

namespace {

// Any dtype to any dtype, without a detour through another.
void copy(Context& c) { c.set_exact_output(0, c.raw_input(0)); }

// Double for integers and float64; float32 below.
DType position_dtype(Context& c) { return is_float(c.common()) ? c.compute() : DType::Float64; }

// arange(index, start, step): start + step * index, in double for floats, in 64-bit integers otherwise.
void arange(Context& c) {
  DType dtype = is_float(c.common()) ? DType::Float64 : DType::Int64;
  Expression index{c, c.input(0, dtype)}, start{c, c.input(1, dtype)}, step{c, c.input(2, dtype)};
  c.set_exact_output(0, start + step * index);
}

// linspace(index, start, end, step, steps): counted from the nearer end, so that both ends are exact.
void linspace(Context& c) {
  DType dtype = position_dtype(c);
  Expression index{c, c.input(0, DType::Int64)}, steps{c, c.input(4, DType::Int64)};
  Expression start{c, c.input(1, dtype)}, end{c, c.input(2, dtype)}, step{c, c.input(3, dtype)};
  Expression one = index.same_int(1);
  Expression from_end = (steps - index - one).convert(dtype);
  Expression first_half = index < steps.binary(ir::Opcode::ShiftRightArithmetic, one);
  c.set_output(select(first_half, start + step * index.convert(dtype), end - step * from_end));
}

// eye(index): ones where the index, column - row, is 0.
void eye(Context& c) {
  Expression index{c, c.input(0, DType::Int64)};
  c.set_output(index == index.same_int(0));
}
// tril, triu(self, index): index is column - row - diagonal.
void lower_triangle(Context& c) {
  Expression x{c, c.raw_input(0)}, index{c, c.input(1, DType::Int64)};
  c.set_exact_output(0, select(index <= index.same_int(0), x, x.same_int(0)));
}
void upper_triangle(Context& c) {
  Expression x{c, c.raw_input(0)}, index{c, c.input(1, DType::Int64)};
  c.set_exact_output(0, select(index >= index.same_int(0), x, x.same_int(0)));
}

}  // namespace

std::span<const Rule> creation_rules() {
  static const Rule rules[] = {
      {"copy", copy}, {"fill", copy},           {"arange", arange},       {"linspace", linspace},
      {"eye", eye},   {"tril", lower_triangle}, {"triu", upper_triangle},
  };
  return rules;
}

}  // namespace neuron::lowering
