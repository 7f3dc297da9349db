// take and put_: indices into the elements of a tensor in row-major order.
#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/indexed.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

void check_index(const at::Tensor& self, const at::Tensor& index) {
  if (index.scalar_type() != at::ScalarType::Long || (self.numel() == 0 && index.numel() != 0)) refuse();
  require_indexed_dtype(self);
  require_one_device(self, index);
}

// take(self, index)
void take(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &index = arguments.tensor(1);
  check_index(self, index);
  if (arguments.size() > 2 && arguments.tensor(2).scalar_type() != self.scalar_type()) refuse();
  const at::Tensor& out = arguments.output();
  check_no_internal_overlap(out);
  check_no_overlap(out, index);
  check_no_overlap(out, self);
  if (out.numel() == 0) return;
  static const kernels::Kernel& found = kernel("take");
  record_kernel(found, {out}, {as_line(self), index});
}

// put_(self, index, source, accumulate)
void put(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &index = arguments.tensor(1), &source = arguments.tensor(2);
  check_index(self, index);
  if (source.scalar_type() != self.scalar_type() || source.numel() != index.numel()) refuse();
  require_one_device(self, index, source);
  check_no_internal_overlap(self);
  check_no_overlap(self, index);
  check_no_overlap(self, source);
  if (index.numel() != 0) {
    static const kernels::Kernel& found = kernel("put");
    const at::Tensor line = as_line(self);
    record_kernel(found, {line}, {as_line(source), as_line(index)}, {arguments.boolean(3)}, {}, true);
    if (!self.is_contiguous()) record_copy(self, line.view(self.sizes()));
  }
  arguments.give(self);
}

const Registration registrations[] = {{"take", take}, {"take.out", take}, {"put_", put}};

}  // namespace
}  // namespace neuron::aten
