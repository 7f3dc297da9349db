// Weight normalisation, from the operations it is made of.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_weight_norm_differentiable_backward_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/norm_except_dim_ops.h>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

// _weight_norm_interface(v, g, dim) -> (w, norms): w = v g / |v|, norms over all dimensions but one.
void weight_norm(Arguments& arguments) {
  const at::Tensor &v = arguments.tensor(0), &g = arguments.tensor(1);
  at::Tensor norms = at::_ops::norm_except_dim::call(v, 2, arguments.integer(2));
  arguments.give(at::_ops::mul_Tensor::call(v, at::_ops::div_Tensor::call(g, norms)));
  arguments.give(std::move(norms));
}

// _weight_norm_interface_backward(grad_w, saved_v, saved_g, saved_norms, dim) -> (gradient of v, gradient of g)
void weight_norm_backward(Arguments& arguments) {
  auto gradients = at::_ops::_weight_norm_differentiable_backward::call(
      arguments.tensor(0), arguments.tensor(1), arguments.tensor(2), arguments.tensor(3), arguments.integer(4));
  arguments.give(std::get<0>(gradients));
  arguments.give(std::get<1>(gradients));
}

const Registration registrations[] = {
    {"_weight_norm_interface", weight_norm},
    {"_weight_norm_interface_backward", weight_norm_backward},
};

}  // namespace
}  // namespace neuron::aten
