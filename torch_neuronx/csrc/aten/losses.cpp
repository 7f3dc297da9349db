// Pointwise losses with their reductions, and their gradients.
#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>

#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// output <- the loss of each element, or the mean or sum of all.
void record_loss(const lowering::Operator& op, const at::Tensor& output, const at::Tensor& self,
                 const at::Tensor& target, int64_t reduction, std::span<const Input> inputs,
                 std::initializer_list<int64_t> attributes) {
  const DType common = dtype_of(output);
  const std::span flags(attributes.begin(), attributes.size());
  if (reduction == at::Reduction::None) return record_elementwise(op, common, output, inputs, flags);
  static const lowering::Operator &sum = operator_named("sum"), &mean = operator_named("mean");
  const at::Tensor each =
      empty(at::infer_size_dimvector(self.sizes(), target.sizes()), output.scalar_type(), output.device());
  record_elementwise(op, common, each, inputs, flags);
  const uint64_t mask = dimension_mask({}, each.dim());
  if (reduction == at::Reduction::Sum) {
    record_reduction({sum, sum, sum, sum}, common, compute_dtype(common), each, mask, output);
  } else {
    record_reduction({mean, sum, sum, mean}, common, compute_dtype(common), each, mask, output, {Input(each.numel())});
  }
}

double loss_norm(int64_t reduction, const at::Tensor& self) {
  return reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(self.numel()) : 1.0;
}

using Inputs = c10::SmallVector<Input, 6>;

// mse_loss(self, target, reduction); smooth_l1_loss and huber_loss with a parameter after it.
void loss(Arguments& arguments, const lowering::Operator& op, bool has_parameter) {
  const at::Tensor &self = arguments.tensor(0), &target = arguments.tensor(1);
  const at::Tensor& out = arguments.output();
  if (!out.is_floating_point()) decline();
  require_row_dtype(out);
  Inputs inputs{Input(self), Input(target)};
  if (has_parameter) inputs.push_back(Input(arguments.real(3)));
  record_loss(op, out, self, target, arguments.integer(2), std::span(inputs.data(), inputs.size()), {});
}
void squared_error(Arguments& arguments) { loss(arguments, operator_named("mse_loss"), false); }
void smooth_l1(Arguments& arguments) { loss(arguments, operator_named("smooth_l1_loss"), true); }
void huber(Arguments& arguments) {
  TORCH_CHECK(arguments.real(3) > 0, "huber_loss does not support non-positive values for delta.");
  loss(arguments, operator_named("huber_loss"), true);
}

// (grad_output, self, target, reduction, [parameter]).
void loss_backward(Arguments& arguments, const lowering::Operator& op, bool has_parameter) {
  const at::Tensor& self = arguments.tensor(1);
  const at::Tensor& out = arguments.output();
  if (!out.is_floating_point()) decline();
  require_row_dtype(out);
  Inputs inputs{Input(arguments.tensor(0)), Input(self), Input(arguments.tensor(2))};
  if (has_parameter) inputs.push_back(Input(arguments.real(4)));
  inputs.push_back(Input(loss_norm(arguments.integer(3), self)));
  record_elementwise(op, dtype_of(out), out, std::span(inputs.data(), inputs.size()));
}
void squared_error_backward(Arguments& arguments) {
  loss_backward(arguments, operator_named("mse_loss_backward"), false);
}
void smooth_l1_backward(Arguments& arguments) {
  loss_backward(arguments, operator_named("smooth_l1_loss_backward"), true);
}
void huber_backward(Arguments& arguments) { loss_backward(arguments, operator_named("huber_loss_backward"), true); }

// binary_cross_entropy(self, target, weight?, reduction).
void binary_cross_entropy(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("binary_cross_entropy");
  const at::Tensor &self = arguments.tensor(0), &target = arguments.tensor(1), &weight = arguments.tensor(2);
  const at::Tensor& out = arguments.output();
  require_row_dtype(out);
  Inputs inputs{Input(self), Input(target)};
  if (weight.defined()) inputs.push_back(weight);
  record_loss(op, out, self, target, arguments.integer(3), std::span(inputs.data(), inputs.size()), {weight.defined()});
}
// (grad_output, self, target, weight?, reduction).
void binary_cross_entropy_backward(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("binary_cross_entropy_backward");
  const at::Tensor &self = arguments.tensor(1), &weight = arguments.tensor(3);
  const at::Tensor& out = arguments.output();
  require_row_dtype(out);
  Inputs inputs{Input(arguments.tensor(0)), Input(self), Input(arguments.tensor(2))};
  if (weight.defined()) inputs.push_back(weight);
  inputs.push_back(Input(loss_norm(arguments.integer(4), self)));
  const int64_t attributes[] = {weight.defined()};
  record_elementwise(op, dtype_of(out), out, std::span(inputs.data(), inputs.size()), attributes);
}

const Registration registrations[] = {
    {"mse_loss", squared_error},
    {"mse_loss.out", squared_error},
    {"mse_loss_backward", squared_error_backward},
    {"mse_loss_backward.grad_input", squared_error_backward},
    {"smooth_l1_loss", smooth_l1},
    {"smooth_l1_loss.out", smooth_l1},
    {"smooth_l1_loss_backward", smooth_l1_backward},
    {"smooth_l1_loss_backward.grad_input", smooth_l1_backward},
    {"huber_loss", huber},
    {"huber_loss.out", huber},
    {"huber_loss_backward", huber_backward},
    {"huber_loss_backward.out", huber_backward},
    {"binary_cross_entropy", binary_cross_entropy},
    {"binary_cross_entropy.out", binary_cross_entropy},
    {"binary_cross_entropy_backward", binary_cross_entropy_backward},
    {"binary_cross_entropy_backward.grad_input", binary_cross_entropy_backward},
};

}  // namespace
}  // namespace neuron::aten
