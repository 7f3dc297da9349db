// Numbers as operands, and the dtype that operands are compared in.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

namespace neuron::aten {

// A 0-dimensional CPU tensor that takes part in type promotion as a Python number does. Raises CPU's text for a complex
// one.
at::Tensor as_operand(const at::Scalar& number);

// PyTorch's common dtype of two operands.
at::ScalarType common_dtype(const at::Tensor& a, const at::Tensor& b);

// `tensor` on `device`, in `dtype`.
at::Tensor as_common(const at::Tensor& tensor, at::ScalarType dtype, at::Device device);

}  // namespace neuron::aten
