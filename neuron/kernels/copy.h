// Moving elements: strided copies with or without conversion, transposing in tiles where the two sides run along
// different dimensions.
#pragma once

#include "neuron/kernels/kernel.h"

namespace neuron::kernels {

// target <- source, equal sizes; source strides may be 0. Converts when the dtypes differ.
void copy_tensor(const TensorView& target, const TensorView& source, int threads);

}  // namespace neuron::kernels
