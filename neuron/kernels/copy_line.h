// Copies of lines of some hundred bytes to some hundred kilobytes.
#pragma once

#include <cstdint>

namespace neuron::kernels {

// In bytes. Longer ones the library writes around the caches.
constexpr int64_t kLongestLine = int64_t{1} << 20;

// Like memcpy. The C library moves such lines by string instructions on some processors, which are several times slower
// when source and target lie alike within their pages: rows of a matrix whose length is a power of two.
void copy_line(void* target, const void* source, int64_t bytes);

}  // namespace neuron::kernels
