#include "neuron/kernels/matrix_pack.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "neuron/kernels/matrix_target.h"
#include "neuron/kernels/matrix_tiles.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kElement = sizeof(uint16_t);

NEURON_INLINE __mmask32 first(int64_t elements) {
  return elements >= 32 ? ~__mmask32{0} : (__mmask32{1} << std::max<int64_t>(elements, 0)) - 1;
}

// Four pieces of 16 bytes, `distance` bytes apart. From memory they need no shuffle.
NEURON_INLINE __m512i gather_pieces(const char* source, int64_t distance) {
  auto piece = [](const char* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
  __m512i all = _mm512_castsi128_si512(piece(source));
  all = _mm512_inserti32x4(all, piece(source + distance), 1);
  all = _mm512_inserti32x4(all, piece(source + 2 * distance), 2);
  return _mm512_inserti32x4(all, piece(source + 3 * distance), 3);
}

NEURON_INLINE void store_line(char* target, int64_t line, __m512i values) {
  _mm512_store_si512(target + line * kLineBytes, values);
}

// Lanes are neighbours in memory: 32 positions of 8 lanes become 8 lines. A register holds positions r, r + 8, r + 16
// and r + 24, so that what is transposed lies in a quarter of it.
NEURON_INLINE void transpose_to_lines(const char* source, int64_t distance, char* target) {
  __m512i rows[8], pairs[8], fours[8];
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r) rows[r] = gather_pieces(source + r * distance, 8 * distance);
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    pairs[2 * r] = _mm512_unpacklo_epi16(rows[2 * r], rows[2 * r + 1]);      // lanes 0 … 3
    pairs[2 * r + 1] = _mm512_unpackhi_epi16(rows[2 * r], rows[2 * r + 1]);  // lanes 4 … 7
  }
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 2
    for (int lanes = 0; lanes < 2; ++lanes) {
      const __m512i low = pairs[4 * half + lanes], high = pairs[4 * half + 2 + lanes];
      fours[4 * half + 2 * lanes] = _mm512_unpacklo_epi32(low, high);
      fours[4 * half + 2 * lanes + 1] = _mm512_unpackhi_epi32(low, high);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    store_line(target, 2 * i, _mm512_unpacklo_epi64(fours[i], fours[4 + i]));
    store_line(target, 2 * i + 1, _mm512_unpackhi_epi64(fours[i], fours[4 + i]));
  }
}

// Positions are neighbours in memory: 4 words of 16 lanes become 4 lines.
NEURON_INLINE void transpose_words(const char* source, int64_t distance, char* target) {
  __m512i lanes[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) lanes[r] = gather_pieces(source + r * distance, 4 * distance);
  const __m512i a = _mm512_unpacklo_epi32(lanes[0], lanes[1]), b = _mm512_unpackhi_epi32(lanes[0], lanes[1]);
  const __m512i c = _mm512_unpacklo_epi32(lanes[2], lanes[3]), d = _mm512_unpackhi_epi32(lanes[2], lanes[3]);
  store_line(target, 0, _mm512_unpacklo_epi64(a, c));
  store_line(target, 1, _mm512_unpackhi_epi64(a, c));
  store_line(target, 2, _mm512_unpacklo_epi64(b, d));
  store_line(target, 3, _mm512_unpackhi_epi64(b, d));
}

// Two positions of 32 lanes become words of the first and the second 16 lanes.
NEURON_INLINE void pair_rows(__m512i even, __m512i odd, char* first_tile, char* second_tile) {
  const __m512i low = _mm512_unpacklo_epi16(even, odd), high = _mm512_unpackhi_epi16(even, odd);
  const __m512i front = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
  const __m512i back = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
  _mm512_store_si512(first_tile, _mm512_permutex2var_epi64(low, front, high));
  if (second_tile != nullptr) _mm512_store_si512(second_tile, _mm512_permutex2var_epi64(low, back, high));
}

// A step of one tile that lacks lanes or positions, or whose elements lie apart: as a dense square first.
struct Square {
  alignas(64) uint16_t values[32 * 32];
};

// values[lane * 32 + position], zeros where there is nothing.
NEURON_TARGET void gather_square(const uint16_t* source, int64_t lane_stride, int64_t depth_stride, int64_t lanes,
                                 int64_t depth, Square& square) {
  if (depth_stride == 1) {
    for (int64_t l = 0; l < 16; ++l) {
      __m512i line =
          l < lanes ? _mm512_maskz_loadu_epi16(first(depth), source + l * lane_stride) : _mm512_setzero_si512();
      _mm512_store_si512(square.values + l * 32, line);
    }
    return;
  }
  std::memset(&square, 0, sizeof(square));
  for (int64_t l = 0; l < lanes; ++l) {
    for (int64_t p = 0; p < depth; ++p) square.values[l * 32 + p] = source[l * lane_stride + p * depth_stride];
  }
}

