// Fused optimizer steps and gradient scaling: one recorded command per tensor, no wait for the device anywhere. What
// depends on a step counter is computed once per tensor in double, as a command of one element.
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

using Inputs = c10::SmallVector<Input, 16>;
using Outputs = c10::SmallVector<at::Tensor, 6>;

void record_step(const lowering::Operator& op, const at::Tensor& parameter, const Outputs& outputs,
                 const Inputs& inputs, std::initializer_list<int64_t> attributes) {
  if (parameter.numel() == 0) return;
  record_row(op, dtype_of(parameter), parameter.sizes(), 0, std::span(outputs.data(), outputs.size()),
             std::span(inputs.data(), inputs.size()), std::span(attributes.begin(), attributes.size()));
}

void require_same_length(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& list,
                         const char* name) {
  TORCH_CHECK(parameters.size() == list.size(), "params and ", name, " must have the same length, but have lengths ",
              parameters.size(), " and ", list.size());
}

// A learning rate is a number or a 0-dimensional tensor.
Input learning_rate(const Arguments& arguments, int i, bool tensor) {
  return tensor ? Input(arguments.tensor(i)) : Input(arguments.real(i));
}

at::Tensor one_double(const at::Tensor& like) { return empty({}, at::ScalarType::Double, like.device()); }

void add_optional(Inputs& inputs, const at::Tensor& tensor) {
  if (tensor.defined()) inputs.push_back(tensor);
}

// (self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, beta1, beta2, weight_decay, eps, amsgrad,
// maximize, grad_scale?, found_inf?).
void adam(Arguments& arguments, const lowering::Operator& op, bool tensor_rate) {
  static const lowering::Operator& corrections = operator_named("adam_corrections");
  const auto parameters = arguments.tensors(0), gradients = arguments.tensors(1), averages = arguments.tensors(2);
  const auto squares = arguments.tensors(3), largest = arguments.tensors(4), steps = arguments.tensors(5);
  const Input lr = learning_rate(arguments, 6, tensor_rate);
  const double beta1 = arguments.real(7), beta2 = arguments.real(8), decay = arguments.real(9),
               eps = arguments.real(10);
  const bool amsgrad = arguments.boolean(11), maximize = arguments.boolean(12);
  const at::Tensor &scale = arguments.tensor(13), &found = arguments.tensor(14);
  require_same_length(parameters, gradients, "grads");
  require_same_length(parameters, averages, "exp_avgs");
  require_same_length(parameters, squares, "exp_avg_sqs");
  require_same_length(parameters, steps, "state_steps");
  if (amsgrad) require_same_length(parameters, largest, "max_exp_avg_sqs");
  for (const at::Tensor& parameter : parameters) require_row_dtype(parameter);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i];
    const at::Tensor step_size = one_double(parameter), root = one_double(parameter);
    // The rule's own arithmetic is double whatever the common dtype is: it stands for the host's in CPU's loop.
    record_row(corrections, DType::Float32, {}, 0, {step_size, root},
               {Input(steps[i]), lr, Input(beta1), Input(beta2)});
    Inputs inputs{Input(parameter), Input(gradients[i]), Input(averages[i]), Input(squares[i])};
    Outputs outputs{parameter, averages[i], squares[i]};
    if (amsgrad) {
      inputs.push_back(largest[i]);
      outputs.push_back(largest[i]);
    }
    for (const Input& input : {lr, Input(beta1), Input(beta2), Input(decay), Input(eps), Input(step_size), Input(root)})
      inputs.push_back(input);
    add_optional(inputs, scale);
    add_optional(inputs, found);
    if (scale.defined()) outputs.push_back(gradients[i]);
    record_step(op, parameter, outputs, inputs, {scale.defined(), found.defined(), amsgrad, maximize});
  }
}
void adam_number(Arguments& arguments) { adam(arguments, operator_named("_fused_adam_"), false); }
void adam_tensor(Arguments& arguments) { adam(arguments, operator_named("_fused_adam_"), true); }
void adamw_number(Arguments& arguments) { adam(arguments, operator_named("_fused_adamw_"), false); }
void adamw_tensor(Arguments& arguments) { adam(arguments, operator_named("_fused_adamw_"), true); }

// (self, grads, momentum_buffer_list, *, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
// grad_scale?, found_inf?).
void sgd(Arguments& arguments, bool tensor_rate) {
  static const lowering::Operator& op = operator_named("_fused_sgd_");
  const auto parameters = arguments.tensors(0), gradients = arguments.tensors(1), buffers = arguments.tensors(2);
  const double decay = arguments.real(3), momentum = arguments.real(4), dampening = arguments.real(6);
  const Input lr = learning_rate(arguments, 5, tensor_rate);
  const bool nesterov = arguments.boolean(7), maximize = arguments.boolean(8), first_step = arguments.boolean(9);
  const at::Tensor &scale = arguments.tensor(10), &found = arguments.tensor(11);
  const bool has_momentum = !buffers.empty();
  require_same_length(parameters, gradients, "grads");
  if (has_momentum) require_same_length(parameters, buffers, "momentum_buffer_list");
  for (const at::Tensor& parameter : parameters) require_row_dtype(parameter);
  for (size_t i = 0; i < parameters.size(); ++i) {
    Inputs inputs{Input(parameters[i]), Input(gradients[i])};
    Outputs outputs{parameters[i]};
    if (has_momentum) {
      inputs.push_back(buffers[i]);
      outputs.push_back(buffers[i]);
    }
    for (const Input& input : {Input(decay), Input(momentum), lr, Input(dampening)}) inputs.push_back(input);
    add_optional(inputs, scale);
    add_optional(inputs, found);
    if (scale.defined()) outputs.push_back(gradients[i]);
    record_step(op, parameters[i], outputs, inputs,
                {scale.defined(), found.defined(), has_momentum, nesterov, maximize, first_step});
  }
}
void sgd_number(Arguments& arguments) { sgd(arguments, false); }
void sgd_tensor(Arguments& arguments) { sgd(arguments, true); }

