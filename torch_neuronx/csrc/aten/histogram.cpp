// histc
#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

// histc(self, bins, min, max) and its out= form. Unlike on the CPU self may be an integer tensor, as on CUDA.
void histc(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  const DType dtype = dtype_of(self);
  if (is_complex(dtype) || dtype == DType::Bool) decline();
  const int64_t bins = arguments.integer(1);
  const double low = arguments.scalar(2).toDouble(), high = arguments.scalar(3).toDouble();
  TORCH_CHECK_VALUE(bins > 0, "bins must be > 0, but got ", bins);
  TORCH_CHECK_VALUE(low <= high, "max must be larger than min, but min is ", low, " and max is ", high);
  at::Tensor out;
  if (arguments.size() > 4) {
    out = arguments.tensor(4);
    // Of another shape it has to be resized, of another dtype refused.
    if (out.dim() != 1 || out.size(0) != bins || out.scalar_type() != self.scalar_type() || !is_neuron(out)) decline();
    check_no_internal_overlap(out);
    check_no_overlap(out, self);
  } else {
    out = empty({bins}, self.scalar_type(), self.device());
  }
  static const kernels::Kernel& found = kernel("histogram");
  record_kernel(found, {out}, {self}, {}, {Scalar::of(low), Scalar::of(high)});
  arguments.give(std::move(out));
}

const Registration registrations[] = {{"histc", histc}, {"histc.out", histc}};

}  // namespace
}  // namespace neuron::aten
