// nll_loss and nll_loss2d: the picked log-probabilities, forward and backward.
#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

void check_dtypes(const at::Tensor& input, const at::Tensor& target, const at::Tensor& weight) {
  DType dtype = dtype_of(input);
  if (!is_float(dtype) || dtype_size(dtype) < 2 || target.scalar_type() != at::ScalarType::Long) decline();
  if (weight.defined() && weight.scalar_type() != input.scalar_type()) decline();
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
  static const kernels::Kernel& found = kernel("nll_loss_backward");
  record_kernel(found, {grad_input}, {gradient, target, total_weight, weight},
                {arguments.integer(4), arguments.integer(5)});
}

const Registration registrations[] = {
    {"nll_loss_forward", forward},     {"nll_loss_forward.output", forward},
    {"nll_loss2d_forward", forward},   {"nll_loss2d_forward.output", forward},
    {"nll_loss_backward", backward},   {"nll_loss_backward.grad_input", backward},
    {"nll_loss2d_backward", backward}, {"nll_loss2d_backward.grad_input", backward},
};

}  // namespace
}  // namespace neuron::aten
