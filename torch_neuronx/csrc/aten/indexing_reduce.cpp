// index_reduce and scatter_reduce: places that are named several times take a product, mean, minimum or maximum, with
// or without what they held.
#include <ATen/core/Tensor.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/expand_ops.h>
#include <c10/core/WrapDimMinimal.h>

#include <limits>

#include "neuron/kernels/combine.h"
#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/indexed.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

using kernels::Combine;

struct Reduction {
  Combine combine;
  bool mean = false;
};

Reduction reduction_named(std::string_view name, bool sums) {
  if (sums && name == "sum") return {Combine::Add};
  if (name == "prod") return {Combine::Multiply};
  if (name == "mean") return {Combine::Add, true};
  if (name == "amin") return {Combine::Minimum};
  if (name == "amax") return {Combine::Maximum};
  refuse();
}

template <typename T>
Scalar extreme_of(bool largest) {
  return Scalar::of(static_cast<int64_t>(largest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min()));
}

// What changes no value it is combined with.
Scalar identity_of(Combine combine, at::ScalarType type) {
  if (combine == Combine::Add) return Scalar::of(int64_t{0});
  if (combine == Combine::Multiply) return Scalar::of(int64_t{1});
  const bool largest = combine == Combine::Minimum;
  switch (type) {
    case at::ScalarType::Bool:
      return extreme_of<bool>(largest);
    case at::ScalarType::Byte:
      return extreme_of<uint8_t>(largest);
    case at::ScalarType::Char:
      return extreme_of<int8_t>(largest);
    case at::ScalarType::Short:
      return extreme_of<int16_t>(largest);
    case at::ScalarType::Int:
      return extreme_of<int32_t>(largest);
    case at::ScalarType::Long:
      return extreme_of<int64_t>(largest);
    default:
      return Scalar::of(largest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
  }
}

at::Scalar number_of(const Scalar& scalar) {
  return scalar.dtype == DType::Int64 ? at::Scalar(scalar.as_int()) : at::Scalar(scalar.as_double());
}

// One number as a tensor of some sizes.
at::Tensor constant(const Scalar& number, at::IntArrayRef sizes, const at::Tensor& like) {
  const at::Tensor value = empty({}, like.scalar_type(), like.device());
  record_fill(value, number_of(number));
  return at::_ops::expand::call(value, c10::fromIntArrayRefSlow(sizes), false);
}

// One index tensor along the dimension.
struct IndexedSlices {
  const at::Tensor& index;
  int64_t dimension;

  at::DimVector sizes_in(const at::Tensor& target) const {
    at::DimVector sizes(target.sizes());
    sizes[static_cast<size_t>(dimension)] = index.numel();
    return sizes;
  }
  void assign(const at::Tensor& target, const Scalar& value) const {
    static const kernels::Kernel& found = kernel("index_copy");
    record_kernel(found, {target}, {constant(value, sizes_in(target), target), index}, {dimension}, {}, true);
  }
  void add_one(const at::Tensor& target) const {
    static const kernels::Kernel& found = kernel("index_add");
    const at::Tensor ones = constant(Scalar::of(int64_t{1}), sizes_in(target), target);
    record_kernel(found, {target}, {ones, index}, {dimension}, {Scalar::of(int64_t{1})}, true);
  }
  void combine(const at::Tensor& target, const at::Tensor& source, Combine how) const {
    static const kernels::Kernel& found = kernel("index_reduce");
    record_kernel(found, {target}, {source, index}, {dimension, static_cast<int64_t>(how)}, {}, true);
  }
};

// One index per element.
struct ScatteredElements {
  const at::Tensor& index;
  int64_t dimension;

  static const kernels::Kernel& scatter() {
    static const kernels::Kernel& found = kernel("scatter");
    return found;
  }
  void assign(const at::Tensor& target, const Scalar& value) const {
    record_kernel(scatter(), {target}, {index}, {dimension, static_cast<int64_t>(Combine::Assign)}, {value}, true);
  }
  void add_one(const at::Tensor& target) const {
    const Scalar one = Scalar::of(int64_t{1});
    record_kernel(scatter(), {target}, {index}, {dimension, static_cast<int64_t>(Combine::Add)}, {one}, true);
  }
  void combine(const at::Tensor& target, const at::Tensor& source, Combine how) const {
    record_kernel(scatter(), {target}, {index, source}, {dimension, static_cast<int64_t>(how)}, {}, true);
  }
};

template <typename Places>
void reduce_at(const Places& places, const at::Tensor& target, const at::Tensor& source, Reduction reduction,
               bool include_self) {
  if (!include_self) places.assign(target, identity_of(reduction.combine, target.scalar_type()));
  places.combine(target, source, reduction.combine);
  if (!reduction.mean) return;
  at::Tensor count = empty(target.sizes(), target.scalar_type(), target.device());
  record_fill(count, include_self ? 1 : 0);
  places.add_one(count);
  if (!include_self) count = at::_ops::clamp_min::call(count, 1);
  at::Tensor result = target;
  if (target.is_floating_point()) {
    at::_ops::div__Tensor::call(result, count);
  } else {
    at::_ops::div__Tensor_mode::call(result, count, "floor");
  }
}

// The same for narrow floats, whose sums, products and quotients are rounded once.
template <typename Places>
void reduce_rounding_once(const Places& places, const at::Tensor& out, const at::Tensor& source, Reduction reduction,
                          bool include_self) {
  if (!is_reduced_float(dtype_of(out))) return reduce_at(places, out, source, reduction, include_self);
  const at::Tensor wide = to_dtype(out, at::ScalarType::Float);
  reduce_at(places, wide, to_dtype(source, at::ScalarType::Float), reduction, include_self);
  record_copy(out, wide);
}

const at::Tensor& started_output(Arguments& arguments, const at::Tensor& self, const at::Tensor& index,
                                 const at::Tensor& source) {
  require_one_device(self, index, source);
  const at::Tensor& out = arguments.output();
  check_no_internal_overlap(out);
  check_no_overlap(out, index);
  check_no_overlap(out, source);
  if (!out.is_same(self)) record_copy(out, apart_from(out, self, true));
  return out;
}

// index_reduce(self, dim, index, source, reduce, *, include_self)
void index_reduce(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &index = arguments.tensor(2), &source = arguments.tensor(3);
  const Reduction reduction = reduction_named(arguments.text(4), false);
  if (!is_index(index) || index.dim() > 1 || source.scalar_type() != self.scalar_type() || self.dim() != source.dim())
    refuse();
  require_row_dtype(self);
  if (dtype_of(self) == DType::Bool) refuse();
  const int64_t dimension = c10::maybe_wrap_dim(arguments.integer(1), self.dim());
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (source.size(d) != (d == dimension ? index.numel() : self.size(d))) refuse();
  }
  const at::Tensor& out = started_output(arguments, self, index, source);
  if (out.numel() == 0 || index.numel() == 0) return;
  const at::Tensor line = at_least_1d(index);
  const IndexedSlices places{line, dimension};
  reduce_rounding_once(places, at_least_1d(out), at_least_1d(source), reduction, arguments.boolean(5));
}

