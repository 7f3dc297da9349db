// Copies between any two tensors of which one is on a neuron device: every dtype, layout and direction. A copy is a
// recorded command; only a copy into pageable host memory waits.
#pragma once

#include <ATen/core/Tensor.h>

namespace neuron::aten {

// target <- source with broadcasting, conversion and the conj and neg bits of both. CPU's error texts.
void copy_tensor(const at::Tensor& target, const at::Tensor& source, bool non_blocking);

// The tensor's memory seen as another dtype of the same size, or (complex) as real numbers with a last dimension of 2.
// Bits conj and neg are not carried over.
at::Tensor reinterpret(const at::Tensor& tensor, at::ScalarType dtype);
at::Tensor as_real(const at::Tensor& tensor);

}  // namespace neuron::aten
