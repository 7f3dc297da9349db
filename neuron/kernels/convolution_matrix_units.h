// Convolutions of bfloat16 on the processor's matrix units.
#pragma once

#include "neuron/kernels/convolution.h"

namespace neuron::kernels {

void run_convolution_matrix_weight(const ConvolutionProblem& problem);  // the gradient of the weight

// Threads that the products of a convolution are worth.
int convolution_matrix_threads(const ConvolutionProblem& problem);

}  // namespace neuron::kernels
