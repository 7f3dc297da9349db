// Reflection and replication padding of the last one to three dimensions, with their gradients.
#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/dense_kernel.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

// Numbers of neuron/kernels/padding.cpp.
enum Mode : int64_t { Reflection, Replication };

// *_pad*(self, padding) and *_pad*_backward(grad_output, self, padding); `padding` has what comes before and behind of
// each dimension, innermost first.
template <Mode kMode, int kRank, bool kBackward>
void pad(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  const DType dtype = dtype_of(self);
  const bool floats = dtype_size(dtype) >= 2 && (is_float(dtype) || is_complex(dtype));
  const bool integers = is_signed_integer(dtype) || dtype == DType::UInt8;
  if (!floats && (kBackward || !integers)) decline();  // the CPU has no kernel for these either, and the words for it
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  const at::DimVector padding = arguments.integers(kBackward ? 2 : 1);
  int64_t attributes[2 + kRank] = {kMode, kRank};
  for (int d = 0; d < kRank; ++d) attributes[2 + d] = padding[2 * (kRank - 1 - d)];
  static const kernels::Kernel& found = kernel(kBackward ? "pad_backward" : "pad");
  record_dense_kernel(found, {out}, {self}, attributes);
}

#define NEURON_PADDING(name, mode, rank)                                                                              \
  {name, pad<mode, rank, false>}, {name ".out", pad<mode, rank, false>}, {name "_backward", pad<mode, rank, true>}, { \
    name "_backward.grad_input", pad<mode, rank, true>                                                                \
  }

const Registration registrations[] = {
    NEURON_PADDING("reflection_pad1d", Reflection, 1),   NEURON_PADDING("reflection_pad2d", Reflection, 2),
    NEURON_PADDING("reflection_pad3d", Reflection, 3),   NEURON_PADDING("replication_pad1d", Replication, 1),
    NEURON_PADDING("replication_pad2d", Replication, 2), NEURON_PADDING("replication_pad3d", Replication, 3),
};

#undef NEURON_PADDING

}  // namespace
}  // namespace neuron::aten
