// Library kernels that read and write contiguous memory only.
#pragma once

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"

namespace neuron::aten {

// record_kernel on contiguous tensors: an input of another layout is copied before, and an output of another layout (an
// out= tensor, a channels-last result) is copied to from a dense one.
void record_dense_kernel(const kernels::Kernel& kernel, std::span<const at::Tensor> outputs,
                         std::span<const at::Tensor> inputs, std::span<const int64_t> attributes = {},
                         std::span<const Scalar> scalars = {});
inline void record_dense_kernel(const kernels::Kernel& kernel, std::initializer_list<at::Tensor> outputs,
                                std::initializer_list<at::Tensor> inputs, std::span<const int64_t> attributes = {},
                                std::span<const Scalar> scalars = {}) {
  record_dense_kernel(kernel, std::span(outputs.begin(), outputs.size()), std::span(inputs.begin(), inputs.size()),
                      attributes, scalars);
}

}  // namespace neuron::aten
