// Fused optimizer steps and gradient scaling: one or two list commands per call, no wait for the device anywhere. What
// depends on a step counter is computed once per tensor in double, as items of one element.
#include <algorithm>
#include <iterator>

#include "torch_neuronx/csrc/aten/list_operands.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"
#include "torch_neuronx/csrc/aten/unboxed_lists.h"

namespace neuron::aten {
namespace {

using Optional = const std::optional<at::Tensor>&;

// Lists of other lengths than the parameters' are worded by the CPU.
void require_length(at::TensorList parameters, at::TensorList list) {
  if (list.size() != parameters.size()) refuse();
}

DType common_dtype(at::TensorList parameters) {
  for (const at::Tensor& parameter : parameters) {
    require_row_dtype(parameter);
    if (parameter.scalar_type() != parameters[0].scalar_type()) decline();
  }
  return dtype_of(parameters[0]);
}

// One number per parameter, in double, for each of some columns.
at::Tensor table_of(at::TensorList parameters, int64_t columns) {
  return empty({columns * static_cast<int64_t>(parameters.size())}, at::ScalarType::Double, parameters[0].device());
}

// The scaler's part of a step: the gradient is divided by the scale and written back, nothing else changes where an
// infinity was found.
struct Scaler {
  Optional scale, found;
  void add_to(ListOperands& inputs, ListOperands& outputs, at::TensorList gradients) const {
    if (scale.has_value()) inputs.push_back(*scale);
    if (found.has_value()) inputs.push_back(*found);
    if (scale.has_value()) outputs.push_back(gradients);
  }
};

void record_steps(const lowering::Operator& op, at::TensorList parameters, const ListOperands& outputs,
                  const ListOperands& inputs, std::initializer_list<int64_t> attributes) {
  record_list(op, common_dtype(parameters), /*reduces=*/false, parameters, std::span(outputs.data(), outputs.size()),
              std::span(inputs.data(), inputs.size()), std::span(attributes.begin(), attributes.size()));
}

// (self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, beta1, beta2, weight_decay, eps, amsgrad,
// maximize, grad_scale?, found_inf?). A learning rate is a number or a 0-dimensional tensor.
template <bool decoupled>
struct Adam {
  template <typename Rate>
  static void run(at::TensorList parameters, at::TensorList gradients, at::TensorList averages, at::TensorList squares,
                  at::TensorList largest, at::TensorList steps, const Rate& lr, double beta1, double beta2,
                  double decay, double eps, bool amsgrad, bool maximize, Optional scale, Optional found) {
    static const lowering::Operator &op = operator_named(decoupled ? "_fused_adamw_" : "_fused_adam_"),
                                    &corrections = operator_named("adam_corrections");
    for (at::TensorList list : {gradients, averages, squares, steps}) require_length(parameters, list);
    if (amsgrad) require_length(parameters, largest);
    if (parameters.empty()) return;
    common_dtype(parameters);
    const at::Tensor table = table_of(parameters, 2);
    const ListOperand step_size = ListOperand::element_of(table, 0), root = ListOperand::element_of(table, 1);
    const ListOperand numbers[] = {steps, lr, beta1, beta2}, results[] = {step_size, root};
    // The rule's own arithmetic is double whatever the common dtype is: it stands for the host's in CPU's loop.
    record_list(corrections, DType::Float32, /*reduces=*/false, steps, results, numbers);
    ListOperands inputs{parameters, gradients, averages, squares}, outputs{parameters, averages, squares};
    if (amsgrad) {
      inputs.push_back(largest);
      outputs.push_back(largest);
    }
    for (const ListOperand& input : {ListOperand(lr), ListOperand(beta1), ListOperand(beta2), ListOperand(decay),
                                     ListOperand(eps), step_size, root})
      inputs.push_back(input);
    Scaler{scale, found}.add_to(inputs, outputs, gradients);
    record_steps(op, parameters, outputs, inputs, {scale.has_value(), found.has_value(), amsgrad, maximize});
  }
};
template <bool decoupled, typename Rate>
using AdamKernel =
    UnboxedList<Adam<decoupled>, at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                at::TensorList, Rate, double, double, double, double, bool, bool, Optional, Optional>;

// (self, grads, momentum_buffer_list, *, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
// grad_scale?, found_inf?).
struct Sgd {
  template <typename Rate>
  static void run(at::TensorList parameters, at::TensorList gradients, at::TensorList buffers, double decay,
                  double momentum, const Rate& lr, double dampening, bool nesterov, bool maximize, bool first_step,
                  Optional scale, Optional found) {
    static const lowering::Operator& op = operator_named("_fused_sgd_");
    const bool has_momentum = !buffers.empty();
    require_length(parameters, gradients);
    if (has_momentum) require_length(parameters, buffers);
    if (parameters.empty()) return;
    ListOperands inputs{parameters, gradients}, outputs{parameters};
    if (has_momentum) {
      inputs.push_back(buffers);
      outputs.push_back(buffers);
    }
    for (const ListOperand& input :
         {ListOperand(decay), ListOperand(momentum), ListOperand(lr), ListOperand(dampening)})
      inputs.push_back(input);
    Scaler{scale, found}.add_to(inputs, outputs, gradients);
    record_steps(op, parameters, outputs, inputs,
                 {scale.has_value(), found.has_value(), has_momentum, nesterov, maximize, first_step});
  }
};
template <typename Rate>
using SgdKernel = UnboxedList<Sgd, at::TensorList, at::TensorList, at::TensorList, double, double, Rate, double, bool,
                              bool, bool, Optional, Optional>;

// (self, grads, state_sums, state_steps, *, lr, lr_decay, weight_decay, eps, maximize, grad_scale?, found_inf?).
struct Adagrad {
  template <typename Rate>
  static void run(at::TensorList parameters, at::TensorList gradients, at::TensorList sums, at::TensorList steps,
                  const Rate& lr, double lr_decay, double decay, double eps, bool maximize, Optional scale,
                  Optional found) {
    static const lowering::Operator &op = operator_named("_fused_adagrad_"), &rate_of = operator_named("adagrad_rate");
    for (at::TensorList list : {gradients, sums, steps}) require_length(parameters, list);
    if (parameters.empty()) return;
    common_dtype(parameters);
    const at::Tensor table = table_of(parameters, 1);
    const ListOperand rate = ListOperand::element_of(table);
    const ListOperand numbers[] = {steps, lr, lr_decay};
    record_list(rate_of, DType::Float32, /*reduces=*/false, steps, {&rate, 1}, numbers);
    ListOperands inputs{parameters, gradients, sums, rate, decay, eps}, outputs{parameters, sums};
    Scaler{scale, found}.add_to(inputs, outputs, gradients);
    record_steps(op, parameters, outputs, inputs, {scale.has_value(), found.has_value(), maximize});
  }
};
template <typename Rate>
using AdagradKernel = UnboxedList<Adagrad, at::TensorList, at::TensorList, at::TensorList, at::TensorList, Rate, double,
                                  double, double, bool, Optional, Optional>;

// _amp_foreach_non_finite_check_and_unscale_(self[], found_inf, inv_scale).
class CheckAndUnscale {
 public:
  static void run(at::TensorList gradients, const at::Tensor& found, const at::Tensor& inverse_scale) {
    TORCH_CHECK(found.numel() == 1, "found_inf must be a 1-element tensor.");
    TORCH_CHECK(inverse_scale.numel() == 1, "inv_scale must be a 1-element tensor.");
    TORCH_CHECK(found.scalar_type() == at::ScalarType::Float, "found_inf must be a float tensor.");
    TORCH_CHECK(inverse_scale.scalar_type() == at::ScalarType::Float, "inv_scale must be a float tensor.");
    for (const at::Tensor& gradient : gradients) require_row_dtype(gradient);
    auto same = [&](const at::Tensor& gradient) {
      return gradient.numel() != 0 && gradient.scalar_type() == gradients[0].scalar_type();
    };
    if (std::all_of(gradients.begin(), gradients.end(), same)) {
      if (!gradients.empty()) unscale(gradients, found, inverse_scale);
      return;
    }
    // Of one dtype at a time; an empty one has no flag to give.
    std::vector<at::Tensor> rest(gradients.begin(), gradients.end());
    std::erase_if(rest, [](const at::Tensor& gradient) { return gradient.numel() == 0; });
    while (!rest.empty()) {
      const at::ScalarType type = rest[0].scalar_type();
      std::vector<at::Tensor> list;
      std::copy_if(rest.begin(), rest.end(), std::back_inserter(list),
                   [&](const at::Tensor& gradient) { return gradient.scalar_type() == type; });
      unscale(list, found, inverse_scale);
      std::erase_if(rest, [&](const at::Tensor& gradient) { return gradient.scalar_type() == type; });
    }
  }

