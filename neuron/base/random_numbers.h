// The random numbers of an operation recorded with (seed, offset), element by element: docs/numerics.md. Elements share
// blocks of Philox; sixteen neighbours have sixteen neighbouring counters, so that they can be computed side by side:
//
//   32 bits: element 64 b + 16 q + j is word q of counter offset + 16 b + j
//   64 bits: element 32 b + 16 q + j is words 2 q (low) and 2 q + 1 (high) of counter offset + 16 b + j
//
// n elements so use counters of [offset, offset + n) only.
#pragma once

#include <cstdint>

namespace neuron {

uint32_t random_word(uint64_t seed, uint64_t offset, uint64_t element);
uint64_t random_long_word(uint64_t seed, uint64_t offset, uint64_t element);

// Standard normal, by Box and Muller: elements j and j + 16 of 32 are cosine and sine of one angle, from the words (64
// bits: long words) of elements j and j + 16.
float random_normal(uint64_t seed, uint64_t offset, uint64_t element);
double random_normal_double(uint64_t seed, uint64_t offset, uint64_t element);

}  // namespace neuron
