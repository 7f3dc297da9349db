// The register tile of the matrix units: a block of up to four tiles of float32 sums, each 16 x 16, over steps of 32
// elements. A MatrixTiles must live.
//
// The units wait for nothing when the sums of a block leave the registers while the next block begins, and when what is
// done with them then (rounding, storing) happens a little at a time between steps.
#pragma once

#include <cstdint>

namespace neuron::kernels {

// Elements of the sum in a step, lines of a tile, bytes of a line and of a tile.
constexpr int64_t kStepElements = 32, kTileLines = 16, kLineBytes = 64, kTileBytes = kTileLines * kLineBytes;
constexpr int64_t kBlockSums = 4 * 16 * 16;  // at most

// Tiles of an operand: line l of tile t at step s is the 64 bytes at data + l * line + t * tile + s * step, or +
// steps[s] where `steps` is given. A line of the left operand is 32 elements of a row; of the right operand, 16 columns
// of a word (a pair of elements).
struct MatrixOperand {
  const char* data;
  int64_t line, tile, step;
  const int64_t* steps = nullptr;  // of the right operand only
};

// Lines to be fetched into the second cache meanwhile: `lines` a step, `distance` bytes apart, and `step` bytes further
// at the next step. Null: none.
struct MatrixFetch {
  const char* data = nullptr;
  int64_t distance = 0, step = 0;
  int lines = 0;
};

// Sums of an earlier block of two tiles of columns that become bfloat16 meanwhile, `share` rows a step: sum, or addend
// + sum.
struct MatrixRounding {
  const float* sums = nullptr;  // rows of 32
  char* target = nullptr;       // rows target_row bytes apart
  int64_t target_row = 0;
  const char* addend = nullptr;  // bfloat16, or null
  int64_t addend_row = 0;
  int64_t rows = 0, share = 0;  // what is left to do
  int64_t columns = 32;         // that are results
  bool special = false;         // a NaN or a denormal number was met: some results are not as they should be
};

struct MatrixWork {
  MatrixOperand left, right;
  int64_t steps;  // at least 1
  MatrixFetch fetch;
  // One of them, or none.
  MatrixRounding* rounding = nullptr;
  void (*between)(void*) = nullptr;  // called after each step; may not use tiles
  void* context = nullptr;
};

// Sums of a block in memory: rows `stride` floats apart. Null: none.
struct MatrixSums {
  float* data = nullptr;
  int64_t stride = 0;
};

struct MatrixBlock {
  int height, width;  // in tiles
  // Stores the sums of an earlier block of this shape from the registers, begins with `first` or zeros, and adds steps.
  void (*begin)(const MatrixWork& work, const MatrixSums& earlier, const MatrixSums& first);
  // Adds more steps to the sums in the registers.
  void (*add)(const MatrixWork& work);
  void (*store)(const MatrixSums& target);
};

// Rounds the rows that are left.
void finish_rounding(MatrixRounding& rounding);

// Of height x width tiles: at most four together.
const MatrixBlock& matrix_block(int64_t height, int64_t width);

}  // namespace neuron::kernels
