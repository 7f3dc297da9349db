// unique in all its forms, bincount and mode. How many values there are is needed on the host: one flush each.
#include <ATen/core/Tensor.h>
#include <ATen/ops/movedim_ops.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <vector>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/indexed.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

int64_t on_host(const at::Tensor& number) {
  return *static_cast<const int64_t*>(host_copy(number, eager::FlushReason::DataDependentShape).const_data_ptr());
}

at::Tensor integers(at::IntArrayRef sizes, const at::Tensor& like) {
  return empty(sizes, at::ScalarType::Long, like.device());
}

// The first row of each group, and where asked for the group of each row and the size of each group (else empty).
struct Groups {
  at::Tensor first, inverse, counts;
};

// Rows [count, width] without gaps.
Groups groups_of(const at::Tensor& rows, bool sorted, bool inverse, bool counts) {
  const int64_t count = rows.size(0);
  if (count == 0) return {integers({0}, rows), integers({0}, rows), integers({0}, rows)};
  static const kernels::Kernel &find = kernel("unique_groups"), &gather = kernel("unique_results");
  const at::Tensor starts = empty({count}, at::ScalarType::Bool, rows.device()), number = integers({}, rows);
  at::Tensor order;
  if (sorted) {
    order = integers({count}, rows);
    record_kernel(find, {starts, number, order}, {rows});
  } else {
    record_kernel(find, {starts, number}, {rows});
  }
  const int64_t size = on_host(number);
  Groups found{integers({size}, rows), integers({inverse ? count : 0}, rows), integers({counts ? size : 0}, rows)};
  std::vector<at::Tensor> outputs{found.first};
  if (inverse) outputs.push_back(found.inverse);
  if (counts) outputs.push_back(found.counts);
  std::vector<at::Tensor> inputs{starts};
  if (sorted) inputs.push_back(order);
  const int64_t attributes[] = {inverse, counts};
  record_kernel(gather, outputs, inputs, attributes);
  return found;
}

at::Tensor selected(const at::Tensor& self, int64_t dimension, const at::Tensor& index) {
  static const kernels::Kernel& found = kernel("index_select");
  at::DimVector sizes(self.sizes());
  sizes[static_cast<size_t>(dimension)] = index.numel();
  at::Tensor out = empty(sizes, self.scalar_type(), self.device());
  if (out.numel() != 0) record_kernel(found, {out}, {self, index}, {dimension});
  return out;
}

void check_comparable(const at::Tensor& self) {
  const DType dtype = dtype_of(self);
  if (is_complex(dtype) || (is_float(dtype) && dtype_size(dtype) == 1)) refuse();
}

// Of all elements.
void give_unique(Arguments& arguments, bool sorted, bool inverse, bool counts, bool has_counts) {
  const at::Tensor& self = arguments.tensor(0);
  check_comparable(self);
  const at::Tensor line = as_line(self);
  const Groups found = groups_of(alias(line, {self.numel(), 1}, {1, 1}), sorted, inverse, counts);
  at::Tensor values = empty({found.first.numel()}, self.scalar_type(), self.device());
  static const kernels::Kernel& take = kernel("take");
  if (values.numel() != 0) record_kernel(take, {values}, {line, found.first});
  arguments.give(std::move(values));
  arguments.give(inverse ? alias(found.inverse, self.sizes(), c10::contiguous_strides(self.sizes())) : found.inverse);
  if (has_counts) arguments.give(found.counts);
}

// Of slices along a dimension.
void give_unique_slices(Arguments& arguments, int64_t given, bool sorted) {
  const at::Tensor& self = arguments.tensor(0);
  check_comparable(self);
  const int64_t dimension = c10::maybe_wrap_dim(given, self.dim());
  const auto zeros = std::count(self.sizes().begin(), self.sizes().end(), 0);
  if (self.dim() == 0 || zeros > 1 || (zeros == 1 && self.size(dimension) != 0)) refuse();
  const int64_t count = self.size(dimension);
  const at::Tensor rows = contiguous(at::_ops::movedim_int::call(self, dimension, 0));
  const int64_t width = count == 0 ? 1 : self.numel() / count;
  const Groups found = groups_of(alias(rows, {count, width}, {width, 1}), sorted, true, true);
  arguments.give(selected(self, dimension, found.first));
  arguments.give(found.inverse);
  arguments.give(found.counts);
}

