// Kernels with results whose size depends on data, in two steps: count first, then write.
#include <vector>

#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

// body(offsets of the operands, whether operand 0 is not zero) for each element in row-major order.
template <size_t N, typename Body>
void for_each_flag(const TensorView& view, const StridedLoop<N>& loop, const Body& body) {
  dispatch_any(view.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    const auto* values = view.as<typename E::Storage>();
    loop.for_each([&](const auto& offsets) { body(offsets, E::load(values[offsets[0]]) != C(0)); });
  });
}

// outputs: int64 scalar; inputs: tensor.
void run_count(const Call& call) {
  int64_t count = 0;
  const TensorView& view = call.inputs[0];
  for_each_flag(view, StridedLoop<1>(view.sizes, {&view.strides}), [&](const auto&, bool flag) { count += flag; });
  *call.outputs[0].as<int64_t>() = count;
}

// outputs: int64 [count, rank]; inputs: tensor. Rows in row-major order.
void run_nonzero(const Call& call) {
  const TensorView& result = call.outputs[0];
  const TensorView& view = call.inputs[0];
  Dims dense = view.strides;
  int64_t stride = 1;
  for (int d = view.rank() - 1; d >= 0; --d) {
    dense[d] = stride;
    stride *= view.sizes[d];
  }
  int64_t row = 0;
  for_each_flag(view, StridedLoop<2>(view.sizes, {&view.strides, &dense}), [&](const auto& offsets, bool flag) {
    if (!flag || row >= result.sizes[0]) return;
    int64_t position = offsets[1];
    for (int d = 0; d < view.rank(); ++d) {
      result.as<int64_t>()[row * result.strides[0] + d * result.strides[1]] = position / dense[d];
      position %= dense[d];
    }
    ++row;
  });
}

// outputs: [count]; inputs: self, mask (bool) of the same sizes (strides 0 where broadcast).
void run_masked_select(const Call& call) {
  const TensorView& result = call.outputs[0];
  const TensorView& self = call.inputs[0];
  const TensorView& mask = call.inputs[1];
  StridedLoop<2> loop(self.sizes, {&mask.strides, &self.strides});
  dispatch_size(dtype_size(self.dtype), [&](auto type) {
    using T = decltype(type);
    int64_t count = 0;
    for_each_flag(mask, loop, [&](const auto& offsets, bool flag) {
      if (flag && count < result.sizes[0]) result.as<T>()[count++ * result.strides[0]] = self.as<T>()[offsets[1]];
    });
  });
}

// outputs: self (read and written); inputs: mask of self's sizes, source: its elements in row-major order.
void run_masked_scatter(const Call& call) {
  const TensorView& self = call.outputs[0];
  const TensorView& mask = call.inputs[0];
  const TensorView& source = call.inputs[1];
  int64_t needed = 0, available = source.numel();
  for_each_flag(mask, StridedLoop<1>(mask.sizes, {&mask.strides}), [&](const auto&, bool flag) { needed += flag; });
  if (needed > available) fail(ErrorKind::Runtime, "Number of elements of source < number of ones in mask");
  dispatch_size(dtype_size(self.dtype), [&](auto type) {
    using T = decltype(type);
    std::vector<T> values;
    values.reserve(available);
    StridedLoop<1>(source.sizes, {&source.strides}).for_each([&](const auto& offsets) {
      values.push_back(source.as<T>()[offsets[0]]);
    });
    size_t next = 0;
    for_each_flag(mask, StridedLoop<2>(self.sizes, {&mask.strides, &self.strides}),
                  [&](const auto& offsets, bool flag) {
                    if (flag) self.as<T>()[offsets[1]] = values[next++];
                  });
  });
}

// inputs: an integer tensor. Raises CPU's error for a division by zero.
void run_check_divisor(const Call& call) {
  const TensorView& view = call.inputs[0];
  bool zero = false;
  for_each_flag(view, StridedLoop<1>(view.sizes, {&view.strides}),
                [&](const auto&, bool flag) { zero = zero || !flag; });
  if (zero) fail(ErrorKind::Runtime, "ZeroDivisionError");
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "count_nonzero", .run = run_count}),
    KernelRegistration({.name = "nonzero", .run = run_nonzero}),
    KernelRegistration({.name = "masked_select", .run = run_masked_select}),
    KernelRegistration({.name = "masked_scatter", .run = run_masked_scatter, .may_raise = true}),
    KernelRegistration({.name = "check_divisor", .run = run_check_divisor, .may_raise = true}),
};

}  // namespace
}  // namespace neuron::kernels
