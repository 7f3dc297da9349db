// nll_loss and nll_loss2d: the picked log-probabilities, forward and backward.
#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

void check_dtypes(const at::Tensor& input, const at::Tensor& target, const at::Tensor& weight) {
  DType dtype = dtype_of(input);
  if (!is_float(dtype) || dtype_size(dtype) < 2 || target.scalar_type() != at::ScalarType::Long) decline();
  if (weight.defined() && weight.scalar_type() != input.scalar_type()) decline();
}

// A tensor of the target's shape as [N, 1, S…], which broadcasts over the classes.
at::Tensor over_classes(const at::Tensor& tensor, int64_t classes_at) {
  at::DimVector sizes(tensor.sizes()), strides(tensor.strides());
  sizes.insert(sizes.begin() + classes_at, 1);
  strides.insert(strides.begin() + classes_at, 0);
  return alias(tensor, sizes, strides);
}

// (self, target, weight?, reduction, ignore_index) -> (output, total_weight)
void forward(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &target = arguments.tensor(1), &weight = arguments.tensor(2);
  check_dtypes(self, target, weight);
  const at::Tensor &output = arguments.output(0), &total_weight = arguments.output(1);
  static const kernels::Kernel& found = kernel("nll_loss_forward");
  record_kernel(found, {output, total_weight}, {self, target, weight}, {arguments.integer(3), arguments.integer(4)});
}

// (grad_output, self, target, weight?, reduction, ignore_index, total_weight) -> grad_input
void backward(Arguments& arguments) {
  const at::Tensor &gradient = arguments.tensor(0), &self = arguments.tensor(1), &target = arguments.tensor(2),
                   &weight = arguments.tensor(3), &total_weight = arguments.tensor(6);
  check_dtypes(self, target, weight);
  if (gradient.scalar_type() != self.scalar_type()) decline();
  const at::Tensor& grad_input = arguments.output();
  if (grad_input.numel() == 0) return;
  // The targets are checked and their gradients computed first; placing them is a region's work, which joins the
  // gradient of log_softmax so that the zeros are never written.
  static const kernels::Kernel& scales = kernel("nll_loss_scales");
  const at::Tensor scale = empty(target.sizes(), self.scalar_type(), self.device());
  const int64_t classes_at = self.dim() == 1 ? 0 : 1;
  record_kernel(scales, {scale}, {gradient, target, total_weight, weight},
                {arguments.integer(4), arguments.integer(5), self.size(classes_at)});
  at::DimVector along(static_cast<size_t>(self.dim()), 0);
  along[static_cast<size_t>(classes_at)] = 1;
  static const lowering::Operator& op = operator_named("nll_loss_backward");
  const at::Tensor targets = over_classes(target, classes_at), scale_of = over_classes(scale, classes_at);
  record_elementwise(op, dtype_of(self), grad_input,
                     {Input::index(0, along, DType::Int32), Input(targets), Input(scale_of)});
}

const Registration registrations[] = {
    {"nll_loss_forward", forward},     {"nll_loss_forward.output", forward},
    {"nll_loss2d_forward", forward},   {"nll_loss2d_forward.output", forward},
    {"nll_loss_backward", backward},   {"nll_loss_backward.grad_input", backward},
    {"nll_loss2d_backward", backward}, {"nll_loss2d_backward.grad_input", backward},
};

}  // namespace
}  // namespace neuron::aten
