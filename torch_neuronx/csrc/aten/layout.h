// Shapes and strides of pointwise results, as CPU PyTorch's iterator chooses them.
#pragma once

#include <ATen/core/DimVector.h>
#include <ATen/core/Tensor.h>

#include <span>

namespace neuron::aten {

// Broadcasts `other` into `sizes`; false when they do not fit.
bool broadcast_into(at::DimVector& sizes, at::IntArrayRef other);
// True when a tensor of `sizes` can be read as one of `target` sizes.
bool expands_to(at::IntArrayRef sizes, at::IntArrayRef target);

// Strides of a new result of `sizes` computed from `operands` (device tensors and numbers): operands of one dense
// layout keep it; otherwise dimensions are ordered by the operands' strides, the first operand that tells two
// dimensions apart deciding.
at::DimVector pointwise_strides(at::IntArrayRef sizes, std::span<const at::Tensor* const> operands);

}  // namespace neuron::aten
