// One index tensor along one dimension: embedding, index_select, index_add, index_copy, index_fill.
// Index values are checked when the command runs: an IndexError appears at the next synchronising call.
#include <ATen/core/Tensor.h>
#include <ATen/ops/expand_ops.h>
#include <c10/core/WrapDimMinimal.h>

#include <algorithm>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/indexed.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

const kernels::Kernel& index_select_kernel() {
  static const kernels::Kernel& found = kernel("index_select");
  return found;
}

// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse). The last three matter to the gradient only.
void embedding(Arguments& arguments) {
  const at::Tensor &weight = arguments.tensor(0), &indices = arguments.tensor(1);
  if (weight.dim() != 2 || !is_index(indices)) decline();
  const at::Tensor* both[] = {&weight, &indices};
  const at::Device device = common_device(both);
  dtype_of(weight);
  at::DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  at::Tensor out = empty(sizes, weight.scalar_type(), device);
  if (out.numel() != 0) record_kernel(index_select_kernel(), {out}, {weight, indices}, {0});
  arguments.give(std::move(out));
}

// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
void embedding_dense_backward(Arguments& arguments) {
  const at::Tensor &gradient = arguments.tensor(0), &indices = arguments.tensor(1);
  const DType dtype = dtype_of(gradient);
  if (!is_index(indices) || !is_float(dtype) || dtype_size(dtype) < 2 || gradient.dim() == 0 ||
      !gradient.sizes().slice(0, static_cast<size_t>(gradient.dim()) - 1).equals(indices.sizes())) {
    decline();
  }
  const at::Tensor* both[] = {&gradient, &indices};
  const at::Device device = common_device(both);
  at::Tensor out = empty({arguments.integer(2), gradient.size(-1)}, gradient.scalar_type(), device);
  if (out.numel() != 0) {
    static const kernels::Kernel& found = kernel("embedding_dense_backward");
    record_kernel(found, {out}, {gradient, indices}, {arguments.integer(3), arguments.boolean(4)});
  }
  arguments.give(std::move(out));
}

// index_select(self, dim, index)
void index_select(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &index = arguments.tensor(2);
  if (index.dim() > 1 || !is_index(index) || (self.dim() == 0 && index.numel() != 1)) refuse();
  dtype_of(self);
  require_one_device(self, index);
  const at::Tensor& out = arguments.output();
  if (out.numel() == 0) return;
  record_kernel(index_select_kernel(), {at_least_1d(out)}, {at_least_1d(self), at_least_1d(index)},
                {c10::maybe_wrap_dim(arguments.integer(1), self.dim())});
}

// The functional and out= forms start from a copy of self.
void start_from(const at::Tensor& out, const at::Tensor& self) {
  if (!out.is_same(self)) record_copy(out, apart_from(out, self, true));
}

// index_add(self, dim, index, source, *, alpha), index_copy(self, dim, index, source)
template <bool kAdd>
void write_along(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &index = arguments.tensor(2), &source = arguments.tensor(3);
  const int64_t dimensions = std::max<int64_t>(self.dim(), 1);
  // A copy takes a source of no dimensions as one of one.
  if (index.dim() > 1 || self.scalar_type() != source.scalar_type() ||
      !(kAdd ? is_index(index) : index.scalar_type() == at::ScalarType::Long) ||
      (kAdd ? self.dim() != source.dim() : dimensions != std::max<int64_t>(source.dim(), 1))) {
    refuse();
  }
  dtype_of(self);
  require_one_device(self, index, source);
  if constexpr (kAdd) {
    // The CPU takes the whole part of such a factor, which the Meta kernel refuses.
    if (arguments.scalar(4).isFloatingPoint() && !self.is_floating_point() && !self.is_complex()) decline();
  }
  const at::Tensor& out = arguments.output();
  check_no_internal_overlap(out);
  check_no_overlap(out, source);
  start_from(out, self);
  if (out.numel() == 0 || index.numel() == 0) return;
  const int64_t dimension = c10::maybe_wrap_dim(arguments.integer(1), self.dim());
  const at::Tensor target = at_least_1d(out), values = at_least_1d(source), line = at_least_1d(index);
  for (int64_t d = 0; d < dimensions; ++d) {
    if (values.size(d) != (d == dimension ? line.numel() : target.size(d))) refuse();
  }
  if constexpr (kAdd) {
    static const kernels::Kernel& found = kernel("index_add");
    record_kernel(found, {target}, {values, line}, {dimension}, {scalar_of(arguments.scalar(4))}, true);
  } else {
    static const kernels::Kernel& found = kernel("index_copy");
    record_kernel(found, {target}, {values, line}, {dimension}, {}, true);
  }
}

// index_fill_(self, dim, index, value): a number or a 0-dimensional tensor.
template <bool kTensor>
void index_fill(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &index = arguments.tensor(2);
  if (index.dim() > 1 || index.scalar_type() != at::ScalarType::Long) refuse();
  if (is_complex(dtype_of(self))) decline();
  require_one_device(self, index);
  check_no_internal_overlap(self);
  const int64_t dimension = c10::maybe_wrap_dim(arguments.integer(1), self.dim());
  at::Tensor value = empty({}, self.scalar_type(), self.device());
  if constexpr (kTensor) {
    if (arguments.tensor(3).dim() != 0) refuse();
    record_copy(value, arguments.tensor(3));
  } else {
    record_fill(value, arguments.scalar(3));
  }
  arguments.give(self);
  if (self.numel() == 0 || index.numel() == 0) return;
  const at::Tensor target = at_least_1d(self), line = at_least_1d(index);
  at::DimVector sizes(target.sizes());
  sizes[static_cast<size_t>(dimension)] = line.numel();
  at::Tensor values = at::_ops::expand::call(value, c10::fromIntArrayRefSlow(sizes), false);
  // Negative values count from the end here, unlike in index_copy.
  static const kernels::Kernel& found = kernel("index_put");
  record_kernel(found, {target}, {values, line}, {0, dimension, dimension}, {}, true);
}

const Registration registrations[] = {
    {"embedding", embedding},
    {"embedding_dense_backward", embedding_dense_backward},
    {"index_select", index_select},
    {"index_select.out", index_select},
    {"index_add", write_along<true>},
    {"index_add.out", write_along<true>},
    {"index_add_", write_along<true>},
    {"index_copy", write_along<false>},
    {"index_copy.out", write_along<false>},
    {"index_copy_", write_along<false>},
    {"index_fill_.int_Scalar", index_fill<false>},
    {"index_fill_.int_Tensor", index_fill<true>},
};

}  // namespace
}  // namespace neuron::aten
