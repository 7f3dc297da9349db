// Packing shared by the AVX-512 sets of the packed GEMM.
#pragma once

#include "neuron/kernels/gemm_microkernel.h"

namespace neuron::kernels {

// GemmMicrokernel::pack to words of float32. Needs AVX-512 F, BW and VL.
void pack_avx512(PackedSource type, const void* source, int64_t lane_stride, int64_t depth_stride, int64_t count,
                 int64_t depth, int width, float* panel);

// Words that are pairs of neighbours along the depth: word p of lane l is at source + l * lane_stride + 2 * p.
void pack_pairs_avx512(const uint16_t* source, int64_t lane_stride, int64_t count, int64_t words, int width,
                       float* panel);

}  // namespace neuron::kernels
