// Sums over a plane of elements, into any of its positions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {

// Sums of a plane that start from zero: in the plane itself, or in float32 beside a narrow one. One at a time in a
// thread.
template <typename E>
class PlaneSums {
 public:
  using S = typename E::Storage;
  using C = typename E::Compute;
  PlaneSums(S* plane, int64_t size) : plane_(plane), size_(size) {
    static thread_local Scratch memory;
    if constexpr (kIsNarrow<E>) {
      sums_ = memory.get<C>(size);
    } else {
      sums_ = plane;
    }
    std::fill(sums_, sums_ + size, C(0));
  }
  C* data() { return sums_; }
  void finish() {
    if constexpr (kIsNarrow<E>) narrow_line<E>(sums_, plane_, size_);
  }

 private:
  S* plane_;
  C* sums_;
  int64_t size_;
};

}  // namespace neuron::kernels
