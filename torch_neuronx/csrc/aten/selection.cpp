// kthvalue, median, nanmedian, searchsorted, bucketize.
#include <ATen/core/Tensor.h>
#include <ATen/ops/reshape_ops.h>
#include <c10/core/WrapDimMinimal.h>

#include <limits>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

// Arguments of the kernel "kth_value".
constexpr int64_t kMedian = -1, kNanMedian = -2;

void check_ordered(const at::Tensor& self) {
  if (self.numel() == 0 || is_complex(dtype_of(self))) decline();
}

// Gives values and indices of the element `k` along a dimension.
void give_selected(Arguments& arguments, const at::Tensor& self, int64_t k, int64_t dimension, bool keep) {
  at::DimVector sizes(self.sizes());
  if (self.dim() > 0) sizes[static_cast<size_t>(dimension)] = 1;
  at::Tensor values = empty(sizes, self.scalar_type(), self.device());
  at::Tensor indices = empty(sizes, at::ScalarType::Long, self.device());
  static const kernels::Kernel& found = kernel("kth_value");
  record_kernel(found, {values, indices}, {self}, {k, dimension});
  if (!keep && self.dim() > 0) {
    sizes.erase(sizes.begin() + dimension);
    values = at::_ops::reshape::call(values, c10::fromIntArrayRefSlow(sizes));
    indices = at::_ops::reshape::call(indices, c10::fromIntArrayRefSlow(sizes));
  }
  arguments.give(std::move(values));
  arguments.give(std::move(indices));
}

// kthvalue(self, k, dim, keepdim): k counts from 1.
void kthvalue(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_ordered(self);
  const int64_t dimension = c10::maybe_wrap_dim(arguments.integer(2), self.dim());
  const int64_t k = arguments.integer(1), length = self.dim() > 0 ? self.size(dimension) : 1;
  if (k < 1 || k > length) decline();
  give_selected(arguments, self, k - 1, dimension, arguments.boolean(3));
}

// median.dim(self, dim, keepdim)
template <int64_t kWhich>
void median_along(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_ordered(self);
  const int64_t dimension = c10::maybe_wrap_dim(arguments.integer(1), self.dim());
  give_selected(arguments, self, kWhich, dimension, arguments.boolean(2));
}

template <int64_t kWhich>
void median(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_ordered(self);
  const int64_t count[] = {self.numel()};
  const at::Tensor line = at::_ops::reshape::call(self, c10::fromIntArrayRefSlow(count));
  at::Tensor value = empty({}, self.scalar_type(), self.device());
  at::Tensor index = empty({}, at::ScalarType::Long, self.device());
  static const kernels::Kernel& found = kernel("kth_value");
  record_kernel(found, {value, index}, {line}, {kWhich, 0});
  arguments.give(std::move(value));
}

// The place of every value in a sorted sequence, or in its line of sorted sequences.
void give_places(Arguments& arguments, const at::Tensor& sequences, const at::Tensor& values, bool narrow, bool right) {
  const at::Tensor* both[] = {&sequences, &values};
  const at::Device device = common_device(both);
  if (sequences.scalar_type() != values.scalar_type() || is_complex(dtype_of(values)) || sequences.dim() == 0)
    decline();
  if (sequences.dim() > 1) {
    if (sequences.dim() != values.dim()) decline();
    const auto lines = static_cast<size_t>(values.dim()) - 1;
    if (!sequences.sizes().slice(0, lines).equals(values.sizes().slice(0, lines))) decline();
  }
  if (narrow && sequences.size(-1) > std::numeric_limits<int32_t>::max()) decline();
  at::Tensor places = empty(values.sizes(), narrow ? at::ScalarType::Int : at::ScalarType::Long, device);
  if (values.numel() > 0) {
    static const kernels::Kernel& found = kernel("search_sorted");
    record_kernel(found, {places}, {contiguous(sequences), contiguous(values)}, {right});
  }
  arguments.give(std::move(places));
}

// searchsorted.Tensor(sorted_sequence, self, *, out_int32, right, side, sorter)
void searchsorted(Arguments& arguments) {
  if (!arguments.absent(5)) decline();
  bool right = arguments.boolean(3);
  if (!arguments.absent(4)) {
    const std::string_view side = arguments.text(4);
    if ((side != "left" && side != "right") || (side == "left" && right)) decline();
    right = side == "right";
  }
  give_places(arguments, arguments.tensor(0), arguments.tensor(1), arguments.boolean(2), right);
}

// bucketize.Tensor(self, boundaries, *, out_int32, right)
void bucketize(Arguments& arguments) {
  const at::Tensor& boundaries = arguments.tensor(1);
  if (boundaries.dim() != 1) decline();
  give_places(arguments, boundaries, arguments.tensor(0), arguments.boolean(2), arguments.boolean(3));
}

const Registration registrations[] = {
    {"kthvalue", kthvalue},
    {"median", median<kMedian>},
    {"median.dim", median_along<kMedian>},
    {"nanmedian", median<kNanMedian>},
    {"nanmedian.dim", median_along<kNanMedian>},
    {"searchsorted.Tensor", searchsorted},
    {"bucketize.Tensor", bucketize},
};

}  // namespace
}  // namespace neuron::aten
