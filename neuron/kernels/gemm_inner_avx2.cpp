// AVX2: registers of 8 lanes.
// The routines are templates over the register: this order.
// clang-format off
#include "neuron/kernels/vector_avx2.h"
#include "neuron/kernels/gemm_inner_routines.h"
// clang-format on

namespace neuron::kernels {

const InnerProducts inner_products_avx2 = {"avx2", Vector::kLanes, compute<ManyStreams>, arrange, combine};

}  // namespace neuron::kernels