// scatter_reduce.two(self, dim, index, src, reduce, *, include_self)
void scatter_reduce(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &index = arguments.tensor(2), &source = arguments.tensor(3);
  const Reduction reduction = reduction_named(arguments.text(4), true);
  const bool include_self = arguments.boolean(5);
  if (!is_index(index) || source.scalar_type() != self.scalar_type()) refuse();
  // Complex numbers are only added.
  const bool only_added = reduction.combine == Combine::Add && !reduction.mean && include_self;
  if (is_complex(dtype_of(self)) ? !only_added : reduction.mean && dtype_of(self) == DType::Bool) decline();
  const at::Tensor& out = started_output(arguments, self, index, source);
  if (index.numel() == 0 || out.numel() == 0) return;
  const ScatteredElements places{index, c10::maybe_wrap_dim(arguments.integer(1), self.dim())};
  // The kernel itself rounds once where it is all there is to do.
  if (include_self && !reduction.mean) return places.combine(out, source, reduction.combine);
  reduce_rounding_once(places, out, source, reduction, include_self);
}

const Registration registrations[] = {
    {"index_reduce", index_reduce},
    {"index_reduce.out", index_reduce},
    {"index_reduce_", index_reduce},
    {"scatter_reduce.two", scatter_reduce},
    {"scatter_reduce.two_out", scatter_reduce},
    {"scatter_reduce_.two", scatter_reduce},
};

}  // namespace
}  // namespace neuron::aten
