// kthvalue, median, nanmedian, searchsorted, bucketize.
#include <ATen/core/Tensor.h>
#include <ATen/ops/gather_ops.h>
#include <c10/core/WrapDimMinimal.h>

#include <limits>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/indexed.h"
#include "torch_neuronx/csrc/aten/promotion.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// Arguments of the kernel "kth_value".
constexpr int64_t kMedian = -1, kNanMedian = -2;

void check_ordered(const at::Tensor& self) {
  require_row_dtype(self);
  if (dtype_of(self) == DType::Bool) refuse();
}

// Records values and indices of the element `k` along a dimension into the results of the call: new tensors, or given
// ones of any layout.
void record_selected(Arguments& arguments, const at::Tensor& self, int64_t k, int64_t dimension, int first_out) {
  if (arguments.size() > first_out) {
    if (arguments.tensor(first_out).scalar_type() != self.scalar_type() ||
        arguments.tensor(first_out + 1).scalar_type() != at::ScalarType::Long) {
      refuse();
    }
  }
  const auto& outputs = arguments.outputs();
  check_no_internal_overlap(outputs[0]);
  check_no_internal_overlap(outputs[1]);
  if (outputs[0].numel() == 0) return;
  static const kernels::Kernel& found = kernel("kth_value");
  record_kernel(found, {with_dimension(outputs[0], self, dimension), with_dimension(outputs[1], self, dimension)},
                {self}, {k, dimension});
}

// Size along the dimension, which the CPU refuses to be 0.
int64_t length_along(const at::Tensor& self, int64_t dimension) {
  const int64_t length = self.dim() > 0 ? self.size(dimension) : 1;
  if (length == 0) refuse();
  return length;
}

// kthvalue(self, k, dim, keepdim): k counts from 1.
void kthvalue(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_ordered(self);
  const int64_t dimension = c10::maybe_wrap_dim(arguments.integer(2), self.dim());
  const int64_t k = arguments.integer(1), length = length_along(self, dimension);
  if (k < 1 || k > length) refuse();
  record_selected(arguments, self, k - 1, dimension, 4);
}

// median.dim(self, dim, keepdim)
template <int64_t kWhich>
void median_along(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_ordered(self);
  const int64_t dimension = c10::maybe_wrap_dim(arguments.integer(1), self.dim());
  length_along(self, dimension);
  record_selected(arguments, self, kWhich, dimension, 3);
}

template <int64_t kWhich>
void median(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_ordered(self);
  at::Tensor value = empty({}, self.scalar_type(), self.device());
  if (self.numel() == 0) {
    // Converted to the dtype, as the CPU does even for integers.
    const at::Tensor none = empty({}, at::ScalarType::Float, self.device());
    record_fill(none, std::numeric_limits<double>::quiet_NaN());
    record_copy(value, none);
  } else {
    at::Tensor index = empty({}, at::ScalarType::Long, self.device());
    static const kernels::Kernel& found = kernel("kth_value");
    record_kernel(found, {value, index}, {as_line(self)}, {kWhich, 0});
  }
  arguments.give(std::move(value));
}

// The place of every value in a sorted sequence, or in its line of sorted sequences.
void record_places(Arguments& arguments, const at::Tensor& sequences, const at::Tensor& values, bool narrow,
                   bool right) {
  const at::Tensor* both[] = {&sequences, &values};
  common_device(both, /*host_numbers=*/true);
  if (sequences.dim() == 0) refuse();
  if (sequences.dim() > 1) {
    if (sequences.dim() != values.dim()) refuse();
    const auto lines = static_cast<size_t>(values.dim()) - 1;
    if (!sequences.sizes().slice(0, lines).equals(values.sizes().slice(0, lines))) refuse();
  }
  const at::ScalarType common = common_dtype(sequences, values);
  require_row_dtype(sequences);
  require_row_dtype(values);
  if (common == at::ScalarType::Bool) refuse();
  if (narrow && sequences.size(-1) > std::numeric_limits<int32_t>::max()) refuse();
  const at::Tensor& places = arguments.output();
  if (places.scalar_type() != (narrow ? at::ScalarType::Int : at::ScalarType::Long)) refuse();
  check_no_internal_overlap(places);
  if (values.numel() == 0) return;
  const at::Tensor dense =
      places.is_contiguous() ? places : empty(places.sizes(), places.scalar_type(), places.device());
  static const kernels::Kernel& found = kernel("search_sorted");
  record_kernel(found, {dense},
                {contiguous(to_dtype(sequences, common)), contiguous(as_common(values, common, sequences.device()))},
                {right});
  if (!dense.is_same(places)) record_copy(places, dense);
}

// searchsorted(sorted_sequence, self, *, out_int32, right, side, sorter)
void search(Arguments& arguments, const at::Tensor& values) {
  bool right = arguments.boolean(3);
  if (!arguments.absent(4)) {
    const std::string_view side = arguments.text(4);
    if ((side != "left" && side != "right") || (side == "left" && right)) refuse();
    right = side == "right";
  }
  at::Tensor sequences = arguments.tensor(0);
  if (!arguments.absent(5)) {
    const at::Tensor& sorter = arguments.tensor(5);
    if (sorter.scalar_type() != at::ScalarType::Long || !sorter.sizes().equals(sequences.sizes())) refuse();
    const at::Tensor* both[] = {&sequences, &sorter};
    common_device(both);
    if (sequences.dim() == 0) refuse();
    sequences = at::_ops::gather::call(sequences, -1, sorter, false);
  }
  record_places(arguments, sequences, values, arguments.boolean(2), right);
}
void search_tensor(Arguments& arguments) { search(arguments, arguments.tensor(1)); }
void search_number(Arguments& arguments) { search(arguments, as_operand(arguments.scalar(1))); }

// bucketize(self, boundaries, *, out_int32, right)
void bucketize(Arguments& arguments, const at::Tensor& values) {
  const at::Tensor& boundaries = arguments.tensor(1);
  if (boundaries.dim() != 1) refuse();
  record_places(arguments, boundaries, values, arguments.boolean(2), arguments.boolean(3));
}
void bucketize_tensor(Arguments& arguments) { bucketize(arguments, arguments.tensor(0)); }
void bucketize_number(Arguments& arguments) { bucketize(arguments, as_operand(arguments.scalar(0))); }

const Registration registrations[] = {
    {"kthvalue", kthvalue},
    {"kthvalue.values", kthvalue},
    {"median", median<kMedian>},
    {"median.dim", median_along<kMedian>},
    {"median.dim_values", median_along<kMedian>},
    {"nanmedian", median<kNanMedian>},
    {"nanmedian.dim", median_along<kNanMedian>},
    {"nanmedian.dim_values", median_along<kNanMedian>},
    {"searchsorted.Tensor", search_tensor},
    {"searchsorted.Tensor_out", search_tensor},
    {"searchsorted.Scalar", search_number},
    {"searchsorted.Scalar_out", search_number},
    {"bucketize.Tensor", bucketize_tensor},
    {"bucketize.Tensor_out", bucketize_tensor},
    {"bucketize.Scalar", bucketize_number},
};

}  // namespace
}  // namespace neuron::aten
