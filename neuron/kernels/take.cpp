// Kernels "take" and "put": indices into the elements of a tensor in row-major order. Negative ones count from the end.
#include <algorithm>

#include "neuron/base/error.h"
#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/scratch.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kGrain = 16384;

int64_t checked(int64_t index, int64_t size) {
  const int64_t place = index < 0 ? index + size : index;
  if (place < 0 || place >= size) [[unlikely]]
    fail(ErrorKind::Index, "out of range: tried to access index {} on a tensor of {} elements.", index, size);
  return place;
}

// outputs: result of any strides; inputs: self, one dimension without gaps; indices (int64) of the result's shape.
void run_take(const Call& call) {
  const TensorView &out = call.outputs[0], &self = call.inputs[0], &index = call.inputs[1];
  const int64_t size = self.sizes[0];
  const StridedLoop<2> loop(out.sizes, {&out.strides, &index.strides});
  const int64_t inner = loop.inner_size(), pieces = (inner + kGrain - 1) / kGrain;
  const auto [out_step, index_step] = loop.inner_strides();
  dispatch_size(dtype_size(self.dtype), [&](auto type) {
    using T = decltype(type);
    const T* from = self.as<T>();
    parallel_for(call.threads, loop.rows() * pieces, std::max<int64_t>(1, kGrain / inner),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t task = begin; task < end; ++task) {
                     const int64_t row = task / pieces, first = task % pieces * kGrain;
                     loop.for_rows(row, row + 1, [&](const auto& offsets) {
                       T* to = out.as<T>() + offsets[0];
                       const auto* picks = index.as<int64_t>() + offsets[1];
                       for (int64_t j = first; j < std::min(inner, first + kGrain); ++j)
                         to[j * out_step] = from[checked(picks[j * index_step], size)];
                     });
                   }
                 });
  });
}

// outputs: self, one dimension without gaps (read and written); inputs: values and indices (int64), vectors without
// gaps; attributes: accumulate. In order: the last of equal places stays, sums of narrow floats are rounded once.
void run_put(const Call& call) {
  const TensorView &self = call.outputs[0], &values = call.inputs[0], &index = call.inputs[1];
  const int64_t size = self.sizes[0], count = index.sizes[0];
  const auto* picks = index.as<int64_t>();
  if (call.attributes[0] == 0) {
    return dispatch_size(dtype_size(self.dtype), [&](auto type) {
      using T = decltype(type);
      for (int64_t i = 0; i < count; ++i) self.as<T>()[checked(picks[i], size)] = values.as<T>()[i];
    });
  }
  dispatch_any(self.dtype, [&](auto element) {
    using E = decltype(element);
    using S = typename E::Storage;
    using C = typename E::Compute;
    S* to = self.as<S>();
    const S* from = values.as<S>();
    auto add = [&](C* sums) {
      for (int64_t i = 0; i < count; ++i) {
        C& sum = sums[checked(picks[i], size)];
        sum = add_wrapping(sum, E::load(from[i]));
      }
    };
    if constexpr (kIsNarrow<E>) {
      static thread_local Scratch memory;
      C* wide = memory.get<C>(size);
      widen_line<E>(to, wide, size);
      add(wide);
      narrow_line<E>(wide, to, size);
    } else {
      add(to);
    }
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "take", .run = run_take, .may_raise = true}),
    KernelRegistration({.name = "put", .run = run_put, .may_raise = true}),
};

}  // namespace
}  // namespace neuron::kernels
