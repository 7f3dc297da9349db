// Layer and root-mean-square normalisation along the reduced dimension, batch normalisation point by point. Statistics
// are float32 for narrow floats and are not rounded to the tensor's dtype.
#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"

namespace neuron::lowering {

namespace {

Expression row_sum(Context& c, Expression x) { return {c, c.reduce(ir::Opcode::Add, x, 0)}; }
Expression spread(Context& c, Expression x) { return {c, c.spread(x)}; }
Expression row_mean(Context& c, Expression x, int count_input) {
  Expression sum = row_sum(c, x);
  return sum / Expression{c, c.reduced_like_scalar(count_input, sum)};
}
Expression reciprocal_root(Expression x) { return 1.0 / sqrt(x); }

// native_layer_norm(input, weight?, bias?, eps, count) -> (output, mean, rstd); attributes: has weight, has bias.
void layer_norm(Context& c) {
  bool has_weight = c.attribute(0) != 0, has_bias = c.attribute(1) != 0;
  int eps_input = 1 + has_weight + has_bias, count_input = eps_input + 1;
  Expression x = operand(c, 0);
  Expression mean = row_mean(c, x, count_input);
  Expression centered = x - spread(c, mean);
  Expression variance = row_mean(c, centered * centered, count_input);
  Expression rstd = reciprocal_root(variance + Expression{c, c.reduced_like_scalar(eps_input, variance)});
  Expression y = centered * spread(c, rstd);
  if (has_weight) y = y * operand(c, 1);
  if (has_bias) y = y + operand(c, 1 + has_weight);
  c.set_output(0, y);
  if (c.output_count() > 1) c.set_exact_output(1, mean);
  if (c.output_count() > 2) c.set_exact_output(2, rstd);
}

// native_layer_norm_backward(grad_output, input, mean, rstd, weight?, count) -> gradient of input; attribute: has
// weight.
void layer_norm_backward(Context& c) {
  bool has_weight = c.attribute(0) != 0;
  int count_input = 4 + has_weight;
  Expression gradient = operand(c, 0), rstd = operand(c, 3);
  Expression normalized = (operand(c, 1) - operand(c, 2)) * rstd;
  if (has_weight) gradient = gradient * operand(c, 4);
  Expression mean_gradient = row_mean(c, gradient, count_input);
  Expression mean_product = row_mean(c, gradient * normalized, count_input);
  c.set_output((gradient - spread(c, mean_gradient) - normalized * spread(c, mean_product)) * rstd);
}

// layer_norm_weight_gradient(grad_output, input, mean, rstd) -> (gradient of weight, gradient of bias), over the rows.
void layer_norm_weight_gradient(Context& c) {
  Expression gradient = operand(c, 0);
  Expression normalized = (operand(c, 1) - operand(c, 2)) * operand(c, 3);
  c.set_output(0, row_sum(c, gradient * normalized));
  if (c.output_count() > 1) c.set_output(1, row_sum(c, gradient));
}

// _fused_rms_norm(input, weight?, eps, count) -> (output, rstd); attribute: has weight.
void rms_norm(Context& c) {
  bool has_weight = c.attribute(0) != 0;
  int eps_input = 1 + has_weight;
  Expression x = operand(c, 0);
  Expression square = row_mean(c, x * x, eps_input + 1);
  Expression rstd = reciprocal_root(square + Expression{c, c.reduced_like_scalar(eps_input, square)});
  Expression y = x * spread(c, rstd);
  c.set_output(0, has_weight ? y * operand(c, 1) : y);
  if (c.output_count() > 1) c.set_exact_output(1, rstd);
}

// _fused_rms_norm_backward(grad_output, input, rstd, weight?, count) -> gradient of input; attribute: has weight.
void rms_norm_backward(Context& c) {
  bool has_weight = c.attribute(0) != 0;
  Expression gradient = operand(c, 0), rstd = operand(c, 2);
  Expression normalized = operand(c, 1) * rstd;
  if (has_weight) gradient = gradient * operand(c, 3);
  Expression mean_product = row_mean(c, gradient * normalized, 3 + has_weight);
  c.set_output((gradient - normalized * spread(c, mean_product)) * rstd);
}
// rms_norm_weight_gradient(grad_output, input, rstd), over the rows.
void rms_norm_weight_gradient(Context& c) { c.set_output(row_sum(c, operand(c, 0) * (operand(c, 1) * operand(c, 2)))); }

// mean_rstd(input, eps, count) -> (mean, rstd): the statistics of a row alone.
void mean_rstd(Context& c) {
  Expression x = operand(c, 0);
  Expression mean = row_mean(c, x, 2);
  Expression centered = x - spread(c, mean);
  Expression variance = row_mean(c, centered * centered, 2);
  c.set_exact_output(0, mean);
  c.set_exact_output(1, reciprocal_root(variance + Expression{c, c.reduced_like_scalar(1, variance)}));
}
// running_average(average, value, momentum).
void running_average(Context& c) {
  Expression momentum = number(c, 2, DType::Float64);
  Expression share = momentum.convert(c.compute()), rest = (1.0 - momentum).convert(c.compute());
  c.set_output(share * operand(c, 1) + rest * operand(c, 0));
}

// inverse_standard_deviation(variance, eps).
void inverse_standard_deviation(Context& c) {
  Expression variance = operand(c, 0);
  c.set_exact_output(0, reciprocal_root(variance + operand(c, 1)));
}
// variance_of_sum(sum, count, correction): sum / max(count - correction, 0).
void variance_of_sum(Context& c) { c.set_exact_output(0, operand(c, 0) / max(operand(c, 1) - operand(c, 2), 0.0)); }

// normalize_affine(input, mean, rstd, weight?, bias?): the statistics are per channel; attributes: has weight, has
// bias.
void normalize_affine(Context& c) {
  bool has_weight = c.attribute(0) != 0, has_bias = c.attribute(1) != 0;
  Expression y = (operand(c, 0) - operand(c, 1)) * operand(c, 2);
  if (has_weight) y = y * operand(c, 3);
  if (has_bias) y = y + operand(c, 3 + has_weight);
  c.set_output(y);
}

// normalize_backward(grad_output, input, mean, rstd, sum of gradients, sum of gradient * normalized, count, weight?):
// the input's gradient when the statistics were taken from the input; attribute: has weight.
void normalize_backward(Context& c) {
  Expression gradient = operand(c, 0), rstd = operand(c, 3), count = operand(c, 6);
  Expression normalized = (operand(c, 1) - operand(c, 2)) * rstd;
  Expression rest = gradient - operand(c, 4) / count - normalized * (operand(c, 5) / count);
  Expression scale = c.attribute(0) != 0 ? rstd * operand(c, 7) : rstd;
  c.set_output(rest * scale);
}
// normalized_gradient_sums(grad_output, input, mean, rstd) -> (sum of gradients, sum of gradient * normalized).
void normalized_gradient_sums(Context& c) {
  Expression gradient = operand(c, 0);
  Expression normalized = (operand(c, 1) - operand(c, 2)) * operand(c, 3);
  c.set_exact_output(0, row_sum(c, gradient));
  c.set_exact_output(1, row_sum(c, gradient * normalized));
}

// weighted_sums(a, b, weight) -> (sum of a * weight, sum of b * weight).
void weighted_sums(Context& c) {
  Expression weight = operand(c, 2);
  for (int i = 0; i < 2; ++i) c.set_exact_output(i, row_sum(c, operand(c, i) * weight));
}
// group_norm_backward(grad_output, input, mean, rstd, sum of gradient * weight, sum of gradient * weight * normalized,
// count, weight): the input's gradient.
void group_norm_backward(Context& c) {
  Expression gradient = operand(c, 0) * operand(c, 7), rstd = operand(c, 3), count = operand(c, 6);
  Expression normalized = (operand(c, 1) - operand(c, 2)) * rstd;
  c.set_output((gradient - operand(c, 4) / count - normalized * (operand(c, 5) / count)) * rstd);
}

}  // namespace

std::span<const Rule> normalization_rules() {
  constexpr auto reduce = IterationKind::Reduce;
  constexpr auto normalize = IterationKind::Normalize;
  static const Rule rules[] = {
      {"native_layer_norm", layer_norm, normalize},
      {"native_layer_norm_backward", layer_norm_backward, normalize},
      {"layer_norm_weight_gradient", layer_norm_weight_gradient, reduce},
      {"_fused_rms_norm", rms_norm, normalize},
      {"_fused_rms_norm_backward", rms_norm_backward, normalize},
      {"rms_norm_weight_gradient", rms_norm_weight_gradient, reduce},
      {"mean_rstd", mean_rstd, normalize},
      {"running_average", running_average},
      {"inverse_standard_deviation", inverse_standard_deviation},
      {"variance_of_sum", variance_of_sum},
      {"normalize_affine", normalize_affine},
      {"normalize_backward", normalize_backward},
      {"normalized_gradient_sums", normalized_gradient_sums, reduce},
      {"weighted_sums", weighted_sums, reduce},
      {"group_norm_backward", group_norm_backward},
  };
  return rules;
}

}  // namespace neuron::lowering
