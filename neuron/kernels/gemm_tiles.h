// A matrix product whose operands are not matrices in memory: the caller packs panels of both (the patches of an image,
// say), register tiles are computed from panels. The order of summation is that of the packed GEMM.
#pragma once

#include <algorithm>
#include <cstdint>

#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {

struct PanelBuffers {
  Scratch rows, columns;
};

constexpr int64_t kPanelSlack = 16;  // floats that packing may write behind a panel

// sums [rows, columns rounded up to whole panels] = (accumulate: sums +) rows @ columns, with sums_stride floats
// between rows. pack_rows and pack_columns (depth begin, depth, first lane, lanes, width of the panel, panel) pack one
// panel; lanes that they leave out give sums nobody reads.
template <typename PackRows, typename PackColumns>
void multiply_panels(const GemmMicrokernel& kernel, PanelBuffers& buffers, int64_t rows, int64_t columns, int64_t depth,
                     const PackRows& pack_rows, const PackColumns& pack_columns, float* sums, int64_t sums_stride,
                     bool accumulate) {
  int64_t width = kernel.columns, panels = (columns + width - 1) / width;
  int64_t tiles = (rows + kernel.rows - 1) / kernel.rows, height = (rows + tiles - 1) / tiles;
  int64_t block = std::min<int64_t>(kernel.depth, depth);
  auto words_of = [&](int64_t count) { return (count + kernel.group - 1) / kernel.group; };
  float* column_panels = buffers.columns.get<float>(panels * width * words_of(block) + kPanelSlack);
  float* row_panel = buffers.rows.get<float>(height * words_of(block) + kPanelSlack);
  for (int64_t l = 0; l < depth; l += block) {
    int64_t count = std::min(block, depth - l), words = words_of(count);
    for (int64_t j = 0; j < columns; j += width) {
      pack_columns(l, count, j, std::min(width, columns - j), static_cast<int>(width), column_panels + j * words);
    }
    for (int64_t i = 0; i < rows; i += height) {
      int64_t lanes = std::min(height, rows - i);
      pack_rows(l, count, i, lanes, static_cast<int>(lanes), row_panel);
      for (int64_t j = 0; j < columns; j += width) {
        kernel.compute(static_cast<int>(lanes), words, kernel.panel(row_panel, lanes),
                       kernel.panel(column_panels + j * words, width), 1.0f, sums + i * sums_stride + j, sums_stride,
                       accumulate || l > 0);
      }
    }
  }
}

}  // namespace neuron::kernels
