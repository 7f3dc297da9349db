// A bitonic network: what is compared never depends on the values, so that nothing is mispredicted, and four or more
// comparisons are one instruction. AVX2 has no minimum of 64-bit integers but of doubles: key and position become the
// 52 bits behind the point of a number in [1, 2), where both orders agree.
#include "neuron/kernels/sort_network.h"

#include <immintrin.h>

#include <bit>

#include "neuron/kernels/avx2.h"

namespace neuron::kernels {
namespace {

constexpr int kPositionBits = 20;
constexpr uint64_t kOne = 0x3ff0000000000000u, kPositions = (uint64_t{1} << kPositionBits) - 1;
constexpr uint64_t kLargest = 0x3fffffffffffffffu;  // behind all entries

NEURON_AVX2 inline void exchange(__m256d& low, __m256d& high) {
  const __m256d smaller = _mm256_min_pd(low, high);
  high = _mm256_max_pd(low, high);
  low = smaller;
}

// Compares each lane with that of `other`: the lanes of kHigher become the larger one, the others the smaller.
template <int kHigher>
NEURON_AVX2 inline __m256d exchange_lanes(__m256d x, __m256d other) {
  return _mm256_blend_pd(_mm256_min_pd(x, other), _mm256_max_pd(x, other), kHigher);
}

NEURON_AVX2 inline __m256d mirrored(__m256d x) { return _mm256_permute4x64_pd(x, 0x1b); }
NEURON_AVX2 inline __m256d neighbours(__m256d x) { return exchange_lanes<0b1010>(x, _mm256_permute_pd(x, 0b0101)); }

// A bitonic four.
NEURON_AVX2 inline __m256d merge_four(__m256d x) {
  return neighbours(exchange_lanes<0b1100>(x, _mm256_permute2f128_pd(x, x, 1)));
}

// `size` values, a power of two of at least 8.
NEURON_AVX2 void sort_values(double* values, int64_t size) {
  for (int64_t i = 0; i < size; i += 4) {
    __m256d x = neighbours(_mm256_loadu_pd(values + i));
    x = neighbours(exchange_lanes<0b1100>(x, mirrored(x)));
    _mm256_storeu_pd(values + i, x);
  }
  for (int64_t run = 8; run <= size; run *= 2) {
    // Two sorted halves, the second one backwards, are compared element by element: each half of the result is bitonic,
    // and nothing of the first is larger than anything of the second.
    for (int64_t begin = 0; begin < size; begin += run) {
      for (int64_t i = 0; i < run / 2; i += 4) {
        double *first = values + begin + i, *last = values + begin + run - 4 - i;
        __m256d low = _mm256_loadu_pd(first), high = mirrored(_mm256_loadu_pd(last));
        exchange(low, high);
        _mm256_storeu_pd(first, low);
        _mm256_storeu_pd(last, mirrored(high));
      }
    }
    int64_t distance = run / 4;
    // Two distances at a time, in registers.
    for (; distance >= 8; distance /= 4) {
      const int64_t half = distance / 2;
      for (int64_t begin = 0; begin < size; begin += 2 * distance) {
        for (int64_t i = begin; i < begin + half; i += 4) {
          __m256d a = _mm256_loadu_pd(values + i), b = _mm256_loadu_pd(values + i + half),
                  c = _mm256_loadu_pd(values + i + distance), d = _mm256_loadu_pd(values + i + distance + half);
          exchange(a, c);
          exchange(b, d);
          exchange(a, b);
          exchange(c, d);
          _mm256_storeu_pd(values + i, a);
          _mm256_storeu_pd(values + i + half, b);
          _mm256_storeu_pd(values + i + distance, c);
          _mm256_storeu_pd(values + i + distance + half, d);
        }
      }
    }
    for (int64_t i = 0; i < size; i += 8) {
      __m256d a = _mm256_loadu_pd(values + i), b = _mm256_loadu_pd(values + i + 4);
      if (distance == 4) exchange(a, b);
      _mm256_storeu_pd(values + i, merge_four(a));
      _mm256_storeu_pd(values + i + 4, merge_four(b));
    }
  }
}

}  // namespace

NEURON_AVX2 void sort_in_network(uint64_t* entries, int64_t count) {
  alignas(32) double values[kLongestNetwork];
  int64_t size = 8;
  while (size < count) size *= 2;
  for (int64_t i = 0; i < count; ++i)
    values[i] = std::bit_cast<double>(kOne | (entries[i] >> 32 << kPositionBits) | (entries[i] & kPositions));
  for (int64_t i = count; i < size; ++i) values[i] = std::bit_cast<double>(kLargest);
  sort_values(values, size);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = std::bit_cast<uint64_t>(values[i]) & ~kOne;
    entries[i] = bits >> kPositionBits << 32 | (bits & kPositions);
  }
}

}  // namespace neuron::kernels
