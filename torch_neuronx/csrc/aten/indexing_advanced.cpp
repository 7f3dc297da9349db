// Advanced indexing (x[i, :, j]), masks and nonzero. A mask is turned into index tensors, which needs its count on the
// host: the one flush here.
#include <ATen/core/Tensor.h>
#include <ATen/ops/expand_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/select_ops.h>
#include <ATen/ops/view_ops.h>

#include <algorithm>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/given_output.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

bool is_mask(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::ScalarType::Bool || tensor.scalar_type() == at::ScalarType::Byte;
}

at::Tensor expand(const at::Tensor& tensor, at::IntArrayRef sizes) {
  if (tensor.sizes().equals(sizes)) return tensor;
  return at::_ops::expand::call(tensor, c10::fromIntArrayRefSlow(sizes), false);
}

// Declines shapes that do not broadcast.
at::DimVector broadcast(at::IntArrayRef x, at::IntArrayRef y) {
  at::DimVector result(x.size() >= y.size() ? x : y);
  const at::IntArrayRef shorter = x.size() >= y.size() ? y : x;
  const size_t skip = result.size() - shorter.size();
  for (size_t d = 0; d < shorter.size(); ++d) {
    int64_t& size = result[skip + d];
    if (size != shorter[d] && size != 1 && shorter[d] != 1) decline();
    if (size == 1) size = shorter[d];
  }
  return result;
}

int64_t count_of(const at::Tensor& tensor) {
  static const kernels::Kernel& found = kernel("count_nonzero");
  at::Tensor count = empty({}, at::ScalarType::Long, tensor.device());
  record_kernel(found, {count}, {tensor});
  return *static_cast<const int64_t*>(host_copy(count, eager::FlushReason::DataDependentShape).const_data_ptr());
}

at::Tensor nonzero_of(const at::Tensor& tensor) {
  const int64_t count = tensor.numel() == 0 ? 0 : count_of(tensor);
  at::Tensor places = empty({count, tensor.dim()}, at::ScalarType::Long, tensor.device());
  static const kernels::Kernel& found = kernel("nonzero");
  if (places.numel() != 0) record_kernel(found, {places}, {tensor});
  return places;
}

// The index list resolved: equal-shaped index tensors and the dimensions they index.
struct Resolved {
  std::vector<at::Tensor> indices;  // expanded to the block
  at::DimVector dimensions, block;  // of self; shape of the index tensors
  at::DimVector shape;              // of the result: [before, block, after]
  int64_t position = 0;             // where the block starts in it
};

// Declines what the CPU refuses (its texts) and what has no index tensor at all.
Resolved resolve(const at::Tensor& self, const std::vector<at::Tensor>& given) {
  Resolved resolved;
  int64_t dimension = 0;
  for (const at::Tensor& index : given) {
    if (!index.defined()) {
      ++dimension;
    } else if (is_mask(index)) {
      if (index.dim() == 0 || dimension + index.dim() > self.dim()) decline();
      for (int64_t d = 0; d < index.dim(); ++d) {
        if (index.size(d) != self.size(dimension + d)) decline();
      }
      const at::Tensor places = nonzero_of(is_neuron(index) ? index : to_device(index, self.device()));
      for (int64_t d = 0; d < index.dim(); ++d) {
        resolved.indices.push_back(at::_ops::select_int::call(places, 1, d));
        resolved.dimensions.push_back(dimension++);
      }
    } else {
      if (index.scalar_type() != at::ScalarType::Long && index.scalar_type() != at::ScalarType::Int) decline();
      resolved.indices.push_back(is_neuron(index) ? index : to_device(index, self.device()));
      resolved.dimensions.push_back(dimension++);
    }
  }
  if (dimension > self.dim() || resolved.indices.empty()) decline();
  for (const at::Tensor& index : resolved.indices) {
    if (index.device() != self.device()) decline();
    resolved.block = broadcast(resolved.block, index.sizes());
  }
  for (at::Tensor& index : resolved.indices) index = expand(index, resolved.block);
  int64_t places = 1;
  for (int64_t size : resolved.block) places *= size;
  bool adjacent = true;
  for (size_t t = 0; t < resolved.dimensions.size(); ++t) {
    if (self.size(resolved.dimensions[t]) == 0 && places != 0) decline();
    if (t > 0) adjacent = adjacent && resolved.dimensions[t] == resolved.dimensions[t - 1] + 1;
  }
  // Indexed dimensions side by side are replaced in place; otherwise the block comes first.
  resolved.position = adjacent ? resolved.dimensions.front() : 0;
  at::DimVector kept;
  for (int64_t d = 0; d < self.dim(); ++d) {
    bool indexed = std::find(resolved.dimensions.begin(), resolved.dimensions.end(), d) != resolved.dimensions.end();
    if (!indexed) kept.push_back(self.size(d));
  }
  resolved.shape.append(kept.begin(), kept.begin() + resolved.position);
  resolved.shape.append(resolved.block.begin(), resolved.block.end());
  resolved.shape.append(kept.begin() + resolved.position, kept.end());
  return resolved;
}

