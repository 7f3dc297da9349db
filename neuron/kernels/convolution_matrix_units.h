// Convolutions of bfloat16 on the processor's matrix units.
#pragma once

#include "neuron/kernels/convolution.h"

namespace neuron::kernels {

void run_convolution_matrix_weight(const ConvolutionProblem& problem);  // Weight

}  // namespace neuron::kernels
