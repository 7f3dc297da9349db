#include "torch_neuronx/csrc/aten/indexed.h"

#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {

bool is_index(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::ScalarType::Long || tensor.scalar_type() == at::ScalarType::Int;
}

void require_one_device(const at::Tensor& self, const at::Tensor& index, const at::Tensor& source) {
  const at::Tensor* all[] = {&self, &index, &source};
  common_device(all);
}

void require_indexed_dtype(const at::Tensor& tensor) {
  if (!is_complex(dtype_of(tensor))) require_row_dtype(tensor);
}

at::Tensor as_line(const at::Tensor& tensor) { return alias(contiguous(tensor), {tensor.numel()}, {1}); }

at::Tensor at_least_1d(const at::Tensor& tensor) { return tensor.dim() == 0 ? alias(tensor, {1}, {1}) : tensor; }

}  // namespace neuron::aten
