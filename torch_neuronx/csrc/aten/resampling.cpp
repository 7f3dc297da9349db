// The interpolations behind torch.nn.functional.interpolate, with their gradients.
#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/dense_kernel.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

// Numbers of neuron/kernels/resampling.cpp.
enum Mode : int64_t { Nearest, NearestExact, Linear, Cubic };

// upsample_*(self, output_size, [align_corners], scale of each dimension?) and
// upsample_*_backward(grad_output, output_size, input_size, [align_corners], scale of each dimension?)
template <Mode kMode, int kRank, bool kBackward>
void resample(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  const DType dtype = dtype_of(self);
  if (!is_float(dtype) || dtype_size(dtype) < 2) decline();
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  int next = kBackward ? 3 : 2;
  const bool has_corners = kMode == Linear || kMode == Cubic;
  const bool align_corners = has_corners && arguments.boolean(next++);
  Scalar scales[kRank];
  for (Scalar& scale : scales) {
    scale = Scalar::of(arguments.absent(next) ? 0.0 : arguments.real(next));
    ++next;
  }
  static const kernels::Kernel& found = kernel(kBackward ? "resample_backward" : "resample");
  const int64_t attributes[] = {kMode, align_corners, kRank};
  record_dense_kernel(found, {out}, {self}, attributes, scales);
}

#define NEURON_RESAMPLING(name, mode, rank)                                        \
  {name, resample<mode, rank, false>}, {name ".out", resample<mode, rank, false>}, \
      {name "_backward", resample<mode, rank, true>}, {                            \
    name "_backward.grad_input", resample<mode, rank, true>                        \
  }

const Registration registrations[] = {
    NEURON_RESAMPLING("upsample_nearest1d", Nearest, 1),
    NEURON_RESAMPLING("upsample_nearest2d", Nearest, 2),
    NEURON_RESAMPLING("upsample_nearest3d", Nearest, 3),
    NEURON_RESAMPLING("_upsample_nearest_exact1d", NearestExact, 1),
    NEURON_RESAMPLING("_upsample_nearest_exact2d", NearestExact, 2),
    NEURON_RESAMPLING("_upsample_nearest_exact3d", NearestExact, 3),
    NEURON_RESAMPLING("upsample_linear1d", Linear, 1),
    NEURON_RESAMPLING("upsample_bilinear2d", Linear, 2),
    NEURON_RESAMPLING("upsample_trilinear3d", Linear, 3),
    NEURON_RESAMPLING("upsample_bicubic2d", Cubic, 2),
};

#undef NEURON_RESAMPLING

}  // namespace
}  // namespace neuron::aten
