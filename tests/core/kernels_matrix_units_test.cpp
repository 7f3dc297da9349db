// The processor's matrix units, where it has them.
#include <gtest/gtest.h>
#include <immintrin.h>

#include <cstdint>
#include <vector>

#include "neuron/kernels/matrix_units.h"

namespace neuron::kernels {
namespace {

__attribute__((target(NEURON_MATRIX_UNITS))) void copy_through_the_first_and_last_tile(const uint32_t* from,
                                                                                       uint32_t* to) {
  const MatrixTiles tiles;
  __asm__ volatile("" ::: "memory");
  _tile_loadd(0, from, 64);
  _tile_loadd(7, from + 256, 64);
  _tile_stored(0, to, 64);
  _tile_stored(7, to + 256, 64);
}

// Compiled with optimisation the set-up must still be all of it in memory.
TEST(MatrixUnits, AllTilesHaveSixteenRowsOfSixtyFourBytes) {
  if (!has_bfloat16_matrix_units()) GTEST_SKIP() << "this processor has no matrix units";
  std::vector<uint32_t> from(512), to(512);
  for (uint32_t i = 0; i < 512; ++i) from[i] = i + 1;
  copy_through_the_first_and_last_tile(from.data(), to.data());
  EXPECT_EQ(from, to);
}

}  // namespace
}  // namespace neuron::kernels
