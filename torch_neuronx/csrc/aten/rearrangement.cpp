// flip, roll, channel_shuffle, narrow_copy and the gradient of unfold: copies in another order.
#include <ATen/core/Tensor.h>
#include <ATen/ops/narrow_ops.h>
#include <c10/core/WrapDimMinimal.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/indexed.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// flip(self, dims)
void flip(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  dtype_of(self);
  at::DimVector dims = arguments.integers(1);
  uint64_t seen = 0;
  for (int64_t& dim : dims) {
    // The CPU has the words for a dimension out of range or named twice.
    if (dim < -self.dim() || dim >= self.dim()) decline();
    dim = c10::maybe_wrap_dim(dim, self.dim());
    if ((seen >> dim & 1) != 0) decline();
    seen |= uint64_t{1} << dim;
  }
  at::Tensor out = allocate_like(self);
  if (out.numel() != 0) {
    static const kernels::Kernel& found = kernel("flip");
    const at::Tensor outputs[] = {out}, inputs[] = {self};
    record_kernel(found, outputs, inputs, std::span<const int64_t>(dims.data(), dims.size()));
  }
  arguments.give(std::move(out));
}

// output[…, shift:, …] <- input[…, :size - shift, …] along a dimension, and the rest before it; 0 < shift < size.
void record_rotation(const at::Tensor& output, const at::Tensor& input, int64_t dim, int64_t shift) {
  const int64_t rest = input.size(dim) - shift;
  record_copy(at::_ops::narrow::call(output, dim, shift, rest), at::_ops::narrow::call(input, dim, 0, rest));
  record_copy(at::_ops::narrow::call(output, dim, 0, shift), at::_ops::narrow::call(input, dim, rest, shift));
}

// roll(self, shifts, dims): without dimensions, of all elements in row-major order.
void roll(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  dtype_of(self);
  const at::DimVector shifts = arguments.integers(1), dims = arguments.integers(2);
  const bool flat = dims.empty() && shifts.size() == 1;
  if (!flat && (shifts.size() != dims.size() || shifts.empty())) decline();
  for (int64_t dim : dims) {
    if (dim < -self.dim() || dim >= self.dim()) decline();
  }
  at::Tensor result = flat ? contiguous(self).view(-1) : self;
  bool own = flat && !self.is_contiguous();  // `result` is not the caller's memory
  for (size_t i = 0; i < shifts.size() && self.numel() != 0; ++i) {
    const int64_t dim = flat ? 0 : c10::maybe_wrap_dim(dims[i], self.dim());
    const int64_t size = result.size(dim);
    const int64_t shift = (shifts[i] % size + size) % size;
    if (shift == 0) continue;
    at::Tensor next = empty(result.sizes(), result.scalar_type(), result.device());
    record_rotation(next, result, dim, shift);
    result = std::move(next);
    own = true;
  }
  if (!own) {
    at::Tensor copy = empty(self.sizes(), self.scalar_type(), self.device());
    if (copy.numel() != 0) record_copy(copy, self);
    result = std::move(copy);
  }
  arguments.give(flat ? result.view(self.sizes()) : result);
}

// narrow_copy(self, dim, start, length)
void narrow_copy(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  const at::Tensor& out = arguments.output();
  check_no_internal_overlap(out);
  if (out.numel() == 0) return;
  const at::Tensor part =
      at::_ops::narrow::call(self, arguments.integer(1), arguments.integer(2), arguments.integer(3));
  record_copy(out, apart_from(out, part));
}

// channel_shuffle(self, groups): channels as (groups, channels of a group), transposed.
void channel_shuffle(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  require_indexed_dtype(self);
  const int64_t groups = arguments.integer(1);
  if (self.dim() < 3 || groups < 1 || self.size(1) % groups != 0) refuse();
  const at::Tensor& out = arguments.output();
  if (out.numel() == 0) return;
  const int64_t width = self.size(1) / groups;
  auto split = [&](const at::Tensor& tensor, int64_t outer, int64_t inner, bool swap) {
    at::DimVector sizes(tensor.sizes()), strides(tensor.strides());
    const int64_t stride = strides[1];
    sizes[1] = swap ? inner : outer;
    strides[1] = swap ? stride : stride * inner;
    sizes.insert(sizes.begin() + 2, swap ? outer : inner);
    strides.insert(strides.begin() + 2, swap ? stride * inner : stride);
    return alias(tensor, sizes, strides);
  };
  record_copy(split(out, width, groups, false), split(self, groups, width, true));
}

// unfold_backward(grad_in, input_sizes, dim, size, step)
void unfold_backward(Arguments& arguments) {
  const at::Tensor& gradient = arguments.tensor(0);
  require_indexed_dtype(gradient);
  const at::Tensor& out = arguments.output();
  if (out.numel() == 0) return;
  if (gradient.numel() == 0) return record_fill(out, 0);
  if (out.dim() == 0) return record_copy(out, alias(gradient, {}, {}));
  static const kernels::Kernel& found = kernel("unfold_backward");
  record_kernel(found, {out}, {gradient}, {c10::maybe_wrap_dim(arguments.integer(2), out.dim()), arguments.integer(4)});
}

const Registration registrations[] = {
    {"flip", flip},
    {"roll", roll},
    {"narrow_copy", narrow_copy},
    {"narrow_copy.out", narrow_copy},
    {"channel_shuffle", channel_shuffle},
    {"unfold_backward", unfold_backward},
};

}  // namespace
}  // namespace neuron::aten
