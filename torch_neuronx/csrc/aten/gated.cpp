// Gated linear units: the two halves of a tensor are the operands of one pointwise rule.
#include <c10/core/WrapDimMinimal.h>

#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// Half `which` of the tensor along the dimension.
at::Tensor half(const at::Tensor& tensor, int64_t dim, int which) {
  at::DimVector sizes(tensor.sizes());
  const auto d = static_cast<size_t>(dim);
  sizes[d] /= 2;
  at::Tensor view = alias(tensor, sizes, tensor.strides());
  view.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset() + which * sizes[d] * tensor.stride(dim));
  return view;
}

// glu(self, dim).
void glu(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("glu");
  const at::Tensor& self = arguments.tensor(0);
  const at::Tensor& out = arguments.output();
  if (!out.is_floating_point()) decline();
  require_row_dtype(out);
  const int64_t dim = c10::maybe_wrap_dim(arguments.integer(1), self.dim());
  const at::Tensor first = half(self, dim, 0), second = half(self, dim, 1);
  record_elementwise(op, dtype_of(out), out, {Input(first), Input(second)});
}

// glu_backward(grad_output, self, dim).
void glu_backward(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("glu_backward");
  const at::Tensor &gradient = arguments.tensor(0), &self = arguments.tensor(1);
  if (!self.is_floating_point()) decline();
  require_row_dtype(self);
  const int64_t dim = c10::maybe_wrap_dim(arguments.integer(2), self.dim());
  at::Tensor out = empty(self.sizes(), self.scalar_type(), self.device());
  const at::Tensor first = half(self, dim, 0), second = half(self, dim, 1);
  record_row(op, dtype_of(self), gradient.sizes(), 0, {half(out, dim, 0), half(out, dim, 1)},
             {Input(gradient), Input(first), Input(second)});
  arguments.give(out);
}

const Registration registrations[] = {
    {"glu", glu},
    {"glu.out", glu},
    {"glu_backward", glu_backward},
};

}  // namespace
}  // namespace neuron::aten
