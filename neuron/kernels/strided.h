// Walking several tensors of one shape in row-major order, whatever their strides.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "neuron/base/small_vector.h"

namespace neuron::kernels {

// N operands over one iteration space. Dimensions of one element are dropped and neighbours that are one dimension for
// every operand are merged, so that the innermost loop is as long as it can be. Offsets and strides are in elements.
template <size_t N>
class StridedLoop {
 public:
  using Offsets = std::array<int64_t, N>;

  // `strides[i]` has one stride per dimension of `sizes`.
  StridedLoop(const Dims& sizes, const std::array<const Dims*, N>& strides) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 1) continue;
      empty_ = empty_ || sizes[d] == 0;
      bool merges = !sizes_.empty();
      for (size_t i = 0; merges && i < N; ++i) merges = strides_[i].back() == (*strides[i])[d] * sizes[d];
      if (merges) {
        sizes_.back() *= sizes[d];
      } else {
        sizes_.push_back(sizes[d]);
      }
      for (size_t i = 0; i < N; ++i) {
        if (merges) {
          strides_[i].back() = (*strides[i])[d];
        } else {
          strides_[i].push_back((*strides[i])[d]);
        }
      }
    }
    if (!sizes_.empty()) {
      inner_size_ = sizes_.back();
      for (size_t i = 0; i < N; ++i) inner_strides_[i] = strides_[i].back();
    }
    rows_ = empty_ ? 0 : 1;
    for (size_t d = 0; !empty_ && d + 1 < sizes_.size(); ++d) rows_ *= sizes_[d];
  }

  // Rows are the innermost (merged) lines; a scalar is one row of one element.
  int64_t rows() const { return rows_; }
  int64_t inner_size() const { return inner_size_; }
  const Offsets& inner_strides() const { return inner_strides_; }
  bool contiguous() const {
    for (size_t i = 0; i < N; ++i) {
      if (inner_size_ != 1 && inner_strides_[i] != 1) return false;
    }
    return true;
  }

  // body(offsets of the row's first element) for rows [begin, end), in order.
  template <typename Body>
  void for_rows(int64_t begin, int64_t end, const Body& body) const {
    if (begin >= end) return;
    int outer = sizes_.empty() ? 0 : static_cast<int>(sizes_.size()) - 1;
    Dims position(static_cast<size_t>(outer));
    Offsets offsets{};
    int64_t rest = begin;
    for (int d = outer - 1; d >= 0; --d) {
      position[d] = rest % sizes_[d];
      rest /= sizes_[d];
      for (size_t i = 0; i < N; ++i) offsets[i] += position[d] * strides_[i][d];
    }
    for (int64_t row = begin;;) {
      body(static_cast<const Offsets&>(offsets));
      if (++row == end) return;
      for (int d = outer - 1; d >= 0; --d) {
        for (size_t i = 0; i < N; ++i) offsets[i] += strides_[i][d];
        if (++position[d] < sizes_[d]) break;
        for (size_t i = 0; i < N; ++i) offsets[i] -= sizes_[d] * strides_[i][d];
        position[d] = 0;
      }
    }
  }

  // body(offsets of the first row, count) for runs of rows in [begin, end) that are row_strides() apart, in order.
  template <typename Body>
  void for_runs(int64_t begin, int64_t end, const Body& body) const {
    while (begin < end) {
      const int64_t count = std::min(end - begin, run_length() - begin % run_length());
      for_rows(begin, begin + 1, [&](const Offsets& offsets) { body(offsets, count); });
      begin += count;
    }
  }
  int64_t run_length() const { return sizes_.size() < 2 ? 1 : sizes_[sizes_.size() - 2]; }
  Offsets row_strides() const {
    Offsets strides{};
    for (size_t i = 0; i < N && sizes_.size() >= 2; ++i) strides[i] = strides_[i][sizes_.size() - 2];
    return strides;
  }

  // body(offsets) for every element, in order.
  template <typename Body>
  void for_each(const Body& body) const {
    for_rows(0, rows_, [&](Offsets offsets) {
      for (int64_t j = 0; j < inner_size_; ++j) {
        body(static_cast<const Offsets&>(offsets));
        for (size_t i = 0; i < N; ++i) offsets[i] += inner_strides_[i];
      }
    });
  }

 private:
  Dims sizes_;
  std::array<Dims, N> strides_;
  Offsets inner_strides_{};
  int64_t inner_size_ = 1, rows_ = 0;
  bool empty_ = false;
};

}  // namespace neuron::kernels
