// torch.nn.functional.unfold and fold: windows of planes as columns, and back.
#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/dense_kernel.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

// kernel_size, dilation, padding, stride from schema position `first` on; one number stands for both.
at::DimVector attributes_of(const Arguments& arguments, int first) {
  at::DimVector attributes;
  for (int i = 0; i < 4; ++i) {
    const at::DimVector pair = arguments.integers(first + i);
    attributes.push_back(pair[0]);
    attributes.push_back(pair[pair.size() - 1]);
  }
  return attributes;
}

void check_dtype(const at::Tensor& tensor, bool booleans) {
  const DType dtype = dtype_of(tensor);
  const bool floats = dtype_size(dtype) >= 2 && (is_float(dtype) || is_complex(dtype));
  if (!floats && !(booleans && dtype == DType::Bool)) decline();
}

// im2col(self, kernel_size, dilation, padding, stride)
void im2col(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_dtype(self, true);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  const at::DimVector attributes = attributes_of(arguments, 1);
  static const kernels::Kernel& found = kernel("im2col");
  record_dense_kernel(found, {out}, {self}, {attributes.data(), attributes.size()});
}

// col2im(self, output_size, kernel_size, dilation, padding, stride)
void col2im(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_dtype(self, false);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  const at::DimVector attributes = attributes_of(arguments, 2);
  static const kernels::Kernel& found = kernel("col2im");
  record_dense_kernel(found, {out}, {self}, {attributes.data(), attributes.size()});
}

const Registration registrations[] = {
    {"im2col", im2col}, {"im2col.out", im2col}, {"col2im", col2im}, {"col2im.out", col2im}};

}  // namespace
}  // namespace neuron::aten
