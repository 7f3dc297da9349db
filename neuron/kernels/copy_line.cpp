#include "neuron/kernels/copy_line.h"

#include <immintrin.h>

#include <cstring>

#include "neuron/kernels/avx2.h"

namespace neuron::kernels {

NEURON_AVX2 void copy_line(void* target, const void* source, int64_t bytes) {
  constexpr int64_t kBlock = 128;
  if (bytes == 0) return;  // there may be no memory to point to
  if (bytes < kBlock || bytes > kLongestLine) {
    std::memcpy(target, source, static_cast<size_t>(bytes));
    return;
  }
  auto* to = static_cast<char*>(target);
  const auto* from = static_cast<const char*>(source);
  auto move_block = [&](int64_t at) NEURON_AVX2 {
    const auto* x = reinterpret_cast<const __m256i*>(from + at);
    auto* y = reinterpret_cast<__m256i*>(to + at);
    const __m256i a = _mm256_loadu_si256(x), b = _mm256_loadu_si256(x + 1), c = _mm256_loadu_si256(x + 2),
                  d = _mm256_loadu_si256(x + 3);
    _mm256_storeu_si256(y, a);
    _mm256_storeu_si256(y + 1, b);
    _mm256_storeu_si256(y + 2, c);
    _mm256_storeu_si256(y + 3, d);
  };
  int64_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) move_block(at);
  // The last block may overlap the one before.
  if (at < bytes) move_block(bytes - kBlock);
}

}  // namespace neuron::kernels
