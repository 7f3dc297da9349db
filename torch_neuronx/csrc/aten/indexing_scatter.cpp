// One index per element: gather and the scatter family.
#include <c10/core/WrapDimMinimal.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/indexed.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

// How the kernel combines a place with a new value (its second attribute).
enum Combine : int64_t { kAssign, kAdd, kMultiply, kMinimum, kMaximum };

const kernels::Kernel& scatter_kernel() {
  static const kernels::Kernel& found = kernel("scatter");
  return found;
}

int64_t dimension_of(const Arguments& arguments) {
  return c10::maybe_wrap_dim(arguments.integer(1), arguments.tensor(0).dim());
}

// gather(self, dim, index, *, sparse_grad)
void gather(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &index = arguments.tensor(2);
  if (!is_index(index)) decline();
  dtype_of(self);
  require_one_device(self, index);
  const at::Tensor& out = arguments.output();
  if (out.numel() == 0) return;
  check_no_overlap(out, self);
  static const kernels::Kernel& found = kernel("gather");
  record_kernel(found, {out}, {self, index}, {dimension_of(arguments)});
}

void check_scatter(const at::Tensor& self, const at::Tensor& index, int64_t combine) {
  if (!is_index(index)) decline();
  if (is_complex(dtype_of(self)) && combine != kAssign && combine != kAdd) decline();
}

void scatter_source(Arguments& arguments, int64_t combine) {
  const at::Tensor &self = arguments.tensor(0), &index = arguments.tensor(2), &source = arguments.tensor(3);
  check_scatter(self, index, combine);
  if (source.scalar_type() != self.scalar_type()) decline();
  require_one_device(self, index, source);
  const at::Tensor& out = arguments.output();
  check_no_internal_overlap(out);
  check_no_overlap(out, source);
  check_no_overlap(out, index);
  if (!out.is_same(self)) record_copy(out, self);
  if (index.numel() == 0) return;
  record_kernel(scatter_kernel(), {out}, {index, source}, {dimension_of(arguments), combine}, {}, true);
}

// scatter.src, scatter_add (self, dim, index, src)
void scatter(Arguments& arguments) { scatter_source(arguments, kAssign); }
void scatter_add(Arguments& arguments) { scatter_source(arguments, kAdd); }

void scatter_number(Arguments& arguments, int64_t combine) {
  const at::Tensor &self = arguments.tensor(0), &index = arguments.tensor(2);
  require_one_device(self, index);
  const Scalar value = scalar_of(arguments.scalar(3));
  const at::Tensor& out = arguments.output();
  check_no_internal_overlap(out);
  check_no_overlap(out, index);
  if (!out.is_same(self)) record_copy(out, self);
  if (index.numel() == 0) return;
  record_kernel(scatter_kernel(), {out}, {index}, {dimension_of(arguments), combine}, {value}, true);
}

// scatter.value(self, dim, index, value)
void scatter_value(Arguments& arguments) {
  check_scatter(arguments.tensor(0), arguments.tensor(2), kAssign);
  if (is_complex(dtype_of(arguments.tensor(0)))) decline();
  scatter_number(arguments, kAssign);
}

// scatter.reduce(self, dim, index, src, *, reduce)
void scatter_reduce(Arguments& arguments) {
  const std::string_view name = arguments.text(4);
  if (name == "add" || name == "sum") return scatter_source(arguments, kAdd);
  if (name == "multiply" || name == "prod") return scatter_source(arguments, kMultiply);
  if (name == "amin") return scatter_source(arguments, kMinimum);
  if (name == "amax") return scatter_source(arguments, kMaximum);
  decline();
}

// scatter.value_reduce(self, dim, index, value, *, reduce)
void scatter_value_reduce(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &index = arguments.tensor(2);
  const std::string_view name = arguments.text(4);
  if (name != "add" && name != "multiply") refuse();
  if (!is_index(index)) refuse();
  if (is_complex(dtype_of(self))) decline();
  scatter_number(arguments, name == "add" ? kAdd : kMultiply);
}

const Registration registrations[] = {
    {"gather", gather},
    {"gather.out", gather},
    {"scatter.src", scatter},
    {"scatter.src_out", scatter},
    {"scatter_.src", scatter},
    {"scatter.value", scatter_value},
    {"scatter.value_out", scatter_value},
    {"scatter_.value", scatter_value},
    {"scatter_add", scatter_add},
    {"scatter_add.out", scatter_add},
    {"scatter_add_", scatter_add},
    {"scatter.reduce", scatter_reduce},
    {"scatter.reduce_out", scatter_reduce},
    {"scatter_.reduce", scatter_reduce},
    {"scatter.value_reduce", scatter_value_reduce},
    {"scatter.value_reduce_out", scatter_value_reduce},
    {"scatter_.value_reduce", scatter_value_reduce},
};

}  // namespace
}  // namespace neuron::aten
