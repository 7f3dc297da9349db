// Lines of random numbers, many at a time: those of neuron/base/random_numbers.h for the elements first, first + step,
// first + 2 step, … Generated kernels call these.
#pragma once

#include <cstdint>

namespace neuron::kernels {

struct RandomLines {
  void (*words)(uint64_t seed, uint64_t offset, uint64_t first, uint64_t step, int64_t count, uint32_t* to);
  void (*long_words)(uint64_t seed, uint64_t offset, uint64_t first, uint64_t step, int64_t count, uint64_t* to);
  void (*normals)(uint64_t seed, uint64_t offset, uint64_t first, uint64_t step, int64_t count, float* to);
  void (*double_normals)(uint64_t seed, uint64_t offset, uint64_t first, uint64_t step, int64_t count, double* to);
};

// For this processor.
const RandomLines& random_lines();

extern const RandomLines random_lines_avx2, random_lines_avx512;

}  // namespace neuron::kernels