// values[position * 16 + lane], zeros where there is nothing. Lanes are neighbours.
NEURON_TARGET void gather_rows(const uint16_t* source, int64_t depth_stride, int64_t lanes, int64_t depth,
                               Square& square) {
  const auto mask = static_cast<__mmask16>(first(lanes));
  for (int64_t p = 0; p < 32; ++p) {
    __m256i row = p < depth ? _mm256_maskz_loadu_epi16(mask, source + p * depth_stride) : _mm256_setzero_si256();
    _mm256_store_si256(reinterpret_cast<__m256i*>(square.values + p * 16), row);
  }
}

}  // namespace

NEURON_TARGET void pack_left_tiles(const uint16_t* source, int64_t lane_stride, int64_t depth_stride, int64_t lanes,
                                   int64_t depth, char* target, int64_t step) {
  for (int64_t p = 0; p < depth; p += kStepElements, target += step, source += kStepElements * depth_stride) {
    const int64_t positions = std::min(kStepElements, depth - p);
    if (depth_stride == 1) {
      const __mmask32 mask = first(positions);
      for (int64_t l = 0; l < lanes; ++l) {
        store_line(target, l, _mm512_maskz_loadu_epi16(mask, source + l * lane_stride));
      }
      continue;
    }
    for (int64_t l = 0; l < lanes; l += kTileLines) {
      char* tile = target + l * kLineBytes;
      const int64_t count = std::min(kTileLines, lanes - l);
      const uint16_t* from = source + l * lane_stride;
      if (lane_stride == 1 && count == kTileLines && positions == kStepElements) {
        auto* bytes = reinterpret_cast<const char*>(from);
        transpose_to_lines(bytes, depth_stride * kElement, tile);
        transpose_to_lines(bytes + 16, depth_stride * kElement, tile + 8 * kLineBytes);
        continue;
      }
      Square square;
      if (lane_stride == 1) {
        gather_rows(from, depth_stride, count, positions, square);
        auto* bytes = reinterpret_cast<const char*>(square.values);
        transpose_to_lines(bytes, 32, tile);
        transpose_to_lines(bytes + 16, 32, tile + 8 * kLineBytes);
      } else {
        gather_square(from, lane_stride, depth_stride, count, positions, square);
        std::memcpy(tile, square.values, kTileBytes);
      }
    }
  }
}

NEURON_TARGET void pack_right_tiles(const uint16_t* source, int64_t lane_stride, int64_t depth_stride, int64_t lanes,
                                    int64_t depth, char* target, int64_t step) {
  for (int64_t p = 0; p < depth; p += kStepElements, target += step, source += kStepElements * depth_stride) {
    const int64_t positions = std::min(kStepElements, depth - p);
    if (lane_stride == 1 && depth_stride != 1) {
      for (int64_t l = 0; l < lanes; l += 2 * kTileLines) {
        const __mmask32 mask = first(lanes - l);
        char* tile = target + l * kLineBytes;
        char* second = lanes - l > kTileLines ? tile + kTileBytes : nullptr;
        for (int64_t word = 0; word < kTileLines; ++word) {
          const uint16_t* row = source + 2 * word * depth_stride + l;
          const __m512i zero = _mm512_setzero_si512();
          __m512i even = 2 * word < positions ? _mm512_maskz_loadu_epi16(mask, row) : zero;
          __m512i odd = 2 * word + 1 < positions ? _mm512_maskz_loadu_epi16(mask, row + depth_stride) : zero;
          pair_rows(even, odd, tile + word * kLineBytes, second == nullptr ? nullptr : second + word * kLineBytes);
        }
      }
      continue;
    }
    for (int64_t l = 0; l < lanes; l += kTileLines) {
      char* tile = target + l * kLineBytes;
      const int64_t count = std::min(kTileLines, lanes - l);
      const uint16_t* from = source + l * lane_stride;
      auto* bytes = reinterpret_cast<const char*>(from);
      int64_t distance = lane_stride * kElement;
      Square square;
      if (depth_stride != 1 || count < kTileLines || positions < kStepElements) {
        gather_square(from, lane_stride, depth_stride, count, positions, square);
        bytes = reinterpret_cast<const char*>(square.values);
        distance = kLineBytes;
      }
      for (int64_t word = 0; word < kTileLines; word += 4) {
        transpose_words(bytes + word * 4, distance, tile + word * kLineBytes);
      }
    }
  }
}

NEURON_TARGET void pack_right_lines(const char* source, const int64_t* places, char* target) {
  for (int64_t word = 0; word < kTileLines; ++word, places += 2, target += kLineBytes) {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i even = places[0] < 0 ? zero : _mm512_loadu_si512(source + places[0]);
    const __m512i odd = places[1] < 0 ? zero : _mm512_loadu_si512(source + places[1]);
    pair_rows(even, odd, target, target + kTileBytes);
  }
}

}  // namespace neuron::kernels
