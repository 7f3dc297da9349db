#include "torch_neuronx/csrc/aten/given_output.h"

#include <ATen/native/Resize.h>

#include "torch_neuronx/csrc/aten/refuse.h"

namespace neuron::aten {

void give_or_write(Arguments& arguments, int first_out, std::initializer_list<at::Tensor> results) {
  int i = first_out;
  const bool given = arguments.size() > first_out;
  for (const at::Tensor& result : results) {
    if (given && arguments.tensor(i++).scalar_type() != result.scalar_type()) refuse();
  }
  i = first_out;
  for (const at::Tensor& result : results) {
    if (!given) {
      arguments.give(result);
      continue;
    }
    const at::Tensor& out = arguments.tensor(i++);
    const at::Tensor* both[] = {&result, &out};
    common_device(both);
    check_no_internal_overlap(out);
    at::native::resize_output(out, result.sizes());
    if (out.numel() != 0) record_copy(out, result);
    arguments.give(out);
  }
}

}  // namespace neuron::aten
