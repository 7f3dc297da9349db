// Sums, products, means, truth and counts over dimensions.
#include <algorithm>

#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

ReductionSteps steps_of(std::string_view whole, std::string_view part) {
  return {operator_named(whole), operator_named(part), operator_named(part), operator_named(whole)};
}
const ReductionSteps& sum_steps() {
  static const ReductionSteps steps = steps_of("sum", "sum");
  return steps;
}

// The input in the dtype the reduction is asked to be in: narrow floats round before they are combined, wider ones are
// converted as they are read.
at::Tensor in_dtype(const at::Tensor& self, at::ScalarType dtype) {
  require_row_dtype(self);
  return is_reduced_float(dtype_of(dtype)) ? to_dtype(self, dtype) : self;
}

// sum, nansum, prod and mean: (self, dim?, keepdim, dtype) with the output's dtype as the one of the arithmetic.
void reduce_numbers(Arguments& arguments, const ReductionSteps& steps, bool has_dims, bool counts) {
  const at::Tensor& self = arguments.tensor(0);
  const at::Tensor& out = arguments.output();
  require_row_dtype(out);
  const at::Tensor input = in_dtype(self, out.scalar_type());
  const uint64_t mask = dimension_mask(has_dims ? arguments.integers(1) : at::DimVector(), self.dim());
  const DType common = dtype_of(out);
  if (counts) {
    record_reduction(steps, common, compute_dtype(common), input, mask, out, {Input(reduced_count(self, mask))});
  } else {
    record_reduction(steps, common, compute_dtype(common), input, mask, out);
  }
}

void sum_all(Arguments& arguments) { reduce_numbers(arguments, sum_steps(), false, false); }
void sum_dims(Arguments& arguments) { reduce_numbers(arguments, sum_steps(), true, false); }

void nansum(Arguments& arguments) {
  static const ReductionSteps steps{operator_named("nansum"), operator_named("nansum"), operator_named("sum"),
                                    operator_named("sum")};
  // An empty list means all dimensions, which the Meta kernel does not know.
  if (!arguments.absent(1) && arguments.integers(1).empty() && arguments.tensor(0).dim() > 0) decline();
  reduce_numbers(arguments, steps, true, false);
}

const ReductionSteps& product_steps() {
  static const ReductionSteps steps = steps_of("prod", "prod");
  return steps;
}
void product_all(Arguments& arguments) { reduce_numbers(arguments, product_steps(), false, false); }
void product_dim(Arguments& arguments) { reduce_numbers(arguments, product_steps(), true, false); }

const ReductionSteps& mean_steps() {
  static const ReductionSteps steps = steps_of("mean", "sum");
  return steps;
}
void mean_all(Arguments& arguments) { reduce_numbers(arguments, mean_steps(), false, true); }
void mean_dims(Arguments& arguments) { reduce_numbers(arguments, mean_steps(), true, true); }

// any, all: whatever the dtype, only zero or not counts.
template <bool every>
void truth(Arguments& arguments, bool has_dims) {
  static const ReductionSteps steps = steps_of(every ? "all" : "any", every ? "all" : "any");
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  const at::Tensor& out = arguments.output();
  const at::DimVector dims = has_dims ? arguments.integers(1) : at::DimVector();
  // any(dim=[]) reduces nothing; an omitted list reduces everything.
  const bool nothing = has_dims && dims.empty() && !arguments.absent(1);
  record_reduction(steps, DType::Bool, DType::Bool, self, nothing ? 0 : dimension_mask(dims, self.dim()), out);
}
void any_all(Arguments& arguments) { truth<false>(arguments, false); }
void any_dims(Arguments& arguments) { truth<false>(arguments, true); }
void all_all(Arguments& arguments) { truth<true>(arguments, false); }
void all_dims(Arguments& arguments) { truth<true>(arguments, true); }

void count_nonzero(Arguments& arguments) {
  static const ReductionSteps steps{operator_named("count_nonzero"), operator_named("count_nonzero"),
                                    operator_named("sum"), operator_named("sum")};
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  const at::Tensor& out = arguments.output();
  record_reduction(steps, DType::Int64, DType::Int64, self, dimension_mask(arguments.integers(1), self.dim()), out);
}

// amax, amin(self, dim, keepdim), and max, min over everything.
template <bool maximum>
void extreme(Arguments& arguments, bool has_dims) {
  static const ReductionSteps steps = steps_of(maximum ? "amax" : "amin", maximum ? "amax" : "amin");
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  const at::Tensor& out = arguments.output();
  const DType common = dtype_of(self);
  const uint64_t mask = dimension_mask(has_dims ? arguments.integers(1) : at::DimVector(), self.dim());
  record_reduction(steps, common, compute_dtype(common), self, mask, out);
}
void amax(Arguments& arguments) { extreme<true>(arguments, true); }
void amin(Arguments& arguments) { extreme<false>(arguments, true); }
void max_all(Arguments& arguments) {
  TORCH_CHECK(
      arguments.tensor(0).numel() > 0,
      "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
      "'dim' argument.");
  extreme<true>(arguments, false);
}
void min_all(Arguments& arguments) {
  TORCH_CHECK(
      arguments.tensor(0).numel() > 0,
      "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
      "'dim' argument.");
  extreme<false>(arguments, false);
}

// trace(self): the sum of the diagonal.
void trace(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  if (self.dim() != 2 || dtype_of(self) == DType::Bool) refuse();
  const at::Tensor diagonal = alias(self, {std::min(self.size(0), self.size(1))}, {self.stride(0) + self.stride(1)});
  const at::Tensor& out = arguments.output();
  const DType common = dtype_of(out);
  record_reduction(sum_steps(), common, compute_dtype(common), in_dtype(diagonal, out.scalar_type()),
                   dimension_mask({}, 1), out);
}

const Registration registrations[] = {
    {"trace", trace},
    {"sum", sum_all},
    {"sum.dim_IntList", sum_dims},
    {"sum.IntList_out", sum_dims},
    {"nansum", nansum},
    {"nansum.out", nansum},
    {"prod", product_all},
    {"prod.dim_int", product_dim},
    {"prod.int_out", product_dim},
    {"mean", mean_all},
    {"mean.dim", mean_dims},
    {"mean.out", mean_dims},
    {"any", any_all},
    {"any.all_out", any_all},
    {"any.dim", any_dims},
    {"any.out", any_dims},
    {"any.dims", any_dims},
    {"any.dims_out", any_dims},
    {"all", all_all},
    {"all.all_out", all_all},
    {"all.dim", all_dims},
    {"all.out", all_dims},
    {"all.dims", all_dims},
    {"all.dims_out", all_dims},
    {"count_nonzero.dim_IntList", count_nonzero},
    {"amax", amax},
    {"amax.out", amax},
    {"amin", amin},
    {"amin.out", amin},
    {"max", max_all},
    {"max.unary_out", max_all},
    {"min", min_all},
    {"min.unary_out", min_all},
};

}  // namespace
}  // namespace neuron::aten
