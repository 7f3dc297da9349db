// repeat_interleave of a vector of counts: the positions, each as often as it is asked for. The sum of the counts is
// needed on the host unless it is given: the one flush here.
#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

int64_t sum_of(const at::Tensor& repeats) {
  static const kernels::Kernel& found = kernel("sum_repeats");
  at::Tensor sum = empty({}, at::ScalarType::Long, repeats.device());
  record_kernel(found, {sum}, {repeats});
  return *static_cast<const int64_t*>(host_copy(sum, eager::FlushReason::DataDependentShape).const_data_ptr());
}

// repeat_interleave.Tensor(repeats, *, output_size?)
void repeat_interleave(Arguments& arguments) {
  const at::Tensor& repeats = arguments.tensor(0);
  const at::ScalarType type = repeats.scalar_type();
  if (repeats.dim() != 1 || (type != at::ScalarType::Long && type != at::ScalarType::Int)) refuse();
  int64_t size = 0;
  if (repeats.numel() != 0) size = arguments.absent(1) ? sum_of(repeats) : arguments.integer(1);
  at::Tensor out = empty({size}, type, repeats.device());
  static const kernels::Kernel& found = kernel("repeat_interleave");
  if (repeats.numel() != 0) record_kernel(found, {out}, {repeats});
  arguments.give(std::move(out));
}

const Registration registrations[] = {{"repeat_interleave.Tensor", repeat_interleave}};

}  // namespace
}  // namespace neuron::aten
