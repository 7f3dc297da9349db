// The routines are templates over the register: this order.
// clang-format off
#include "neuron/kernels/vector_avx512.h"
#include "neuron/kernels/convolution_loops.h"
// clang-format on

namespace neuron::kernels {

const ConvolutionRoutines convolution_routines_avx512 = {"avx512",   copy_runs,       copy_run_pairs, copy_line,
                                                         accumulate, accumulate_grid, add_bias,       correlate};

}  // namespace neuron::kernels
