// The register tile of the packed GEMM for one instruction set. The file that includes this header defines before it
// NEURON_TARGET, NEURON_INLINE and, in an unnamed namespace of neuron::kernels, `Units`: Register, kLanes, kRows and
// kNarrowRows (at most 14), and the operations used below.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "neuron/kernels/gemm_microkernel.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kWordsOfLine = 64 / sizeof(float);

// The rows of a tile whose words follow each other in memory: few registers reach all of them.
template <int kHeight>
struct DistantRows {
  const char *first, *eighth;
  int64_t lane, three_lanes, five_lanes;

  NEURON_INLINE DistantRows(const void* data, int64_t distance)
      : first(static_cast<const char*>(data)),
        eighth(first + 7 * distance),
        lane(distance),
        three_lanes(3 * distance),
        five_lanes(5 * distance) {
    asm("" : "+r"(eighth), "+r"(three_lanes), "+r"(five_lanes));  // not to be computed again, or each row on its own
  }
  NEURON_INLINE const char* row(int i) const {
    const char* base = i < 7 ? first : eighth;
    switch (i % 7) {
      case 3:
        return base + three_lanes;
      case 5:
        return base + five_lanes;
      case 6:
        return base + 2 * three_lanes;
      default:
        return base + i % 7 * lane;
    }
  }
  NEURON_INLINE void advance() {
    first += sizeof(float);
    eighth += sizeof(float);
  }
  // As many words as a line has, of each row of a later tile.
  NEURON_INLINE static const char* fetch(const char* next, const TileOperand& a) {
#pragma GCC unroll 1
    for (int i = 0; i < kHeight; ++i) __builtin_prefetch(next + i * a.next_distance);
    return next + kWordsOfLine * a.next_word;
  }
};

// The rows of a tile whose lanes are neighbours.
template <int kHeight>
struct AdjacentRows {
  const char* first;
  int64_t step;

  NEURON_INLINE AdjacentRows(const void* data, int64_t distance)
      : first(static_cast<const char*>(data)), step(distance) {}
  NEURON_INLINE const char* row(int i) const { return first + i * sizeof(float); }
  NEURON_INLINE void advance() { first += step; }
  // The line a word of the last lane lies in: the first lanes may share theirs with this tile.
  NEURON_INLINE static const char* fetch(const char* next, const TileOperand& a) {
#pragma GCC unroll 1
    for (int i = 0; i < kWordsOfLine; ++i, next += a.next_distance)
      __builtin_prefetch(next + (kHeight - 1) * sizeof(float));
    return next;
  }
};

// kWidth: registers across the columns.
template <int kHeight, int kWidth, template <int> typename Rows>
NEURON_TARGET void compute_tile(int64_t words, const TileOperand& a, int64_t a_distance, const TileOperand& b,
                                float alpha, float* tile, int64_t stride, bool accumulate) {
  constexpr int kLanes = Units::kLanes;
  Units::Register sums[kHeight][kWidth];
#pragma GCC unroll 14
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kWidth; ++j) sums[i][j] = Units::zero();
  }
  // The tile is touched last; fetch it while the sums are made.
#pragma GCC unroll 1
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kWidth; ++j) __builtin_prefetch(tile + i * stride + j * kLanes, 1);
  }
  // The sums leave no register for what the loop does not need: it waits in memory.
  const volatile float kept_alpha = alpha;
  const int64_t b_step = b.step;
  auto* next = static_cast<const char*>(a.next);
  auto* columns = static_cast<const char*>(b.data);
  Rows<kHeight> rows(a.data, a_distance);
  while (words > 0) {
    int64_t count = words;
    if (next != nullptr) {
      next = Rows<kHeight>::fetch(next, a);
      if (count > kWordsOfLine) count = kWordsOfLine;
    }
    words -= count;
    do {
      Units::Register y[kWidth];
#pragma GCC unroll 2
      for (int j = 0; j < kWidth; ++j) y[j] = Units::load(columns + j * kLanes * sizeof(float));
      // In place: what the tile to the right reads; nothing else would bring it. In a panel: the next words.
#pragma GCC unroll 2
      for (int j = 0; j < kWidth; ++j) __builtin_prefetch(columns + (kWidth + j) * kLanes * sizeof(float), 0, 2);
#pragma GCC unroll 14
      for (int i = 0; i < kHeight; ++i) {
        Units::Register x = Units::broadcast(rows.row(i));
#pragma GCC unroll 2
        for (int j = 0; j < kWidth; ++j) sums[i][j] = Units::multiply_add(x, y[j], sums[i][j]);
      }
      rows.advance();
      columns += b_step;
    } while (--count > 0);
  }
  asm volatile("" : "+r"(tile), "+r"(stride));
  Units::Register scale = Units::fill(kept_alpha);
#pragma GCC unroll 14
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kWidth; ++j) {
      float* target = tile + i * stride + kLanes * j;
      Units::Register value = Units::multiply(scale, sums[i][j]);
      if (accumulate) value = Units::add(Units::load(target), value);
      Units::store(target, value);
    }
  }
}

template <int kWidth, template <int> typename Rows, size_t... kIndex>
constexpr auto make_tiles(std::index_sequence<kIndex...>) {
  return std::array{&compute_tile<static_cast<int>(kIndex) + 1, kWidth, Rows>...};
}

template <int kHeights, int kWidth>
void compute_any(int rows, int64_t words, const TileOperand& a, const TileOperand& b, float alpha, float* tile,
                 int64_t stride, bool accumulate) {
  static constexpr auto kAdjacent = make_tiles<kWidth, AdjacentRows>(std::make_index_sequence<kHeights>());
  static constexpr auto kDistant = make_tiles<kWidth, DistantRows>(std::make_index_sequence<kHeights>());
  if (a.lane == sizeof(float)) {
    kAdjacent[rows - 1](words, a, a.step, b, alpha, tile, stride, accumulate);
  } else {
    kDistant[rows - 1](words, a, a.lane, b, alpha, tile, stride, accumulate);
  }
}

constexpr auto* compute = &compute_any<Units::kRows, 2>;
constexpr auto* compute_narrow = &compute_any<Units::kNarrowRows, 1>;

}  // namespace
}  // namespace neuron::kernels
