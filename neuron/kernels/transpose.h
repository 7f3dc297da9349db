// Transposes squares of 16 x 16 and of 8 x 8 elements in registers.
#pragma once

#include <cstdint>

namespace neuron::kernels {

// target[i * target_row + j] = source[i + j * source_column] for i, j < 16. Distances in elements.
void transpose_square(uint16_t* target, int64_t target_row, const uint16_t* source, int64_t source_column);
void transpose_square(uint32_t* target, int64_t target_row, const uint32_t* source, int64_t source_column);
void transpose_square(uint64_t* target, int64_t target_row, const uint64_t* source, int64_t source_column);
template <typename T>
void transpose_square(T* target, int64_t target_row, const T* source, int64_t source_column) {
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t j = 0; j < 16; ++j) target[i * target_row + j] = source[i + j * source_column];
  }
}

// The same for i, j < 8.
void transpose_small_square(uint16_t* target, int64_t target_row, const uint16_t* source, int64_t source_column);
void transpose_small_square(uint32_t* target, int64_t target_row, const uint32_t* source, int64_t source_column);
template <typename T>
void transpose_small_square(T* target, int64_t target_row, const T* source, int64_t source_column) {
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t j = 0; j < 8; ++j) target[i * target_row + j] = source[i + j * source_column];
  }
}

}  // namespace neuron::kernels