// _unique2(self, sorted, return_inverse, return_counts)
void unique_with_counts(Arguments& arguments) {
  give_unique(arguments, true, arguments.boolean(2), arguments.boolean(3), true);
}
// _unique(self, sorted, return_inverse)
void unique(Arguments& arguments) { give_unique(arguments, true, arguments.boolean(2), false, false); }
// unique_consecutive(self, return_inverse, return_counts, dim?)
void unique_consecutive(Arguments& arguments) {
  if (arguments.absent(3) || (arguments.integer(3) == 0 && arguments.tensor(0).dim() == 1)) {
    return give_unique(arguments, false, arguments.boolean(1), arguments.boolean(2), true);
  }
  give_unique_slices(arguments, arguments.integer(3), false);
}
// unique_dim(self, dim, sorted, return_inverse, return_counts)
void unique_slices(Arguments& arguments) { give_unique_slices(arguments, arguments.integer(1), true); }
// unique_dim_consecutive(self, dim, return_inverse, return_counts)
void unique_slices_consecutive(Arguments& arguments) { give_unique_slices(arguments, arguments.integer(1), false); }

// bincount(self, weights?, minlength)
void bincount(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &weights = arguments.tensor(1);
  const int64_t least = arguments.integer(2);
  require_row_dtype(self);
  const bool weighted = weights.defined();
  if (!c10::isIntegralType(self.scalar_type(), false) || self.dim() != 1 || least < 0) refuse();
  if (self.numel() == 0) {
    at::Tensor zeros = integers({least}, self);
    if (least != 0) record_fill(zeros, 0);
    return arguments.give(std::move(zeros));
  }
  if (weighted) {
    if (weights.dim() != 1 || weights.numel() != self.numel()) refuse();
    if (is_complex(dtype_of(weights))) decline();
    const at::Tensor* both[] = {&self, &weights};
    common_device(both);
  }
  static const kernels::Kernel &measure = kernel("bincount_size"), &count = kernel("bincount");
  const at::Tensor size = integers({}, self);
  record_kernel(measure, {size}, {self});
  const at::ScalarType type = !weighted                                        ? at::ScalarType::Long
                              : weights.scalar_type() == at::ScalarType::Float ? at::ScalarType::Float
                                                                               : at::ScalarType::Double;
  at::Tensor out = empty({std::max(on_host(size), least)}, type, self.device());
  record_kernel(count, {out}, {self, weighted ? to_dtype(weights, type) : at::Tensor()});
  arguments.give(std::move(out));
}

// mode(self, dim, keepdim)
void mode(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  const int64_t dimension = c10::maybe_wrap_dim(arguments.integer(1), self.dim());
  if (self.dim() > 0 && self.size(dimension) == 0) refuse();
  if (arguments.size() > 3 && (arguments.tensor(3).scalar_type() != self.scalar_type() ||
                               arguments.tensor(4).scalar_type() != at::ScalarType::Long)) {
    refuse();
  }
  const auto& outputs = arguments.outputs();
  check_no_internal_overlap(outputs[0]);
  check_no_internal_overlap(outputs[1]);
  if (outputs[0].numel() == 0) return;
  static const kernels::Kernel& found = kernel("mode");
  record_kernel(found, {with_dimension(outputs[0], self, dimension), with_dimension(outputs[1], self, dimension)},
                {self}, {dimension});
}

const Registration registrations[] = {
    {"_unique", unique},
    {"_unique2", unique_with_counts},
    {"unique_consecutive", unique_consecutive},
    {"unique_dim", unique_slices},
    {"unique_dim_consecutive", unique_slices_consecutive},
    {"bincount", bincount},
    {"mode", mode},
    {"mode.values", mode},
};

}  // namespace
}  // namespace neuron::aten
