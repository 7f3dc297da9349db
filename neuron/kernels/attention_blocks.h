// What the forward and backward kernels of attention share: the problem, blocks of operands as float32 matrices, and
// scores.
#pragma once

#include <cstdint>

#include "neuron/kernels/gemm.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {

// Blocks are part of the order of summation.
constexpr int64_t kQueryBlock = 64;
constexpr int64_t kKeyBlock = 256;

struct AttentionProblem {
  const TensorView* query;  // [batch, heads, queries, depth]
  const TensorView* key;    // [batch, key heads, keys, depth]; heads is a multiple of key heads
  const TensorView* value;  // [batch, key heads, keys, value depth]
  const TensorView* mask =
      nullptr;  // broadcasts from the right to [batch, heads, queries, keys]: bool (true: attend) or added
  bool causal = false;
  float scale = 1;
  int64_t batch, heads, key_heads, queries, keys, depth, value_depth;

  AttentionProblem(const TensorView& query, const TensorView& key, const TensorView& value, const TensorView* mask,
                   bool causal, double scale);
  int64_t group() const { return heads / key_heads; }
  // Keys that some query of rows [row, row + rows) may attend to are [0, key_end).
  int64_t key_end(int64_t row, int64_t rows) const { return causal && row + rows < keys ? row + rows : keys; }
};

// A float32 matrix in memory, rows `stride` apart.
struct Matrix {
  float* data;
  int64_t stride;
};

// Rows [row, row + rows) of view[batch, head] as float32: the memory itself where possible, else a converted copy.
Matrix block_of(const TensorView& view, int64_t batch, int64_t head, int64_t row, int64_t rows, Scratch& scratch);
// Rounds rows of a float32 matrix into view[batch, head].
void store_block(const TensorView& view, int64_t batch, int64_t head, int64_t row, int64_t rows, Matrix matrix);

// result [m, n] = alpha * a b + beta * result on this thread; a transposed operand is stored as its transpose.
void multiply(Matrix a, bool transpose_a, Matrix b, bool transpose_b, Matrix result, int64_t m, int64_t n, int64_t k,
              float alpha, float beta);

// scores [rows, keys] = scale * q k^T, masked: entries that are not attended to become -infinity.
void masked_scores(const AttentionProblem& p, int64_t batch, int64_t head, Matrix query, int64_t row, int64_t rows,
                   Matrix key, int64_t first_key, int64_t keys, Matrix scores);

}  // namespace neuron::kernels