// (self, grads, state_sums, state_steps, *, lr, lr_decay, weight_decay, eps, maximize, grad_scale?, found_inf?).
void adagrad(Arguments& arguments, bool tensor_rate) {
  static const lowering::Operator &op = operator_named("_fused_adagrad_"), &rate_of = operator_named("adagrad_rate");
  const auto parameters = arguments.tensors(0), gradients = arguments.tensors(1), sums = arguments.tensors(2);
  const auto steps = arguments.tensors(3);
  const Input lr = learning_rate(arguments, 4, tensor_rate);
  const double lr_decay = arguments.real(5), decay = arguments.real(6), eps = arguments.real(7);
  const bool maximize = arguments.boolean(8);
  const at::Tensor &scale = arguments.tensor(9), &found = arguments.tensor(10);
  require_same_length(parameters, gradients, "grads");
  require_same_length(parameters, sums, "state_sums");
  require_same_length(parameters, steps, "state_steps");
  for (const at::Tensor& parameter : parameters) require_row_dtype(parameter);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor rate = one_double(parameters[i]);
    record_row(rate_of, DType::Float32, {}, 0, {rate}, {Input(steps[i]), lr, Input(lr_decay)});
    Inputs inputs{Input(parameters[i]), Input(gradients[i]), Input(sums[i]), Input(rate), Input(decay), Input(eps)};
    Outputs outputs{parameters[i], sums[i]};
    add_optional(inputs, scale);
    add_optional(inputs, found);
    if (scale.defined()) outputs.push_back(gradients[i]);
    record_step(op, parameters[i], outputs, inputs, {scale.defined(), found.defined(), maximize});
  }
}
void adagrad_number(Arguments& arguments) { adagrad(arguments, false); }
void adagrad_tensor(Arguments& arguments) { adagrad(arguments, true); }

// _amp_foreach_non_finite_check_and_unscale_(self[], found_inf, inv_scale).
void check_and_unscale(Arguments& arguments) {
  static const lowering::Operator &non_finite = operator_named("has_non_finite"), &maximum = operator_named("maximum"),
                                  &multiply = operator_named("mul"), &amax = operator_named("amax");
  const auto gradients = arguments.tensors(0);
  const at::Tensor &found = arguments.tensor(1), &inverse_scale = arguments.tensor(2);
  TORCH_CHECK(found.numel() == 1, "found_inf must be a 1-element tensor.");
  TORCH_CHECK(inverse_scale.numel() == 1, "inv_scale must be a 1-element tensor.");
  TORCH_CHECK(found.scalar_type() == at::ScalarType::Float, "found_inf must be a float tensor.");
  TORCH_CHECK(inverse_scale.scalar_type() == at::ScalarType::Float, "inv_scale must be a float tensor.");
  const at::Tensor factor = alias(inverse_scale, {}, {});
  for (const at::Tensor& gradient : gradients) {
    require_row_dtype(gradient);
    if (gradient.numel() == 0) continue;
    const at::Tensor flag = empty({}, at::ScalarType::Float, gradient.device());
    const DType common = dtype_of(gradient);
    record_reduction({non_finite, non_finite, amax, amax}, common, DType::Float32, gradient,
                     dimension_mask({}, gradient.dim()), flag);
    record_elementwise(maximum, DType::Float32, found, {Input(found), Input(flag)});
    record_elementwise(multiply, common, gradient, {Input(gradient), Input(factor)});
  }
}

// _amp_update_scale_(self, growth_tracker, found_inf, growth factor, backoff factor, growth interval).
void update_scale(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("_amp_update_scale_");
  const at::Tensor &scale = arguments.tensor(0), &tracker = arguments.tensor(1), &found = arguments.tensor(2);
  TORCH_CHECK(tracker.numel() == 1, "growth_tracker must be a 1-element tensor.");
  TORCH_CHECK(scale.numel() == 1, "current_scale must be a 1-element tensor.");
  TORCH_CHECK(found.numel() == 1, "found_inf must be a 1-element tensor.");
  const at::Tensor target = alias(scale, {}, {}), count = alias(tracker, {}, {});
  record_row(op, DType::Float32, {}, 0, {target, count},
             {Input(target), Input(count), Input(alias(found, {}, {})), Input(arguments.real(3)),
              Input(arguments.real(4)), Input(arguments.integer(5))});
  arguments.give(scale);
}

const Registration registrations[] = {
    {"_fused_adam_", adam_number},
    {"_fused_adam_.tensor_lr", adam_tensor},
    {"_fused_adamw_", adamw_number},
    {"_fused_adamw_.tensor_lr", adamw_tensor},
    {"_fused_sgd_", sgd_number},
    {"_fused_sgd_.tensor_lr", sgd_tensor},
    {"_fused_adagrad_", adagrad_number},
    {"_fused_adagrad_.tensor_lr", adagrad_tensor},
    {"_amp_foreach_non_finite_check_and_unscale_", check_and_unscale},
    {"_amp_update_scale_", update_scale},
};

}  // namespace
}  // namespace neuron::aten