// index.Tensor(self, indices)
void index(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  dtype_of(self);
  Resolved resolved = resolve(self, arguments.tensors(1));
  at::Tensor out = empty(resolved.shape, self.scalar_type(), self.device());
  if (out.numel() != 0) {
    std::vector<at::Tensor> inputs{self};
    inputs.insert(inputs.end(), resolved.indices.begin(), resolved.indices.end());
    at::DimVector attributes{resolved.position};
    attributes.append(resolved.dimensions.begin(), resolved.dimensions.end());
    static const kernels::Kernel& found = kernel("index");
    record_kernel(found, {&out, 1}, inputs, {attributes.data(), attributes.size()});
  }
  give_or_write(arguments, 2, {out});
}

// x[mask] = number is a masked_fill: no count, no flush.
bool fill_by_mask(const at::Tensor& self, const std::vector<at::Tensor>& indices, const at::Tensor& value) {
  if (value.numel() != 1 || value.dim() != 0 || (!is_host_number(value) && value.device() != self.device()))
    return false;
  int64_t before = 0;
  const at::Tensor* mask = nullptr;
  for (const at::Tensor& index : indices) {
    if (!index.defined()) {
      if (mask == nullptr) ++before;
      continue;
    }
    if (mask != nullptr || index.scalar_type() != at::ScalarType::Bool || index.device() != self.device()) return false;
    mask = &index;
  }
  if (mask == nullptr || mask->dim() == 0 || before + mask->dim() > self.dim()) return false;
  at::DimVector shape(mask->sizes());
  for (int64_t d = 0; d < mask->dim(); ++d) {
    if (mask->size(d) != self.size(before + d)) return false;
  }
  shape.append(static_cast<size_t>(self.dim() - before - mask->dim()), 1);
  at::Tensor aligned = static_cast<int64_t>(shape.size()) == mask->dim()
                           ? *mask
                           : at::_ops::view::call(contiguous(*mask), c10::fromIntArrayRefSlow(shape));
  at::_ops::masked_fill__Tensor::call(const_cast<at::Tensor&>(self), aligned, value);
  return true;
}

