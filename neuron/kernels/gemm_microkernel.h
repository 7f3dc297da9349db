// The register tile of the packed GEMM and its packing routines, one set per instruction set. All sets do the same
// arithmetic in the same order: each element of a tile is one chain of fused multiply-adds over k, starting from zero.
#pragma once

#include <cstdint>

namespace neuron::kernels {

// Element types a panel can be packed from; panels are always float32.
enum class PackedSource : uint8_t { Float32, BFloat16, Float16 };

struct GemmMicrokernel {
  const char* name;
  int rows;     // of a register tile: panels of a hold `rows` values per k
  int columns;  // panels of b hold `columns` values per k

  // tile[i * stride + j] = alpha * sum (accumulate false) or tile[...] + alpha * sum, with a, b packed panels of depth
  // k.
  void (*compute)(int64_t k, const float* a, const float* b, float alpha, float* tile, int64_t stride, bool accumulate);

  // Packs `count` <= width lanes by `depth` positions: panel[p * width + lane] = source[lane * lane_stride + p *
  // depth_stride]; lanes from count to width become zero. Fast when one of the two strides is 1.
  void (*pack)(PackedSource type, const void* source, int64_t lane_stride, int64_t depth_stride, int64_t count,
               int64_t depth, int width, float* panel);

  // Rounds `count` adjacent values to the type.
  void (*store)(PackedSource type, const float* values, int64_t count, void* target);
};

extern const GemmMicrokernel gemm_microkernel_avx2;
extern const GemmMicrokernel gemm_microkernel_avx512;

struct GemmProblem;
// The packed GEMM with a given set, which the processor must have: lets tests compare instruction sets.
void run_gemm_packed(const GemmProblem& problem, const GemmMicrokernel& kernel);

// The best set this processor has; null when it has not even AVX2 and FMA.
const GemmMicrokernel* detected_gemm_microkernel();

}  // namespace neuron::kernels
