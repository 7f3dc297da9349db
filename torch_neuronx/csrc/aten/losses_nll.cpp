// Negative log likelihood: the class of each target is looked up by a library kernel, which also checks it.
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// (self, target, weight?, reduction, ignore_index) -> (output, total_weight), for vectors, matrices and images of
// classes.
void forward(Arguments& arguments) {
  static const kernels::Kernel& op = kernel("nll_loss_forward");
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  const auto& outputs = arguments.outputs();
  record_kernel(op, {outputs[0], outputs[1]}, {self, arguments.tensor(1), arguments.tensor(2)},
                {arguments.integer(3), arguments.integer(4)});
}

// (grad_output, self, target, weight?, reduction, ignore_index, total_weight).
void backward(Arguments& arguments) {
  static const kernels::Kernel& op = kernel("nll_loss_backward");
  const at::Tensor& out = arguments.output();
  require_row_dtype(out);
  if (out.numel() == 0) return;
  record_kernel(op, {out}, {arguments.tensor(0), arguments.tensor(2), arguments.tensor(6), arguments.tensor(3)},
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
