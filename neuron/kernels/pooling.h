// What the pooling kernels share: volumes of elements and windows over them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {

// The pooled dimensions of a contiguous tensor, outermost first: its last three, or its last two with a depth of 1.
struct Volume {
  std::array<int64_t, 3> extents;
  Volume(const TensorView& view, int64_t rank)
      : extents{rank == 3 ? view.sizes[view.rank() - 3] : 1, view.sizes[view.rank() - 2], view.sizes[view.rank() - 1]} {
  }
  int64_t depth() const { return extents[0]; }
  int64_t height() const { return extents[1]; }
  int64_t width() const { return extents[2]; }
  int64_t lines() const { return depth() * height(); }
  int64_t size() const { return lines() * width(); }
};

// body(index of a volume) for each of a tensor's, in parallel; `work` is about what one of them takes.
template <typename Body>
void for_each_volume(const TensorView& view, const Volume& volume, int64_t work, int threads, const Body& body) {
  parallel_for(threads, view.numel() / std::max<int64_t>(1, volume.size()),
               std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
                 for (int64_t index = begin; index < end; ++index) body(index);
               });
}

// A window along one dimension: [begin, end) inside the input and its nominal length, padding included.
struct Window {
  int64_t begin, end, nominal;
};

// Adaptive pooling: windows from floor(i * in / out) to ceil((i + 1) * in / out).
inline Window adaptive_window(int64_t position, int64_t in, int64_t out) {
  int64_t begin = position * in / out, end = ((position + 1) * in + out - 1) / out;
  return {begin, end, end - begin};
}

// Attributes of pooling: the number of dimensions; of windows of equal size then follow, for three dimensions, their
// kernel, stride, padding and (of maxima) dilation.
struct PoolAttributes {
  std::span<const int64_t> values;
  int64_t rank() const { return values[0]; }
  bool adaptive() const { return values.size() == 1; }
  int64_t kernel(int d) const { return values[1 + d]; }
  int64_t stride(int d) const { return values[4 + d]; }
  int64_t padding(int d) const { return values[7 + d]; }
  int64_t dilation(int d) const { return values[10 + d]; }
};

}  // namespace neuron::kernels
