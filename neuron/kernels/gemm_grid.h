// The tiles a library kernel is called for: a function of the problem only, because a library's order of summation may
// follow from the sizes it is given.
#pragma once

#include <cstdint>

namespace neuron::kernels {

struct GemmGrid {
  int64_t row_length, column_length, row_parts, column_parts;
};

// Pieces of at most 1024 rows and columns of equal length (a multiple of 16), and at least two when the matrix is large
// enough for two threads.
inline GemmGrid gemm_grid(int64_t m, int64_t n, int64_t k) {
  auto parts = [](int64_t extent) { return (extent + 1023) / 1024; };
  int64_t row_parts = parts(m), column_parts = parts(n);
  if (row_parts * column_parts == 1 && m * n * k >= (int64_t{1} << 21)) (m >= n ? row_parts : column_parts) = 2;
  auto length = [](int64_t extent, int64_t count) { return ((extent + count - 1) / count + 15) / 16 * 16; };
  GemmGrid grid{length(m, row_parts), length(n, column_parts), 0, 0};
  grid.row_parts = (m + grid.row_length - 1) / grid.row_length;
  grid.column_parts = (n + grid.column_length - 1) / grid.column_length;
  return grid;
}

}  // namespace neuron::kernels
