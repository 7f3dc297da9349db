// flip and roll: copies in another order.
#include <ATen/core/Tensor.h>
#include <ATen/ops/narrow_ops.h>
#include <c10/core/WrapDimMinimal.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

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

const Registration registrations[] = {{"flip", flip}, {"roll", roll}};

}  // namespace
}  // namespace neuron::aten
