// Brings keys and values to the caches in the order and at the time that memory serves best. Zen 4 reads 30 GB/s when
// lines are met once, in order: its own prefetching then runs beside arithmetic of up to the time that reading takes.
// Tiles of several rows meet lines in another order, and lines asked for elsewhere at the same time disturb it (20 GB/s
// with a prefetch for each line some KB ahead).
//
// Where arithmetic takes less time than memory rows are therefore touched in order before a tile meets them; where it
// takes longer they are asked for far ahead.
#pragma once

#include <cstdint>

namespace neuron::kernels {

// Loads from each of `lines` lines.
__attribute__((always_inline)) inline void touch(const char* row, int64_t lines) {
  for (int64_t line = 0; line < lines; ++line) (void)*static_cast<const volatile char*>(row + 64 * line);
}
inline int64_t lines_of(int64_t bytes) { return (bytes + 63) / 64; }

// How far ahead rows are asked for, in bytes. Nearer, arithmetic and memory take turns.
constexpr int64_t kAhead = 16384;

// Where that is: `distance` bytes behind the rows that are met; from there line after line where rows have no gaps,
// else as they are met. Lines come to the second cache.
struct Ahead {
  const char* next;  // rows like those at hand that are met after them; null: none
  int64_t row_bytes, bytes, rows;
  Ahead(int64_t stride, int64_t length, const char* following)
      : next(following), row_bytes(stride), bytes(length), rows(length > 0 ? (kAhead + length - 1) / length : 0) {}

  bool together() const { return row_bytes == bytes; }
  // For rows of which `left` are left, theirs included; 0 where there is nothing to ask for.
  int64_t distance(const char* at, int64_t left) const {
    if (rows < left) return rows * row_bytes;
    return next == nullptr ? 0 : next - at + (rows - left) * row_bytes;
  }
};

}  // namespace neuron::kernels
