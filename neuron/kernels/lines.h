// Kernels that work on whole lines along one dimension (sort, topk, cumulative sums).
#pragma once

#include <algorithm>
#include <cstdint>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {

// One line of N tensors: offset of its first element and stride along it.
template <size_t N>
struct Line {
  std::array<int64_t, N> offsets;
  std::array<int64_t, N> strides;
};

// A tensor of rank 0 is one line of one element.
inline TensorView as_lines(TensorView view) {
  if (view.rank() == 0) {
    view.sizes.push_back(1);
    view.strides.push_back(1);
  }
  return view;
}

// body(line) for every line along `dimension`, in parallel; the views are equal in all other sizes.
template <size_t N, typename Body>
void for_each_line(const std::array<const TensorView*, N>& views, int64_t dimension, int threads, const Body& body) {
  Dims sizes = views[0]->sizes;
  int64_t length = 1;
  std::array<const Dims*, N> strides;
  Line<N> line;
  for (size_t i = 0; i < N; ++i) {
    strides[i] = &views[i]->strides;
    line.strides[i] = views[i]->strides[dimension];
    length = std::max(length, views[i]->sizes[dimension]);
  }
  sizes[dimension] = 1;
  StridedLoop<N> loop(sizes, strides);
  int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, length * loop.inner_size()));
  parallel_for(threads, loop.rows(), grain, [&](int64_t begin, int64_t end) {
    loop.for_rows(begin, end, [&](const auto& offsets) {
      Line<N> here = line;
      here.offsets = offsets;
      for (int64_t j = 0; j < loop.inner_size(); ++j) {
        body(static_cast<const Line<N>&>(here));
        for (size_t i = 0; i < N; ++i) here.offsets[i] += loop.inner_strides()[i];
      }
    });
  });
}

}  // namespace neuron::kernels
