// The register tile of the packed GEMM and its packing routines, one set per instruction set. Panels are made of words
// of 32 bits: a float32, or a pair of bfloat16 that follow each other along k. The float32 sets do the same arithmetic
// in the same order: each element of a tile is one chain of fused multiply-adds over k, starting from zero.
#pragma once

#include <cstdint>

namespace neuron::kernels {

// Element types a panel can be packed from.
enum class PackedSource : uint8_t { Float32, BFloat16, Float16 };

// An operand of a register tile: word p of lane l is at data + l * lane + p * step, in bytes. `next`, or null: the same
// of a later tile, to be fetched into the cache meanwhile; its lanes, or its words where lanes are neighbours, are
// `next_distance` bytes apart.
struct TileOperand {
  const void* data;
  int64_t lane, step;
  const void* next = nullptr;
  int64_t next_distance = 0;
  int64_t next_word = sizeof(float);
};

struct GemmMicrokernel {
  const char* name;
  int rows;         // of the largest register tile; every smaller height has a tile of its own
  int narrow_rows;  // the same for narrow tiles
  int columns;      // panels of b hold `columns` words per word of depth, or half as many for narrow tiles
  int group;        // elements of k in a word
  int depth;        // elements of k in a block: part of the order of summation

  // tile[i * stride + j] = alpha * sum (accumulate false) or tile[...] + alpha * sum for i < rows and j < columns, over
  // `words` words of depth. Either the lanes of a or its words are neighbours (4 bytes apart), as are the lanes of b.
  void (*compute)(int rows, int64_t words, const TileOperand& a, const TileOperand& b, float alpha, float* tile,
                  int64_t stride, bool accumulate);
  // The same for tiles of half as many columns.
  void (*compute_narrow)(int rows, int64_t words, const TileOperand& a, const TileOperand& b, float alpha, float* tile,
                         int64_t stride, bool accumulate);

  // Packs `count` <= width lanes by `depth` positions. Element e of lane l at position p is source[l * lane_stride +
  // (p * group + e) * depth_stride] and goes to word p * width + l; lanes from count to width, and what the last word
  // lacks, become zero. Fast when one of the two strides is 1.
  void (*pack)(PackedSource type, const void* source, int64_t lane_stride, int64_t depth_stride, int64_t count,
               int64_t depth, int width, float* panel);

  // Rounds `count` adjacent values to the type.
  void (*store)(PackedSource type, const float* values, int64_t count, void* target);

  // Panels as operands of a tile.
  static TileOperand panel(const float* words, int64_t width) {
    return {words, sizeof(float), width * static_cast<int64_t>(sizeof(float))};
  }
};

extern const GemmMicrokernel gemm_microkernel_avx2;
extern const GemmMicrokernel gemm_microkernel_avx512;
extern const GemmMicrokernel gemm_microkernel_bfloat16;  // pairs of bfloat16, for processors with AVX512-BF16

struct GemmProblem;
// The packed GEMM with a given set, which the processor must have: lets tests compare instruction sets.
void run_gemm_packed(const GemmProblem& problem, const GemmMicrokernel& kernel);

// The best float32 set this processor has; null when it has not even AVX2 and FMA.
const GemmMicrokernel* detected_gemm_microkernel();

bool has_bfloat16_units();  // AVX512-BF16

}  // namespace neuron::kernels
