// float64 and complex128 on a device that has neither: Trainium computes them in float32. The embedded device computes
// them exactly, and as Trainium does when torch.backends.neuron.float64 is "float32". Asked when an operation is
// recorded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "neuron/base/dtype.h"
#include "neuron/base/scalar.h"
#include "neuron/kernels/kernel.h"
#include "neuron/lowering/lowering.h"
#include "torch_neuronx/csrc/aten/bridge.h"

namespace neuron::aten {

constexpr bool is_wide(DType dtype) { return dtype == DType::Float64 || dtype == DType::Complex128; }

// True when PyTorch's Python code itself asks for the operation (to print a tensor, to scale a loss): such a use is not
// warned of. Asked from any thread, with or without the GIL.
using TorchAsks = bool (*)();
void set_torch_asks(TorchAsks asks);

// The common dtype a region computes in: `common`, or its half under the setting. Warns once per process of a wide one.
// Filling stores a number and computes nothing.
DType region_precision(const lowering::Operator& op, DType common);

// False for kernels that only move or compare elements, and when they compute exactly; warns as above.
bool computes_in_float32(const kernels::Kernel& kernel);

// Records the kernel over float32 copies of the wide tensors and copies the results back.
void record_kernel_in_float32(const kernels::Kernel& kernel, TensorReferences outputs, TensorReferences inputs,
                              std::span<const int64_t> attributes, std::span<const Scalar> scalars, bool reads_outputs);

}  // namespace neuron::aten
