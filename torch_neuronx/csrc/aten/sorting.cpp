// sort, topk, isin, cumulative sums and extremes.
#include <c10/core/WrapDimMinimal.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

void check_ordered(const at::Tensor& self) {
  if (is_complex(dtype_of(self))) decline();
}

// sort.stable(self, *, stable, dim, descending) and its out= form. Sorting is always stable here.
void sort(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_ordered(self);
  const at::Tensor &values = arguments.output(0), &indices = arguments.output(1);
  if (values.numel() == 0) return;
  static const kernels::Kernel& sort = kernel("sort");
  record_kernel(sort, {values, indices}, {self},
                {c10::maybe_wrap_dim(arguments.integer(2), self.dim()), arguments.boolean(3)});
}

// topk(self, k, dim, largest, sorted)
void topk(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_ordered(self);
  const at::Tensor &values = arguments.output(0), &indices = arguments.output(1);
  if (values.numel() == 0) return;
  static const kernels::Kernel& topk = kernel("topk");
  record_kernel(topk, {values, indices}, {self},
                {arguments.integer(1), c10::maybe_wrap_dim(arguments.integer(2), self.dim()), arguments.boolean(3), 1});
}

// cumsum, cumprod (self, dim, *, dtype): computed in the result's dtype.
template <const char* const& kName>
void cumulative(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  dtype_of(self);
  const at::Tensor& out = arguments.output();
  if (out.numel() == 0) return;
  if (dtype_of(out) == DType::Bool) decline();
  static const kernels::Kernel& found = kernel(kName);
  record_kernel(found, {out}, {to_dtype(self, out.scalar_type())},
                {c10::maybe_wrap_dim(arguments.integer(1), self.dim())});
}

// _cummax_helper(self, values!, indices!, dim)
template <const char* const& kName>
void running_extreme(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_ordered(self);
  if (self.numel() == 0) return;
  static const kernels::Kernel& found = kernel(kName);
  record_kernel(found, {arguments.tensor(1), arguments.tensor(2)}, {self},
                {c10::maybe_wrap_dim(arguments.integer(3), self.dim())});
}

// isin.Tensor_Tensor(elements, test_elements, *, assume_unique, invert)
void isin(Arguments& arguments) {
  const at::Tensor &elements = arguments.tensor(0), &tests = arguments.tensor(1);
  check_ordered(elements);
  if (elements.scalar_type() != tests.scalar_type() || is_host_number(elements) || is_host_number(tests)) decline();
  const at::Tensor& out = arguments.output();
  if (out.numel() == 0) return;
  static const kernels::Kernel& found = kernel("isin");
  record_kernel(found, {out}, {elements, tests}, {arguments.boolean(3)});
}

constexpr const char* kCumsum = "cumsum";
constexpr const char* kCumprod = "cumprod";
constexpr const char* kCummax = "cummax";
constexpr const char* kCummin = "cummin";

const Registration registrations[] = {
    {"isin.Tensor_Tensor", isin},
    {"isin.Tensor_Tensor_out", isin},
    {"sort.stable", sort},
    {"sort.values_stable", sort},
    {"topk", topk},
    {"topk.values", topk},
    {"cumsum", cumulative<kCumsum>},
    {"cumsum.out", cumulative<kCumsum>},
    {"cumsum_", cumulative<kCumsum>},
    {"cumprod", cumulative<kCumprod>},
    {"cumprod.out", cumulative<kCumprod>},
    {"cumprod_", cumulative<kCumprod>},
    {"_cummax_helper", running_extreme<kCummax>},
    {"_cummin_helper", running_extreme<kCummin>},
};

}  // namespace
}  // namespace neuron::aten
