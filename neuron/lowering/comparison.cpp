// Comparisons, predicates and selections.
#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"

namespace neuron::lowering {

namespace {

template <ir::ComparisonDirection direction>
void compare(Context& c) {
  c.set_output(rounded_operand(c, 0).compare(direction, rounded_operand(c, 1)));
}

// Predicates of one float; `otherwise` is the answer for dtypes that have no NaN and no infinity.
template <Expression (*predicate)(Expression), bool otherwise>
void float_predicate(Context& c) {
  if (!is_float(c.input_dtype(0))) return c.set_output(c.constant_int(otherwise, DType::Bool));
  c.set_output(predicate({c, c.input(0, compute_dtype(c.input_dtype(0)))}));
}
Expression is_infinite(Expression x) { return abs(x) == kInfinity; }
Expression is_finite(Expression x) { return x.unary(ir::Opcode::IsFinite); }
Expression is_positive_infinity(Expression x) { return x == kInfinity; }
Expression is_negative_infinity(Expression x) { return x == -kInfinity; }

void signbit(Context& c) {
  Expression x{c, c.raw_input(0)};
  if (is_float(x.dtype())) return c.set_output(sign_bit(x));
  if (is_signed_integer(x.dtype())) return c.set_output(x < x.same_int(0));
  c.set_output(c.constant_int(0, DType::Bool));
}

// Moves elements without arithmetic: in the common dtype itself, no rounding.
Expression element(Context& c, int i) { return {c, c.input(i, c.common())}; }

// where(condition, self, other).
void where(Context& c) { c.set_output(select(truth(c, 0), element(c, 1), element(c, 2))); }
// masked_fill(self, mask, value).
void masked_fill(Context& c) { c.set_output(select(truth(c, 1), element(c, 2), element(c, 0))); }

// heaviside(self, values): values at 0, 0 for NaN.
void heaviside(Context& c) {
  Expression x = operand(c, 0), values = operand(c, 1);
  Expression zero = x.same_int(0);
  c.set_output(select(x == zero, values, select(zero < x, x.same_int(1), zero)));
}

// nan_to_num(self, nan?, posinf?, neginf?): the defaults are 0 and the extremes of the tensor's dtype.
void nan_to_num(Context& c) {
  Expression x = operand(c, 0);
  if (!is_float(x.dtype())) return c.set_output(x);
  double largest = std::numeric_limits<double>::max();
  switch (c.common()) {
    case DType::Float32:
      largest = std::numeric_limits<float>::max();
      break;
    case DType::BFloat16:
      largest = 0x1.fep127;
      break;
    case DType::Float16:
      largest = 65504;
      break;
    default:
      break;
  }
  int next = 1;
  Expression for_nan = c.attribute(0) != 0 ? operand(c, next++) : x.same(0.0);
  Expression for_high = c.attribute(1) != 0 ? operand(c, next++) : x.same(largest);
  Expression for_low = c.attribute(2) != 0 ? operand(c, next) : x.same(-largest);
  Expression bounded = select(x == kInfinity, for_high, select(x == -kInfinity, for_low, x));
  c.set_output(select(is_nan(x), for_nan, bounded));
}

}  // namespace

std::span<const Rule> comparison_rules() {
  using ir::ComparisonDirection;
  static const Rule rules[] = {
      {"eq", compare<ComparisonDirection::EQ>},
      {"ne", compare<ComparisonDirection::NE>},
      {"lt", compare<ComparisonDirection::LT>},
      {"le", compare<ComparisonDirection::LE>},
      {"gt", compare<ComparisonDirection::GT>},
      {"ge", compare<ComparisonDirection::GE>},
      {"isnan", float_predicate<is_nan, false>},
      {"isinf", float_predicate<is_infinite, false>},
      {"isfinite", float_predicate<is_finite, true>},
      {"isposinf", float_predicate<is_positive_infinity, false>},
      {"isneginf", float_predicate<is_negative_infinity, false>},
      {"signbit", signbit},
      {"where", where},
      {"masked_fill", masked_fill},
      {"heaviside", heaviside},
      {"nan_to_num", nan_to_num},
  };
  return rules;
}

}  // namespace neuron::lowering
