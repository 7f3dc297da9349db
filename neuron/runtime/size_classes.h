// The sizes the allocator works in. Pure arithmetic.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace neuron::runtime {

inline constexpr size_t kGranule = 256;                 // blocks begin and end at multiples of it
inline constexpr size_t kTinyLimit = size_t{16} << 10;  // up to here: segments of their own, of the small pool
inline constexpr size_t kSmallLimit = size_t{1} << 20;  // below: small pool
inline constexpr size_t kSmallSegment = size_t{2} << 20;
inline constexpr size_t kLargeSegment = size_t{20} << 20;  // for large requests below kOwnSegment
inline constexpr size_t kOwnSegment = size_t{10} << 20;    // from here on a request gets a segment of its own size
inline constexpr size_t kSegmentRounding = size_t{2} << 20;
inline constexpr size_t kClassLimit = size_t{16} << 20;  // from here on sizes have no classes
inline constexpr size_t kLargestRequest = size_t{1} << 46;

constexpr size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

// The block size for a request: 0 < bytes <= kLargestRequest. At most an eighth larger, or kGranule.
constexpr size_t block_size(size_t bytes) {
  if (bytes <= 16 * kGranule || bytes >= kClassLimit) return round_up(bytes, kGranule);
  const int octave = std::bit_width(bytes - 1) - 1;  // 2^octave < bytes <= 2^(octave + 1)
  return round_up(bytes, size_t{1} << (octave - 3));
}

// The segment taken from the driver for a block.
constexpr size_t segment_size(size_t block) {
  if (block < kSmallLimit) return kSmallSegment;
  if (block < kOwnSegment) return kLargeSegment;
  return round_up(block, kSegmentRounding);
}

}  // namespace neuron::runtime
