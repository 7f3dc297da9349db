// Variances, standard deviations, norms and log-sum-exp over dimensions.
#include <cmath>

#include "neuron/lowering/operator_attributes.h"
#include "torch_neuronx/csrc/aten/norms.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {

using lowering::NormKind;

NormKind norm_kind(double order) {
  if (order == 0) return NormKind::Zero;
  if (order == 1) return NormKind::One;
  if (order == 2) return NormKind::Two;
  if (std::isinf(order)) return order > 0 ? NormKind::Infinity : NormKind::NegativeInfinity;
  return NormKind::General;
}

namespace {

// var, std, var_mean, std_mean .correction(self, dim?, *, correction?, keepdim).
void moments(Arguments& arguments, const lowering::Operator& op) {
  const at::Tensor& self = arguments.tensor(0);
  if (!self.is_floating_point()) decline();  // complex runs on the CPU, integers raise there
  require_row_dtype(self);
  const double correction = arguments.absent(2) ? 1 : arguments.real(2);
  const auto& outputs = arguments.outputs();
  const uint64_t mask = dimension_mask(arguments.integers(1), self.dim());
  const int64_t count = reduced_count(self, mask);
  if (static_cast<double>(count) - correction <= 0 && outputs[0].numel() != 0) {
    TORCH_WARN(
        "std/var(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
        "(input numel divided by output numel).");
  }
  if (outputs.size() == 1) {
    record_row_statistics(op, dtype_of(self), self, mask, {outputs[0]}, {Input(correction), Input(count)});
  } else {
    record_row_statistics(op, dtype_of(self), self, mask, {outputs[0], outputs[1]}, {Input(correction), Input(count)});
  }
}
void variance(Arguments& arguments) { moments(arguments, operator_named("var")); }
void deviation(Arguments& arguments) { moments(arguments, operator_named("std")); }
void variance_mean(Arguments& arguments) { moments(arguments, operator_named("var_mean")); }
void deviation_mean(Arguments& arguments) { moments(arguments, operator_named("std_mean")); }

void logsumexp(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("logsumexp");
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  const at::Tensor& out = arguments.output();
  if (!out.is_floating_point()) decline();
  record_row_statistics(op, dtype_of(out), self, dimension_mask(arguments.integers(1), self.dim()), {out}, {});
}

// The norm of the elements along the dimensions; one command where they are adjacent.
void record_norm(const at::Tensor& self, double order, uint64_t mask, const at::Tensor& out) {
  require_row_dtype(self);
  require_row_dtype(out);
  static const lowering::Operator &whole = operator_named("linalg_vector_norm"), &part = operator_named("power_sum"),
                                  &root = operator_named("norm_root"), &sum = operator_named("sum"),
                                  &amax = operator_named("amax"), &amin = operator_named("amin");
  const NormKind kind = norm_kind(order);
  const DType common = dtype_of(out), accumulator = compute_dtype(common);
  const at::Tensor input = is_reduced_float(common) ? to_dtype(self, out.scalar_type()) : self;
  const int64_t attribute = static_cast<int64_t>(kind);
  const uint64_t run = innermost_run(input, mask);
  const at::Tensor rows = mergeable(input, run);
  if (run == mask) {
    return record_rows(whole, common, rows.sizes(), run, {out}, {Input(rows), Input(order)}, {attribute});
  }
  // Powers of the elements over the innermost dimensions, sums or extremes over the rest, the root last.
  const at::ScalarType wide = scalar_type_of(accumulator);
  const at::Tensor partial = empty(kept_sizes(rows, run), wide, self.device());
  record_rows(part, accumulator, rows.sizes(), run, {partial}, {Input(rows), Input(order)}, {attribute});
  const lowering::Operator& combine = kind == NormKind::Infinity           ? amax
                                      : kind == NormKind::NegativeInfinity ? amin
                                                                           : sum;
  const at::Tensor total = empty(out.sizes(), wide, self.device());
  record_reduction({combine, combine, combine, combine}, accumulator, accumulator, partial, mask, total);
  record_elementwise(root, common, out, {Input(total), Input(order)}, {attribute});
}

// linalg_vector_norm(self, ord, dim?, keepdim, *, dtype?).
void vector_norm(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  const at::Tensor& out = arguments.output();
  record_norm(self, arguments.real(1), dimension_mask(arguments.integers(2), self.dim()), out);
}

// norm(self, p?, dim, keepdim, *, dtype?); without dim over everything.
void norm_dims(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  const at::Tensor& out = arguments.output();
  const double order = arguments.absent(1) ? 2 : arguments.real(1);
  record_norm(self, order, dimension_mask(arguments.integers(2), self.dim()), out);
}

const Registration registrations[] = {
    {"var.correction", variance},
    {"var.correction_out", variance},
    {"std.correction", deviation},
    {"std.correction_out", deviation},
    {"var_mean.correction", variance_mean},
    {"std_mean.correction", deviation_mean},
    {"logsumexp", logsumexp},
    {"logsumexp.out", logsumexp},
    {"linalg_vector_norm", vector_norm},
    {"linalg_vector_norm.out", vector_norm},
    {"norm.ScalarOpt_dim", norm_dims},
    {"norm.ScalarOpt_dim_dtype", norm_dims},
    {"norm.out", norm_dims},
    {"norm.dtype_out", norm_dims},
};

}  // namespace
}  // namespace neuron::aten
