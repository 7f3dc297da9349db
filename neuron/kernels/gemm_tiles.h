// A matrix product whose operands are not matrices in memory: the caller packs panels of both (the patches of an image,
// say), register tiles are computed from panels. The order of summation is that of the packed GEMM.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {

struct PanelBuffers {
  Scratch rows, columns;
};

constexpr int64_t kPanelSlack = 16;  // floats that packing may write behind a panel

// How many rows of a tile may be read in place, `distance` bytes apart: more would compete for the places of the
// nearest cache that they share.
inline int64_t rows_apart(int64_t distance) { return distance % 4096 == 0 ? 7 : 14; }

// Whether a tile may read an operand in place whose rows in memory are `distance` bytes apart, all of which it reads.
// Crossed: they cross the lanes of a row operand, of which a tile uses few.
enum class RowsInPlace : uint8_t { Plain, Crossed };
inline bool keeps_apart(int64_t distance, RowsInPlace rows = RowsInPlace::Plain) {
  return distance % (rows == RowsInPlace::Crossed ? 2048 : 4096) != 0;
}

// Whether the nearest cache keeps a panel of columns while panels of rows pass it by: where half of it holds one, and
// enough columns make up for packing all rows.
inline bool keeps_column_panel(const GemmMicrokernel& kernel, int64_t columns) {
  constexpr int64_t kBytes = 16 << 10, kFewestPanels = 12;
  bool fits = kernel.columns * (kernel.depth / kernel.group) * static_cast<int64_t>(sizeof(float)) <= kBytes;
  return fits && columns >= kFewestPanels * kernel.columns;
}

// Rows of a tile: tiles are of nearly equal heights.
inline int64_t tile_height(const GemmMicrokernel& kernel, int64_t rows) {
  int64_t tiles = (rows + kernel.rows - 1) / kernel.rows;
  return (rows + tiles - 1) / tiles;
}

// sums [rows, columns rounded up to whole panels] = (accumulate: sums +) rows @ columns, with sums_stride floats
// between rows. take_rows and take_columns (depth begin, depth, first lane, lanes, width of the panel, panel) return an
// operand: a panel they have packed, or one in place, in which columns must be whole; lanes that a packed panel lacks
// give sums nobody reads.
//
// Where the nearest cache keeps a panel of columns, all rows meet it as soon as it is packed, and their panels wait in
// the next cache; else a panel of rows is kept there, and those of columns wait.
template <typename TakeRows, typename TakeColumns>
void multiply_panels(const GemmMicrokernel& kernel, PanelBuffers& buffers, int64_t rows, int64_t columns, int64_t depth,
                     const TakeRows& take_rows, const TakeColumns& take_columns, float* sums, int64_t sums_stride,
                     bool accumulate) {
  constexpr int64_t kRowsTogether = 192;
  int64_t width = kernel.columns, panels = (columns + width - 1) / width, height = tile_height(kernel, rows);
  int64_t together = keeps_column_panel(kernel, columns) ? kRowsTogether / height * height : height;
  int64_t block = std::min<int64_t>(kernel.depth, depth);
  auto words_of = [&](int64_t count) { return (count + kernel.group - 1) / kernel.group; };
  // Panels that are met once can take turns in one place.
  int64_t kept = rows > together ? panels : 1;
  float* column_panels = buffers.columns.get<float>(kept * width * words_of(block) + kPanelSlack);
  float* row_panels = buffers.rows.get<float>(std::min(rows, together) * words_of(block) + kPanelSlack);
  std::vector<TileOperand> right(static_cast<size_t>(panels)), left;
  for (int64_t l = 0; l < depth; l += block) {
    int64_t count = std::min(block, depth - l), words = words_of(count);
    for (int64_t i = 0; i < rows; i += together) {
      int64_t end = std::min(i + together, rows);
      left.clear();
      for (int64_t ii = i; ii < end; ii += height) {
        int64_t lanes = std::min(height, end - ii);
        left.push_back(take_rows(l, count, ii, lanes, static_cast<int>(lanes), row_panels + (ii - i) * words));
      }
      for (int64_t panel = 0; panel < panels; ++panel) {
        int64_t j = panel * width;
        if (i == 0) {
          right[panel] = take_columns(l, count, j, std::min(width, columns - j), static_cast<int>(width),
                                      column_panels + (kept == 1 ? 0 : j * words));
        }
        for (int64_t ii = i, tile = 0; ii < end; ii += height, ++tile) {
          kernel.compute(static_cast<int>(std::min(height, end - ii)), words, left[tile], right[panel], 1.0f,
                         sums + ii * sums_stride + j, sums_stride, accumulate || l > 0);
        }
      }
    }
  }
}

}  // namespace neuron::kernels
