// The routines are templates over the register: this order.
// clang-format off
#include "neuron/kernels/vector_avx2.h"
#include "neuron/kernels/convolution_loops.h"
// clang-format on

namespace neuron::kernels {

const ConvolutionRoutines convolution_routines_avx2 = {"avx2",     copy_runs,       copy_run_pairs, copy_line,
                                                       accumulate, accumulate_grid, add_bias,       correlate};

}  // namespace neuron::kernels
