#include "torch_neuronx/csrc/aten/dense_kernel.h"

#include <vector>

namespace neuron::aten {

void record_dense_kernel(const kernels::Kernel& kernel, std::span<const at::Tensor> outputs,
                         std::span<const at::Tensor> inputs, std::span<const int64_t> attributes,
                         std::span<const Scalar> scalars) {
  std::vector<at::Tensor> dense_outputs, dense_inputs;
  for (const at::Tensor& output : outputs) {
    dense_outputs.push_back(output.is_contiguous() ? output
                                                   : empty(output.sizes(), output.scalar_type(), output.device()));
  }
  for (const at::Tensor& input : inputs) dense_inputs.push_back(contiguous(input));
  record_kernel(kernel, dense_outputs, dense_inputs, attributes, scalars);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_same(dense_outputs[i])) record_copy(outputs[i], dense_outputs[i]);
  }
}

}  // namespace neuron::aten
