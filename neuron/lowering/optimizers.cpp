// One step of an optimizer on one parameter, in PyTorch's fused arithmetic, and the pieces of gradient scaling.
// Numbers (learning rate, betas …) are inputs in double; what follows from them alone is computed in double and then
// rounded to the arithmetic's dtype. Attributes: has grad_scale, has found_inf, then the operator's own.
#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"

namespace neuron::lowering {

namespace {

// Takes the inputs in order.
class Inputs {
 public:
  explicit Inputs(Context& context) : context_(context) {}
  Expression tensor() { return operand(context_, next_++); }
  Expression real() { return number(context_, next_++, DType::Float64); }
  Expression narrow(Expression x) { return x.convert(context_.compute()); }

 private:
  Context& context_;
  int next_ = 0;
};

// The gradient as the update sees it: unscaled where a scaler is in use, negated to maximise.
struct Gradient {
  Expression unscaled, direction;
};
Gradient take_gradient(Expression gradient, bool has_scale, Expression scale, bool maximize) {
  Expression unscaled = has_scale ? gradient / scale : gradient;
  return {unscaled, maximize ? -unscaled : unscaled};
}

// Writes output i, or the old value where the scaler found an infinity.
struct Writer {
  Context& context;
  bool guarded;
  Expression found;
  int next = 0;
  void write(Expression updated, Expression old) {
    context.set_output(next++, guarded ? select(found == 1.0, old, updated) : updated);
  }
};

// adam_corrections(step, lr, beta1, beta2) -> (lr / (1 - beta1^step), sqrt(1 - beta2^step)), in double: one element.
void adam_corrections(Context& c) {
  Expression step{c, c.input(0, DType::Float64)}, lr{c, c.input(1, DType::Float64)};
  Expression beta1{c, c.input(2, DType::Float64)}, beta2{c, c.input(3, DType::Float64)};
  c.set_exact_output(0, lr / (1.0 - power(beta1, step)));
  c.set_exact_output(1, sqrt(1.0 - power(beta2, step)));
}

// _fused_adam_, _fused_adamw_(param, grad, exp_avg, exp_avg_sq, [max_exp_avg_sq], lr, beta1, beta2, weight_decay, eps,
// step size, root of the second bias correction, [grad_scale], [found_inf]) -> (param, exp_avg, exp_avg_sq,
// [max_exp_avg_sq], [grad]). Attributes: has grad_scale, has found_inf, amsgrad, maximize.
template <bool decoupled>
void adam(Context& c) {
  bool has_scale = c.attribute(0) != 0, has_found = c.attribute(1) != 0;
  bool amsgrad = c.attribute(2) != 0, maximize = c.attribute(3) != 0;
  Inputs in(c);
  Expression param = in.tensor(), raw_gradient = in.tensor(), exp_avg = in.tensor(), exp_avg_sq = in.tensor();
  Expression max_exp_avg_sq = amsgrad ? in.tensor() : exp_avg_sq;
  Expression lr = in.real(), beta1 = in.real(), beta2 = in.real(), weight_decay = in.real();
  Expression eps = in.narrow(in.real()), step_size = in.narrow(in.real()), root = in.narrow(in.real());
  Expression scale = has_scale ? in.tensor() : param;
  Expression found = has_found ? in.tensor() : param;
  auto [unscaled, gradient] = take_gradient(raw_gradient, has_scale, scale, maximize);

  Expression decayed = param;
  if (decoupled)
    decayed = param * in.narrow(1.0 - lr * weight_decay);
  else
    gradient = gradient + param * in.narrow(weight_decay);
  // lerp from the nearer end.
  Expression weight = in.narrow(1.0 - beta1);
  Expression near_start = abs(weight) < 0.5;
  Expression difference = gradient - exp_avg;
  Expression average = select(near_start, exp_avg, gradient) + select(near_start, weight, weight - 1.0) * difference;
  Expression square = exp_avg_sq * in.narrow(beta2) + in.narrow(1.0 - beta2) * gradient * gradient;
  Expression largest = amsgrad ? max(max_exp_avg_sq, square) : square;
  Expression denominator = sqrt(largest) / root + eps;
  Expression updated = decayed + -step_size * average / denominator;

  Writer writer{c, has_found, found};
  writer.write(updated, param);
  writer.write(average, exp_avg);
  writer.write(square, exp_avg_sq);
  if (amsgrad) writer.write(largest, max_exp_avg_sq);
  if (has_scale) writer.write(unscaled, raw_gradient);
}

// _fused_sgd_(param, grad, [momentum_buffer], weight_decay, momentum, lr, dampening, [grad_scale], [found_inf]) ->
// (param, [momentum_buffer], [grad]). Attributes: has grad_scale, has found_inf, has momentum, nesterov, maximize,
// first step.
void sgd(Context& c) {
  bool has_scale = c.attribute(0) != 0, has_found = c.attribute(1) != 0, has_momentum = c.attribute(2) != 0;
  bool nesterov = c.attribute(3) != 0, maximize = c.attribute(4) != 0, first_step = c.attribute(5) != 0;
  Inputs in(c);
  Expression param = in.tensor(), raw_gradient = in.tensor();
  Expression buffer = has_momentum ? in.tensor() : raw_gradient;
  Expression weight_decay = in.narrow(in.real()), momentum = in.narrow(in.real()), lr = in.narrow(in.real());
  Expression undamped = in.narrow(1.0 - in.real());
  Expression scale = has_scale ? in.tensor() : param;
  Expression found = has_found ? in.tensor() : param;
  auto [unscaled, gradient] = take_gradient(raw_gradient, has_scale, scale, maximize);

  gradient = gradient + param * weight_decay;
  Expression velocity = gradient;
  if (has_momentum) {
    if (!first_step) velocity = buffer * momentum + gradient * undamped;
    gradient = nesterov ? gradient + velocity * momentum : velocity;
  }
  Writer writer{c, has_found, found};
  writer.write(param - gradient * lr, param);
  if (has_momentum) writer.write(velocity, buffer);
  if (has_scale) writer.write(unscaled, raw_gradient);
}

// adagrad_rate(step, lr, lr_decay) -> lr / (1 + (step - 1) lr_decay), in double: one element.
void adagrad_rate(Context& c) {
  Expression step{c, c.input(0, DType::Float64)}, lr{c, c.input(1, DType::Float64)};
  Expression decay{c, c.input(2, DType::Float64)};
  c.set_exact_output(0, lr / (1.0 + (step - 1.0) * decay));
}
// _fused_adagrad_(param, grad, state_sum, rate, weight_decay, eps, [grad_scale], [found_inf]) -> (param, state_sum,
// [grad]). Attributes: has grad_scale, has found_inf, maximize.
void adagrad(Context& c) {
  bool has_scale = c.attribute(0) != 0, has_found = c.attribute(1) != 0, maximize = c.attribute(2) != 0;
  Inputs in(c);
  Expression param = in.tensor(), raw_gradient = in.tensor(), state_sum = in.tensor();
  Expression rate = in.narrow(in.real()), weight_decay = in.narrow(in.real()), eps = in.narrow(in.real());
  Expression scale = has_scale ? in.tensor() : param;
  Expression found = has_found ? in.tensor() : param;
  auto [unscaled, gradient] = take_gradient(raw_gradient, has_scale, scale, maximize);
  gradient = gradient + param * weight_decay;
  Expression sum = state_sum + gradient * gradient;
  Writer writer{c, has_found, found};
  writer.write(param - rate * gradient / (sqrt(sum) + eps), param);
  writer.write(sum, state_sum);
  if (has_scale) writer.write(unscaled, raw_gradient);
}

// has_non_finite(self) -> float32 1 where any element of the row is infinite or NaN.
void has_non_finite(Context& c) {
  Expression finite = operand(c, 0).unary(ir::Opcode::IsFinite);
  c.set_exact_output(0, c.reduce(ir::Opcode::Or, !finite, 0));
}

// _amp_update_scale_(scale, growth_tracker, found_inf, growth factor, backoff factor, growth interval) -> (scale,
// growth_tracker).
void update_scale(Context& c) {
  Expression scale{c, c.input(0, DType::Float32)}, tracker{c, c.input(1, DType::Int32)};
  Expression found = Expression{c, c.input(2, DType::Float32)} > 0.0;
  Expression grown =
      (scale.convert(DType::Float64) * Expression{c, c.input(3, DType::Float64)}).convert(DType::Float32);
  Expression shrunk =
      (scale.convert(DType::Float64) * Expression{c, c.input(4, DType::Float64)}).convert(DType::Float32);
  Expression successes = tracker + tracker.same_int(1);
  Expression due = successes == Expression{c, c.input(5, DType::Int32)};
  Expression larger = select(due & grown.unary(ir::Opcode::IsFinite), grown, scale);
  c.set_exact_output(0, select(found, shrunk, larger));
  c.set_exact_output(1, select(found | due, tracker.same_int(0), successes));
}

}  // namespace

std::span<const Rule> optimizer_rules() {
  static const Rule rules[] = {
      {"adam_corrections", adam_corrections},
      {"_fused_adam_", adam<false>},
      {"_fused_adamw_", adam<true>},
      {"_fused_sgd_", sgd},
      {"adagrad_rate", adagrad_rate},
      {"_fused_adagrad_", adagrad},
      {"has_non_finite", has_non_finite, IterationKind::Reduce},
      {"_amp_update_scale_", update_scale},
  };
  return rules;
}

}  // namespace neuron::lowering
