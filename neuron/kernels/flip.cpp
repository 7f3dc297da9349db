// Kernel "flip": a copy that walks some dimensions of its source from the end.
#include "neuron/kernels/copy.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

// outputs: target; inputs: source of the same sizes and dtype. attributes: the dimensions to reverse.
void run_flip(const Call& call) {
  TensorView source = call.inputs[0];
  if (source.numel() == 0) return;
  for (int64_t d : call.attributes) {
    int64_t last = (source.sizes[d] - 1) * source.strides[d];
    source.data = source.as<char>() + last * static_cast<int64_t>(dtype_size(source.dtype));
    source.strides[d] = -source.strides[d];
  }
  copy_tensor(call.outputs[0], source, call.threads);
}

const KernelRegistration registration({.name = "flip", .run = run_flip});

}  // namespace
}  // namespace neuron::kernels
