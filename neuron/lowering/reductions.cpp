// Reductions along one dimension. `count`, the number of combined elements, is recorded as the last input of the
// operators that need it; `index` is the position along the dimension. dim, keepdim and dtype of the schema are no
// attributes: the iteration space and the dtypes say them.
#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"
#include "neuron/lowering/operator_attributes.h"

namespace neuron::lowering {

namespace {

Expression sum_of(Context& c, Expression x) { return {c, c.reduce(ir::Opcode::Add, x, 0)}; }

void sum(Context& c) { c.set_output(sum_of(c, operand(c, 0))); }
// A NaN counts as 0.
void nansum(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(sum_of(c, is_float(x.dtype()) ? select(is_nan(x), 0.0, x) : x));
}
void product(Context& c) { c.set_output(c.reduce(ir::Opcode::Multiply, operand(c, 0), 1)); }
// mean(self, count).
void mean(Context& c) {
  Expression sum = sum_of(c, operand(c, 0));
  c.set_output(sum / Expression{c, c.reduced_like_scalar(1, sum)});
}

void amax(Context& c) { c.set_output(c.reduce_extreme(true, operand(c, 0))); }
void amin(Context& c) { c.set_output(c.reduce_extreme(false, operand(c, 0))); }
// aminmax(self) -> (min, max).
void aminmax(Context& c) {
  Expression x = operand(c, 0);
  c.set_output(0, c.reduce_extreme(false, x));
  c.set_output(1, c.reduce_extreme(true, x));
}

// argmax, argmin(self, index) -> index.
template <bool maximum>
void arg_extreme(Context& c) {
  c.set_exact_output(0, c.arg_reduce(maximum, operand(c, 0), c.input(1, DType::Int64)).second);
}
// max, min(self, index) -> (value, index).
template <bool maximum>
void extreme_with_index(Context& c) {
  auto [value, index] = c.arg_reduce(maximum, operand(c, 0), c.input(1, DType::Int64));
  c.set_output(0, value);
  c.set_exact_output(1, index);
}

void any(Context& c) { c.set_output(c.reduce(ir::Opcode::Or, truth(c, 0), 0)); }
void all(Context& c) { c.set_output(c.reduce(ir::Opcode::And, truth(c, 0), 1)); }
void count_nonzero(Context& c) {
  c.set_exact_output(0, c.reduce(ir::Opcode::Add, truth(c, 0).convert(DType::Int64), 0));
}

// Two passes over the row: the mean first, then the squares of the differences from it.
struct Moments {
  Expression mean, variance;
};
Moments moments(Context& c) {
  Expression x = operand(c, 0);
  Expression sum = sum_of(c, x);
  Expression correction{c, c.reduced_like_scalar(1, sum)}, count{c, c.reduced_like_scalar(2, sum)};
  Expression mean = sum / count;
  Expression difference = x - Expression{c, c.spread(mean)};
  return {mean, sum_of(c, difference * difference) / max(count - correction, 0.0)};
}
// var, std(self, correction, count); var_mean, std_mean -> (spread, mean).
void variance(Context& c) { c.set_output(moments(c).variance); }
void standard_deviation(Context& c) { c.set_output(sqrt(moments(c).variance)); }
void variance_mean(Context& c) {
  Moments m = moments(c);
  c.set_output(0, m.variance);
  c.set_output(1, m.mean);
}
void standard_deviation_mean(Context& c) {
  Moments m = moments(c);
  c.set_output(0, sqrt(m.variance));
  c.set_output(1, m.mean);
}

// centered_square_sum(self, mean): the second pass of a variance over dimensions that are not adjacent.
void centered_square_sum(Context& c) {
  Expression difference = operand(c, 0) - operand(c, 1);
  c.set_exact_output(0, sum_of(c, difference * difference));
}

// linalg_vector_norm(self, ord), attribute NormKind.
void vector_norm(Context& c) {
  Expression x = operand(c, 0);
  switch (static_cast<NormKind>(c.attribute(0))) {
    case NormKind::Zero:
      return c.set_output(sum_of(c, (x != 0.0).convert(x.dtype())));
    case NormKind::One:
      return c.set_output(sum_of(c, abs(x)));
    case NormKind::Two:
      return c.set_output(sqrt(sum_of(c, x * x)));
    case NormKind::Infinity: {
      // Starts from 0, not from -inf: the norm of nothing.
      return c.set_output(c.reduce(ir::Opcode::Maximum, abs(x), 0));
    }
    case NormKind::NegativeInfinity:
      return c.set_output(c.reduce_extreme(false, abs(x)));
    case NormKind::General:
      break;
  }
  Expression sum = sum_of(c, power(abs(x), operand(c, 1)));
  c.set_output(power(sum, 1.0 / Expression{c, c.reduced_like_scalar(1, sum)}));
}

// power_sum(self, ord), attribute NormKind: the part of a norm that adds up over several reductions; norm_root(sum,
// ord) ends it.
void power_sum(Context& c) {
  Expression x = operand(c, 0);
  switch (static_cast<NormKind>(c.attribute(0))) {
    case NormKind::Zero:
      return c.set_exact_output(0, sum_of(c, (x != 0.0).convert(x.dtype())));
    case NormKind::One:
      return c.set_exact_output(0, sum_of(c, abs(x)));
    case NormKind::Two:
      return c.set_exact_output(0, sum_of(c, x * x));
    case NormKind::Infinity:
      return c.set_exact_output(0, c.reduce(ir::Opcode::Maximum, abs(x), 0));
    case NormKind::NegativeInfinity:
      return c.set_exact_output(0, c.reduce_extreme(false, abs(x)));
    case NormKind::General:
      return c.set_exact_output(0, sum_of(c, power(abs(x), operand(c, 1))));
  }
}
void norm_root(Context& c) {
  Expression sum = operand(c, 0);
  switch (static_cast<NormKind>(c.attribute(0))) {
    case NormKind::Two:
      return c.set_output(sqrt(sum));
    case NormKind::General:
      return c.set_output(power(sum, 1.0 / operand(c, 1)));
    default:
      return c.set_output(sum);
  }
}

}  // namespace

std::span<const Rule> reduction_rules() {
  constexpr auto reduce = IterationKind::Reduce;
  constexpr auto normalize = IterationKind::Normalize;
  static const Rule rules[] = {
      {"sum", sum, reduce},
      {"nansum", nansum, reduce},
      {"prod", product, reduce},
      {"mean", mean, reduce},
      {"amax", amax, reduce},
      {"amin", amin, reduce},
      {"aminmax", aminmax, reduce},
      {"argmax", arg_extreme<true>, reduce},
      {"argmin", arg_extreme<false>, reduce},
      {"max", extreme_with_index<true>, reduce},
      {"min", extreme_with_index<false>, reduce},
      {"any", any, reduce},
      {"all", all, reduce},
      {"count_nonzero", count_nonzero, reduce},
      {"var", variance, normalize},
      {"std", standard_deviation, normalize},
      {"var_mean", variance_mean, normalize},
      {"std_mean", standard_deviation_mean, normalize},
      {"centered_square_sum", centered_square_sum, reduce},
      {"linalg_vector_norm", vector_norm, reduce},
      {"power_sum", power_sum, reduce},
      {"norm_root", norm_root},
  };
  return rules;
}

}  // namespace neuron::lowering