 private:
  static void unscale(at::TensorList gradients, const at::Tensor& found, const at::Tensor& inverse_scale) {
    static const lowering::Operator &non_finite = operator_named("has_non_finite"),
                                    &maximum = operator_named("maximum"), &multiply = operator_named("mul"),
                                    &amax = operator_named("amax");
    const DType common = dtype_of(gradients[0]);
    const at::Device device = gradients[0].device();
    const at::Tensor flags = empty({static_cast<int64_t>(gradients.size())}, at::ScalarType::Float, device);
    const at::Tensor flag = empty({}, at::ScalarType::Float, device);
    const ListOperand each = gradients, flag_of_each = ListOperand::element_of(flags);
    record_list(non_finite, common, /*reduces=*/true, gradients, {&flag_of_each, 1}, {&each, 1});
    const ListOperand factors[] = {each, inverse_scale};
    record_list(multiply, common, /*reduces=*/false, gradients, {&each, 1}, factors);
    record_reduction({amax, amax, amax, amax}, DType::Float32, DType::Float32, flags, 1, flag);
    record_elementwise(maximum, DType::Float32, found, {Input(found), Input(flag)});
  }
};
using CheckAndUnscaleKernel = UnboxedList<CheckAndUnscale, at::TensorList, const at::Tensor&, const at::Tensor&>;

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
    {"_fused_adam_", never, &make_unboxed<AdamKernel<false, double>>},
    {"_fused_adam_.tensor_lr", never, &make_unboxed<AdamKernel<false, const at::Tensor&>>},
    {"_fused_adamw_", never, &make_unboxed<AdamKernel<true, double>>},
    {"_fused_adamw_.tensor_lr", never, &make_unboxed<AdamKernel<true, const at::Tensor&>>},
    {"_fused_sgd_", never, &make_unboxed<SgdKernel<double>>},
    {"_fused_sgd_.tensor_lr", never, &make_unboxed<SgdKernel<const at::Tensor&>>},
    {"_fused_adagrad_", never, &make_unboxed<AdagradKernel<double>>},
    {"_fused_adagrad_.tensor_lr", never, &make_unboxed<AdagradKernel<const at::Tensor&>>},
    {"_amp_foreach_non_finite_check_and_unscale_", never, &make_unboxed<CheckAndUnscaleKernel>},
    {"_amp_update_scale_", update_scale},
};

}  // namespace
}  // namespace neuron::aten
