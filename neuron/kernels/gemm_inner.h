// Products of a few vectors with a matrix whose rows run along the sum: one pass over the matrix, each row read once
// and multiplied with every vector. One set of routines per instruction set.
#pragma once

#include <cstdint>

#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/implementation_list.h"

namespace neuron::kernels {

constexpr int kInnerVectors = 8;       // at most
constexpr int kInnerMatrixRows = 512;  // per call, at most

struct InnerProducts {
  const char* name;
  int lanes;

  // sums[v * kInnerMatrixRows + j] = sum over k of vector v and row j of the matrix, for `vectors` vectors and `rows`
  // rows. The vectors are float32 in the order arrange() gives them, each `padded` long.
  void (*compute)(PackedSource type, int vectors, const float* arranged, int64_t padded, const void* matrix,
                  int64_t row_stride, int64_t rows, int64_t k, float* sums);

  // The order of a vector's elements that suits rows of the type: for bfloat16 in blocks of two vector registers, first
  // the elements of even index, then those of odd index. `arranged` has room for padded_length(type, k).
  void (*arrange)(PackedSource type, const float* vector, int64_t k, float* arranged);

  // sums[v * sums_stride + c] = sum over p < k, in order, of vectors[v * k + p] * matrix[p * row_stride + c], one chain
  // of fused multiply-adds from zero; `vectors` are float32.
  void (*combine)(PackedSource type, int count, const float* vectors, const void* matrix, int64_t row_stride,
                  int64_t columns, int64_t k, float* sums, int64_t sums_stride);

  int64_t padded_length(PackedSource type, int64_t k) const {
    int64_t block = type == PackedSource::BFloat16 ? 2 * lanes : lanes;
    return (k + block - 1) / block * block;
  }
};

extern const InnerProducts inner_products_avx2;
extern const InnerProducts inner_products_avx512;
extern const InnerProducts inner_products_avx512_few_streams;  // the same bits, read as Intel's memory likes it

// What this processor runs.
const InnerProducts& detected_inner_products();

struct GemmProblem;
// Why neither of the two ways below takes the problem, whatever its shape; empty when one may.
Refusal refuse_streaming(const GemmProblem& problem);
void run_gemm_inner(const GemmProblem& problem, const InnerProducts& routines);
void run_gemm_outer(const GemmProblem& problem, const InnerProducts& routines);

}  // namespace neuron::kernels