// _index_put_impl_(self, indices, values, accumulate, unsafe)
void index_put(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  const at::Tensor& given = arguments.tensor(2);
  const bool accumulate = arguments.boolean(3);
  if (given.scalar_type() != self.scalar_type()) decline();
  dtype_of(self);
  const std::vector<at::Tensor> indices = arguments.tensors(1);
  if (!accumulate && fill_by_mask(self, indices, given)) {
    arguments.give(self);
    return;
  }
  if (!is_host_number(given)) {
    const at::Tensor* both[] = {&self, &given};
    common_device(both);
  }
  Resolved resolved = resolve(self, indices);
  const at::Tensor values = is_neuron(given) ? given : to_device(given, self.device());
  if (values.dim() > static_cast<int64_t>(resolved.shape.size())) decline();
  for (int64_t d = 1; d <= values.dim(); ++d) {
    const int64_t x = values.size(values.dim() - d), y = resolved.shape[resolved.shape.size() - static_cast<size_t>(d)];
    if (x != y && x != 1) decline();
  }
  check_no_internal_overlap(self);
  check_no_overlap(self, values);
  const at::Tensor expanded = expand(values, resolved.shape);
  if (expanded.numel() != 0) {
    std::vector<at::Tensor> inputs{expanded};
    for (const at::Tensor& index : resolved.indices) {
      check_no_overlap(self, index);
      inputs.push_back(index);
    }
    at::DimVector attributes{accumulate, resolved.position};
    attributes.append(resolved.dimensions.begin(), resolved.dimensions.end());
    static const kernels::Kernel& found = kernel("index_put");
    record_kernel(found, {&self, 1}, inputs, {attributes.data(), attributes.size()}, {}, true);
  }
  arguments.give(self);
}

void nonzero(Arguments& arguments) {
  dtype_of(arguments.tensor(0));
  give_or_write(arguments, 1, {nonzero_of(arguments.tensor(0))});
}

// nonzero_static(self, *, size, fill_value): as many places as are asked for, and a number for those that are missing.
void nonzero_static(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  dtype_of(self);
  const int64_t size = arguments.integer(1);
  if (size < 0) refuse();
  if (arguments.size() > 3 && arguments.tensor(3).scalar_type() != at::ScalarType::Long) refuse();
  const at::Tensor& out = arguments.output();
  check_no_internal_overlap(out);
  if (out.numel() == 0) return;
  const at::Tensor source = apart_from(out, self);
  record_fill(out, arguments.integer(2));
  static const kernels::Kernel& found = kernel("nonzero");
  if (self.numel() != 0) record_kernel(found, {out}, {source}, {}, {}, true);
}

// masked_select(self, mask)
void masked_select(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &mask = arguments.tensor(1);
  if (mask.scalar_type() != at::ScalarType::Bool || !is_neuron(self) || self.device() != mask.device()) decline();
  dtype_of(self);
  const at::DimVector sizes = broadcast(self.sizes(), mask.sizes());
  const at::Tensor wide_mask = expand(mask, sizes);
  const int64_t count = wide_mask.numel() == 0 ? 0 : count_of(wide_mask);
  at::Tensor out = empty({count}, self.scalar_type(), self.device());
  static const kernels::Kernel& found = kernel("masked_select");
  if (count != 0) record_kernel(found, {out}, {expand(self, sizes), wide_mask});
  give_or_write(arguments, 2, {out});
}

// masked_scatter_(self, mask, source)
void masked_scatter(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &mask = arguments.tensor(1), &source = arguments.tensor(2);
  if (mask.scalar_type() != at::ScalarType::Bool || self.scalar_type() != source.scalar_type() ||
      self.device() != mask.device() || self.device() != source.device() || mask.dim() > self.dim()) {
    decline();
  }
  for (int64_t d = 1; d <= mask.dim(); ++d) {
    if (mask.size(mask.dim() - d) != self.size(self.dim() - d) && mask.size(mask.dim() - d) != 1) decline();
  }
  dtype_of(self);
  check_no_internal_overlap(self);
  check_no_overlap(self, mask);
  static const kernels::Kernel& found = kernel("masked_scatter");
  if (self.numel() != 0) record_kernel(found, {self}, {expand(mask, self.sizes()), source}, {}, {}, true);
  arguments.give(self);
}

const Registration registrations[] = {
    {"index.Tensor", index},
    {"index.Tensor_out", index},
    {"_index_put_impl_", index_put},
    {"nonzero", nonzero},
    {"nonzero.out", nonzero},
    {"nonzero_static", nonzero_static},
    {"nonzero_static.out", nonzero_static},
    {"masked_select", masked_select},
    {"masked_select.out", masked_select},
    {"masked_scatter_", masked_scatter},
};

}  // namespace
}  // namespace neuron::aten
