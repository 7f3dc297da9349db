// _grouped_mm: the products of a mixture of experts, one command whatever the sizes of the groups, which stay on the
// device.
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm_ops.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

// _grouped_mm(self, mat2, offs?, bias?, out_dtype?)
void grouped_mm(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &mat2 = arguments.tensor(1), &ends = arguments.tensor(2);
  const DType dtype = dtype_of(self);
  const bool stacked = self.dim() == 3 && mat2.dim() == 3;
  const int64_t inner = self.dim() >= 2 ? self.size(-1) : -1;
  // What is wrong or rare is the CPU's to refuse or to compute.
  const bool fits = (self.dim() == 2 || self.dim() == 3) && (mat2.dim() == 2 || mat2.dim() == 3) &&
                    mat2.size(-2) == inner && self.scalar_type() == mat2.scalar_type() && is_float(dtype) &&
                    dtype_size(dtype) >= 2 && ends.defined() != stacked && arguments.absent(3) &&
                    (arguments.absent(4) || arguments.dtype(4) == self.scalar_type());
  if (!fits) decline();
  const at::Tensor* tensors[] = {&self, &mat2};
  const at::Device device = common_device(tensors);
  if (stacked) {
    if (self.size(0) != mat2.size(0)) decline();
    return arguments.give(at::_ops::bmm::call(self, mat2));
  }
  if (ends.dim() != 1 || ends.scalar_type() != at::ScalarType::Int || ends.device() != device) decline();
  const int64_t groups = ends.size(0), rows = self.size(-2), columns = mat2.size(-1);
  if ((self.dim() == 3 && self.size(0) != groups) || (mat2.dim() == 3 && mat2.size(0) != groups)) decline();
  at::DimVector sizes{rows, columns};
  if (self.dim() == 2 && mat2.dim() == 2) sizes.insert(sizes.begin(), groups);
  at::Tensor out = empty(sizes, self.scalar_type(), device);
  if (out.numel() != 0) {
    static const kernels::Kernel& found = kernel("grouped_gemm");
    record_kernel(found, {out}, {self, mat2, ends});
  }
  arguments.give(std::move(out));
}

const Registration registrations[] = {{"_grouped_mm", grouped_mm}};

}  // namespace
}  // namespace neuron::aten
