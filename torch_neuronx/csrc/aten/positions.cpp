// Tensors that follow from the position of each element: ranges, identities, triangles.
#include <algorithm>

#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

constexpr int64_t kAlong[] = {1};

// arange(start, end, step, *, out).
void arange(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("arange");
  const at::Tensor& out = arguments.output();
  require_row_dtype(out);
  record_elementwise(op, dtype_of(out), out,
                     {Input::index(0, kAlong), Input(arguments.scalar(0)), Input(arguments.scalar(2))});
}

// linspace(start, end, steps, *, out).
void linspace(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("linspace");
  const at::Tensor& out = arguments.output();
  require_row_dtype(out);
  const double start = arguments.real(0), end = arguments.real(1);
  const int64_t steps = arguments.integer(2);
  if (steps == 1) return record_fill(out, arguments.scalar(0));
  const double step = (end - start) / static_cast<double>(steps - 1);
  record_elementwise(op, dtype_of(out), out,
                     {Input::index(0, kAlong), Input(start), Input(end), Input(step), Input(steps)});
}

// Column - row - diagonal, for the last two dimensions.
at::DimVector diagonal_strides(const at::Tensor& tensor) {
  at::DimVector strides(static_cast<size_t>(tensor.dim()), 0);
  strides[strides.size() - 1] = 1;
  strides[strides.size() - 2] = -1;
  return strides;
}

// eye(n, [m], *, out).
void eye(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("eye");
  const at::Tensor& out = arguments.output();
  require_row_dtype(out);
  const at::DimVector strides = diagonal_strides(out);
  record_elementwise(op, dtype_of(out), out, {Input::index(0, {strides.data(), strides.size()})});
}

// tril, triu(self, diagonal).
void triangle(Arguments& arguments, const lowering::Operator& op) {
  const at::Tensor& self = arguments.tensor(0);
  const int64_t diagonal = arguments.integer(1);
  const at::Tensor& out = arguments.output();
  require_row_dtype(self);
  const at::DimVector strides = diagonal_strides(out);
  // Any diagonal beyond the matrix is as good as the first one beyond it.
  const int64_t bound = self.size(-1) + self.size(-2);
  const int64_t base = -std::clamp(diagonal, -bound, bound);
  record_elementwise(op, dtype_of(self), out, {Input(self), Input::index(base, {strides.data(), strides.size()})});
}
void lower_triangle(Arguments& arguments) { triangle(arguments, operator_named("tril")); }
void upper_triangle(Arguments& arguments) { triangle(arguments, operator_named("triu")); }

const Registration registrations[] = {
    {"arange.start_out", arange}, {"linspace.out", linspace},   {"eye.out", eye},          {"eye.m_out", eye},
    {"tril", lower_triangle},     {"tril.out", lower_triangle}, {"tril_", lower_triangle}, {"triu", upper_triangle},
    {"triu.out", upper_triangle}, {"triu_", upper_triangle},
};

}  // namespace
}  // namespace neuron::aten
