// The register tile of the packed GEMM for one instruction set. The file that includes this header defines before it
// NEURON_TARGET, NEURON_INLINE and, in an unnamed namespace of neuron::kernels, `Units`: Register, kLanes, kRows and
// the operations used below.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "neuron/kernels/gemm_microkernel.h"

namespace neuron::kernels {
namespace {

// The rows of a tile whose words follow each other in memory: few registers reach all of them.
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
};

// The rows of a tile whose lanes are neighbours.
struct AdjacentRows {
  const char* first;
  int64_t step;

  NEURON_INLINE AdjacentRows(const void* data, int64_t distance)
      : first(static_cast<const char*>(data)), step(distance) {}
  NEURON_INLINE const char* row(int i) const { return first + i * sizeof(float); }
  NEURON_INLINE void advance() { first += step; }
};

template <int kHeight, typename Rows>
NEURON_TARGET void compute_tile(int64_t words, const void* a, int64_t a_distance, const void* b, int64_t b_step,
                                float alpha, float* tile, int64_t stride, bool accumulate) {
  constexpr int kLanes = Units::kLanes;
  Units::Register sums[kHeight][2];
#pragma GCC unroll 14
  for (int i = 0; i < kHeight; ++i) sums[i][0] = sums[i][1] = Units::zero();
  // The tile is touched last; fetch it while the sums are made.
#pragma GCC unroll 1
  for (int i = 0; i < kHeight; ++i) {
    __builtin_prefetch(tile + i * stride, 1);
    __builtin_prefetch(tile + i * stride + kLanes, 1);
  }
  // The sums leave no register for what the loop does not need: it waits in memory.
  const volatile float kept_alpha = alpha;
  Rows rows(a, a_distance);
  auto* columns = static_cast<const char*>(b);
  for (int64_t p = 0; p < words; ++p) {
    Units::Register left = Units::load(columns), right = Units::load(columns + kLanes * sizeof(float));
#pragma GCC unroll 14
    for (int i = 0; i < kHeight; ++i) {
      Units::Register x = Units::broadcast(rows.row(i));
      sums[i][0] = Units::multiply_add(x, left, sums[i][0]);
      sums[i][1] = Units::multiply_add(x, right, sums[i][1]);
    }
    rows.advance();
    columns += b_step;
  }
  asm volatile("" : "+r"(tile), "+r"(stride));
  Units::Register scale = Units::fill(kept_alpha);
#pragma GCC unroll 14
  for (int i = 0; i < kHeight; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      float* target = tile + i * stride + kLanes * j;
      Units::Register value = Units::multiply(scale, sums[i][j]);
      if (accumulate) value = Units::add(Units::load(target), value);
      Units::store(target, value);
    }
  }
}

template <typename Rows, size_t... kIndex>
constexpr auto make_tiles(std::index_sequence<kIndex...>) {
  return std::array{&compute_tile<static_cast<int>(kIndex) + 1, Rows>...};
}

void compute(int rows, int64_t words, const TileOperand& a, const TileOperand& b, float alpha, float* tile,
             int64_t stride, bool accumulate) {
  static constexpr auto kAdjacent = make_tiles<AdjacentRows>(std::make_index_sequence<Units::kRows>());
  static constexpr auto kDistant = make_tiles<DistantRows>(std::make_index_sequence<Units::kRows>());
  if (a.lane == sizeof(float)) {
    kAdjacent[rows - 1](words, a.data, a.step, b.data, b.step, alpha, tile, stride, accumulate);
  } else {
    kDistant[rows - 1](words, a.data, a.lane, b.data, b.step, alpha, tile, stride, accumulate);
  }
}

}  // namespace
}  // namespace neuron::kernels
