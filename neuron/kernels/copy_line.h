// Copies of lines of up to some hundred kilobytes.
#pragma once

#include <cstdint>

namespace neuron::kernels {

// In bytes. Longer ones the library writes around the caches.
constexpr int64_t kLongestLine = int64_t{1} << 20;

// Like memcpy. The C library moves such lines by string instructions on some processors, which are several times slower
// when source and target lie alike within their pages: rows of a matrix whose length is a power of two.
void copy_line(void* target, const void* source, int64_t bytes);

// Lines of a few cache lines, in bytes.
constexpr int64_t kShortestBriefLine = 32, kLongestBriefLine = 1024;

// `count` lines, whose steps are in bytes. Brief ones that lie apart are asked for some ahead: no processor guesses
// their addresses.
void copy_lines(void* target, int64_t target_step, const void* source, int64_t source_step, int64_t bytes,
                int64_t count);

}  // namespace neuron::kernels
