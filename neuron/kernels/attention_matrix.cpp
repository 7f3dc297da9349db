#include "neuron/kernels/attention_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace neuron::kernels {
namespace {

// A row of 16 bits whose elements lie side by side: the memory, or `copy`.
const char* adjacent_row(const Rows& rows, const char* source, char* copy) {
  if (rows.step() == 1) return source;
  for (int64_t j = 0; j < rows.columns; ++j) std::memcpy(copy + 2 * j, source + j * rows.column, 2);
  return copy;
}

}  // namespace

Units adjacent_rows(const Rows& rows, int64_t head, int64_t first, int64_t count, Scratch& gathered) {
  if (rows.step() == 1) return {rows.at(head, first), rows.row};
  char* copy = gathered.get<char>(count * rows.columns * 2);
  for (int64_t i = 0; i < count; ++i) adjacent_row(rows, rows.at(head, first + i), copy + i * rows.columns * 2);
  return {copy, rows.columns * 2};
}

LeftTiles left_rows(const Rows& rows, int64_t head, int64_t first, int64_t count, Scratch& scratch, Scratch& gathered) {
  Units from = adjacent_rows(rows, head, first, count, gathered);
  int64_t row_bytes = round_up(rows.columns, 32) * 2, padded = round_up(count, 16);
  char* target = scratch.get<char>(padded * row_bytes);
  attention_matrix_units.copy_rows(from.data, from.row_bytes, count, rows.columns, target, row_bytes, padded);
  return {target, row_bytes};
}

LeftTiles left_columns(const Rows& rows, int64_t head, int64_t first, int64_t count, Scratch& scratch,
                       Scratch& gathered) {
  Units from = adjacent_rows(rows, head, first, count, gathered);
  const int64_t step = round_up(rows.columns, 16) * 64;
  char* target = scratch.get<char>(round_up(count, 32) / 32 * step);
  attention_matrix_units.transpose_rows(from.data, from.row_bytes, count, rows.columns, target);
  return {target, 64, step};
}

int64_t right_panel_units(int64_t columns) { return round_up(columns, 32) / 2; }

void load_right_panel(const AttentionProblem& p, const Rows& rows, const Panel& panel, Scratch& scratch,
                      float* target) {
  const int64_t units = right_panel_units(rows.columns), row_bytes = units * 4;
  const bool whole = rows.step() == 1 && rows.columns * 2 == row_bytes;
  char* copies = whole ? nullptr : scratch.get<char>(kLanes * row_bytes);
  const char* sources[kLanes];
  for (int i = 0; i < panel.lanes; ++i) {
    sources[i] = rows.at(panel.heads[i], panel.positions[i]);
    if (whole) continue;
    char* copy = copies + i * row_bytes;
    const char* row = adjacent_row(rows, sources[i], copy);
    if (row != copy) std::memcpy(copy, row, rows.columns * 2);
    std::memset(copy + rows.columns * 2, 0, row_bytes - rows.columns * 2);
    sources[i] = copy;
  }
  p.tiles->to_lanes(sources, panel.lanes, units, target);
}

void load_right_rows(const AttentionProblem& p, const Rows& rows, const Panel& panel, Scratch& scratch, float* target) {
  const int64_t columns = rows.columns, width = round_up(columns, 16);
  char* gathered = scratch.get<char>(kLanes * columns * 2);
  for (int i = 0; i < panel.lanes; ++i) {
    char* copy = gathered + i * columns * 2;
    const char* row = adjacent_row(rows, rows.at(panel.heads[i], panel.positions[i]), copy);
    if (row != copy) std::memcpy(copy, row, columns * 2);
  }
  if (columns != width || panel.lanes < kLanes) std::memset(target, 0, kLanes / 2 * width * 4);
  p.tiles->pair_rows(gathered, columns * 2, panel.lanes, columns, reinterpret_cast<uint32_t*>(target), width);
}

void store_lanes(const Rows& rows, const Panel& panel, const float* source, const float* factors, Scratch& scratch) {
  char* targets[kLanes] = {};
  char* copies = rows.step() == 1 ? nullptr : scratch.get<char>(kLanes * rows.columns * 2);
  for (int i = 0; i < panel.lanes; ++i) {
    targets[i] = copies == nullptr ? rows.at(panel.heads[i], panel.positions[i]) : copies + i * rows.columns * 2;
  }
  attention_matrix_units.store_lanes(source, panel.lanes, rows.columns, factors, targets);
  if (copies == nullptr) return;
  for (int i = 0; i < panel.lanes; ++i) {
    char* target = rows.at(panel.heads[i], panel.positions[i]);
    for (int64_t j = 0; j < rows.columns; ++j) std::memcpy(target + j * rows.column, targets[i] + 2 * j, 2);
  }
}

float late_scale(const AttentionProblem& p, const float* maxima, int lanes) {
  if (p.mask != nullptr || !(p.scale > 0)) return 0;
  bool large = false;
  for (int i = 0; i < lanes; ++i) large |= std::abs(maxima[i]) >= kLargeScore;
  return large ? 0 : p.scale;
}

}  // namespace neuron::kernels
