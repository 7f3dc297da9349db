#include "neuron/kernels/copy_line.h"

#include <immintrin.h>

#include <cstring>

#include "neuron/kernels/avx2.h"

namespace neuron::kernels {

namespace {

// Blocks of kBlock bytes, the last of which may overlap the one before; bytes >= kBlock.
template <int kBlock>
NEURON_AVX2 inline void copy_blocks(char* to, const char* from, int64_t bytes) {
  auto move_block = [&](int64_t at) NEURON_AVX2 {
    __m256i block[kBlock / 32];
    for (int i = 0; i < kBlock / 32; ++i)
      block[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at) + i);
    for (int i = 0; i < kBlock / 32; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at) + i, block[i]);
  };
  int64_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) move_block(at);
  if (at < bytes) move_block(bytes - kBlock);
}

constexpr int64_t kBytesAhead = 1024;

template <int kBlock>
NEURON_AVX2 void copy_lines_of(char* to, int64_t target_step, const char* from, int64_t source_step, int64_t bytes,
                               int64_t count) {
  const bool apart = source_step > bytes || source_step < 0;
  const int64_t ahead = apart ? (kBytesAhead + bytes - 1) / bytes * source_step : 0;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t at = 0; apart && at < bytes; at += 64) _mm_prefetch(from + ahead + at, _MM_HINT_T0);
    copy_blocks<kBlock>(to, from, bytes);
    to += target_step;
    from += source_step;
  }
}

}  // namespace

NEURON_AVX2 void copy_line(void* target, const void* source, int64_t bytes) {
  if (bytes == 0) return;  // there may be no memory to point to
  if (bytes < 32 || bytes > kLongestLine) {
    std::memcpy(target, source, static_cast<size_t>(bytes));
    return;
  }
  auto* to = static_cast<char*>(target);
  const auto* from = static_cast<const char*>(source);
  bytes < 128 ? copy_blocks<32>(to, from, bytes) : copy_blocks<128>(to, from, bytes);
}

void copy_lines(void* target, int64_t target_step, const void* source, int64_t source_step, int64_t bytes,
                int64_t count) {
  auto* to = static_cast<char*>(target);
  const auto* from = static_cast<const char*>(source);
  if (bytes >= kShortestBriefLine && bytes < 128)
    return copy_lines_of<32>(to, target_step, from, source_step, bytes, count);
  if (bytes >= 128 && bytes <= kLongestBriefLine)
    return copy_lines_of<128>(to, target_step, from, source_step, bytes, count);
  for (int64_t i = 0; i < count; ++i) copy_line(to + i * target_step, from + i * source_step, bytes);
}

}  // namespace neuron::kernels
