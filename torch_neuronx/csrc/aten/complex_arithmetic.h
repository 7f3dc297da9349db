// Elementwise operators on complex numbers: what the region operators do not do, library kernels do
// (neuron/kernels/complex_arithmetic.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>

#include "torch_neuronx/csrc/aten/bridge.h"

namespace neuron::aten {

// The kernel of a region operator ("mul"), or null where the CPU computes it.
const kernels::Kernel* complex_kernel(std::string_view name);

// output[…] = kernel(inputs…) over output's shape; `common` is complex. Numbers and tensors of other dtypes are
// converted, and so is the result where the output has another dtype.
void record_complex(const kernels::Kernel& kernel, at::ScalarType common, const at::Tensor& output,
                    std::span<const Input> inputs);

}  // namespace neuron::aten
