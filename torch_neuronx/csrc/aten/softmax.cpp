// Softmax, log-softmax and their gradients along one dimension.
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// (self, dim, half_to_float).
void forward(Arguments& arguments, const lowering::Operator& op) {
  const at::Tensor& self = arguments.tensor(0);
  const at::Tensor& out = arguments.output();
  if (!out.is_floating_point()) decline();
  require_row_dtype(out);
  record_rows(op, dtype_of(out), self.sizes(), dimension_mask({arguments.integer(1)}, self.dim()), {out},
              {Input(self)});
}
void softmax(Arguments& arguments) { forward(arguments, operator_named("_softmax")); }
void log_softmax(Arguments& arguments) { forward(arguments, operator_named("_log_softmax")); }

// (grad_output, output, dim, input_dtype).
void backward(Arguments& arguments, const lowering::Operator& op) {
  const at::Tensor& gradient = arguments.tensor(0);
  const at::Tensor& output = arguments.tensor(1);
  require_row_dtype(gradient);
  require_row_dtype(output);
  const at::Tensor& out = arguments.output();
  record_rows(op, dtype_of(output), output.sizes(), dimension_mask({arguments.integer(2)}, output.dim()), {out},
              {Input(gradient), Input(output)});
}
void softmax_backward(Arguments& arguments) { backward(arguments, operator_named("_softmax_backward_data")); }
void log_softmax_backward(Arguments& arguments) { backward(arguments, operator_named("_log_softmax_backward_data")); }

const Registration registrations[] = {
    {"_softmax", softmax},
    {"_softmax.out", softmax},
    {"_log_softmax", log_softmax},
    {"_log_softmax.out", log_softmax},
    {"_softmax_backward_data", softmax_backward},
    {"_softmax_backward_data.out", softmax_backward},
    {"_log_softmax_backward_data", log_softmax_backward},
    {"_log_softmax_backward_data.out", log_softmax_backward},
};

}  // namespace
}  // namespace neuron::aten
