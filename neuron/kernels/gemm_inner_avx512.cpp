// AVX-512: registers of 16 lanes.
// The routines are templates over the register: this order.
// clang-format off
#include "neuron/kernels/vector_avx512.h"
#include "neuron/kernels/gemm_inner_routines.h"
// clang-format on

namespace neuron::kernels {

const InnerProducts inner_products_avx512 = {"avx512", Vector::kLanes, compute<ManyStreams>, arrange, combine};
const InnerProducts inner_products_avx512_few_streams = {"avx512", Vector::kLanes, compute<FewStreams>, arrange,
                                                         combine};

}  // namespace neuron::kernels
