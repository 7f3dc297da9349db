// The processor's matrix units (AMX): eight registers, each a tile of 16 rows of 64 bytes. A product of tiles of
// bfloat16 takes 16 rows of 32 elements, and 16 rows of 16 pairs, neighbours along the summed dimension; its float32
// results are a tile of 16 x 16.
//
// What one product adds to an element, in float32, denormal numbers read as zero and written as zero: the sum of the
// even positions in order, from zero, plus that of the odd ones. (Intel 64 manual, TDPBF16PS)
#pragma once

#include <immintrin.h>

#include <cstdint>

#define NEURON_MATRIX_UNITS "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma,amx-tile,amx-bf16"

namespace neuron::kernels {

// Whether the processor has them for bfloat16 and the system lets this process use them. The first call asks the
// system.
bool has_bfloat16_matrix_units();

// While one lives, this thread's tiles are set up: all eight have 16 rows of 64 bytes. Other libraries set them up in
// their own ways, so none may be called meanwhile. Not nested.
class MatrixTiles {
 public:
  __attribute__((target(NEURON_MATRIX_UNITS))) MatrixTiles() {
    struct alignas(64) Configuration {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    // In memory as a whole: GCC takes the instruction to read the first eight bytes, and drops stores to the others.
    static constexpr Configuration configuration;
    _tile_loadconfig(&configuration);
  }
  __attribute__((target(NEURON_MATRIX_UNITS))) ~MatrixTiles() { _tile_release(); }
  MatrixTiles(const MatrixTiles&) = delete;
  MatrixTiles& operator=(const MatrixTiles&) = delete;
};

}  // namespace neuron::kernels
