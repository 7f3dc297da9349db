// sort, topk, isin, cumulative sums and extremes.
#include <ATen/native/Resize.h>
#include <c10/core/WrapDimMinimal.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/promotion.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

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

// _logcumsumexp(self, dim)
void log_sums(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  if (is_complex(dtype_of(self))) decline();
  require_row_dtype(self);
  if (!self.is_floating_point()) refuse();
  const bool given = arguments.size() > 2;
  if (given && arguments.tensor(2).scalar_type() != self.scalar_type()) refuse();
  const int64_t dimension = c10::maybe_wrap_dim(arguments.integer(1), self.dim());
  const at::Tensor out = given ? arguments.tensor(2) : empty(self.sizes(), self.scalar_type(), self.device());
  if (given) {
    const at::Tensor* both[] = {&self, &out};
    common_device(both);
    check_no_internal_overlap(out);
    at::native::resize_output(out, self.sizes());
  }
  static const kernels::Kernel& found = kernel("logcumsumexp");
  if (out.numel() != 0) record_kernel(found, {out}, {self}, {dimension});
  arguments.give(out);
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

void record_isin(const at::Tensor& out, const at::Tensor& elements, const at::Tensor& tests, bool invert) {
  check_no_internal_overlap(out);
  if (out.numel() == 0) return;
  const at::ScalarType common = common_dtype(elements, tests);
  const at::Tensor dense =
      out.scalar_type() == at::ScalarType::Bool ? out : empty(out.sizes(), at::ScalarType::Bool, out.device());
  static const kernels::Kernel& found = kernel("isin");
  record_kernel(found, {dense}, {as_common(elements, common, out.device()), as_common(tests, common, out.device())},
                {invert});
  if (!dense.is_same(out)) record_copy(out, dense);
}

void check_members(const at::Tensor& tensor) {
  require_row_dtype(tensor);
  if (tensor.scalar_type() == at::ScalarType::Bool) refuse();
}

// isin(elements, test_elements, *, assume_unique, invert): tensors, or one of them a number.
void isin(Arguments& arguments) {
  const at::Tensor &elements = arguments.tensor(0), &tests = arguments.tensor(1);
  check_members(elements);
  check_members(tests);
  record_isin(arguments.output(), elements, tests, arguments.boolean(3));
}

void isin_number(Arguments& arguments) {
  if (is_complex(dtype_of(arguments.tensor(0)))) decline();
  record_isin(arguments.output(), arguments.tensor(0), as_operand(arguments.scalar(1)), arguments.boolean(3));
}
void number_isin(Arguments& arguments) {
  check_members(arguments.tensor(1));
  record_isin(arguments.output(), as_operand(arguments.scalar(0)), arguments.tensor(1), arguments.boolean(3));
}

constexpr const char* kCumsum = "cumsum";
constexpr const char* kCumprod = "cumprod";
constexpr const char* kCummax = "cummax";
constexpr const char* kCummin = "cummin";

const Registration registrations[] = {
    {"isin.Tensor_Tensor", isin},
    {"isin.Tensor_Tensor_out", isin},
    {"isin.Tensor_Scalar", isin_number},
    {"isin.Tensor_Scalar_out", isin_number},
    {"isin.Scalar_Tensor", number_isin},
    {"isin.Scalar_Tensor_out", number_isin},
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
    {"_logcumsumexp", log_sums},
    {"_logcumsumexp.out", log_sums},
    {"_cummax_helper", running_extreme<kCummax>},
    {"_cummin_helper", running_extreme<kCummin>},
};

}  // namespace
}  // namespace neuron::aten
