// cat: one kernel when all parts have the result's dtype, else a converting copy per part.
#include <ATen/core/Tensor.h>
#include <ATen/ops/narrow_ops.h>
#include <c10/core/WrapDimMinimal.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

void cat(Arguments& arguments) {
  std::vector<at::Tensor> parts = arguments.tensors(0);
  const at::Tensor& out = arguments.output();
  if (out.numel() == 0) return;
  const int64_t dimension = c10::maybe_wrap_dim(arguments.integer(1), out.dim());
  // Empty vectors are skipped whatever the other shapes are.
  std::erase_if(parts, [](const at::Tensor& part) { return part.numel() == 0; });
  bool one_dtype = true;
  for (const at::Tensor& part : parts) {
    check_no_overlap(out, part);
    one_dtype = one_dtype && part.scalar_type() == out.scalar_type();
  }
  if (one_dtype) {
    static const kernels::Kernel& concat = kernel("concat");
    const int64_t attributes[] = {dimension};
    record_kernel(concat, {&out, 1}, parts, attributes);
    return;
  }
  int64_t start = 0;
  for (const at::Tensor& part : parts) {
    record_copy(at::_ops::narrow::call(out, dimension, start, part.size(dimension)), part);
    start += part.size(dimension);
  }
}

const Registration registrations[] = {{"cat", cat}, {"cat.out", cat}};

}  // namespace
}  // namespace neuron::aten
