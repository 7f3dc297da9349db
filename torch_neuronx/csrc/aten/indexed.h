// What operators that address elements by indices have in common.
#pragma once

#include "torch_neuronx/csrc/aten/bridge.h"

namespace neuron::aten {

// int32 and int64: the dtypes of indices.
bool is_index(const at::Tensor& tensor);

// Raises CPU's text when the tensors are not on one neuron device: an index on the CPU is no number, even without
// dimensions.
void require_one_device(const at::Tensor& self, const at::Tensor& index, const at::Tensor& source = {});

// Goes to the CPU for dtypes that its kernels of indexing do not take either: float8 and wide unsigned integers.
void require_indexed_dtype(const at::Tensor& tensor);

// The elements in row-major order as one dimension: the tensor's memory, or that of a recorded copy.
at::Tensor as_line(const at::Tensor& tensor);

// A 0-dimensional tensor as one of one dimension, on its memory; others as they are.
at::Tensor at_least_1d(const at::Tensor& tensor);

}  // namespace neuron::aten
