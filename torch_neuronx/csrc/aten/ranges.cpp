// Tensors whose values follow from the position: arange, linspace, logspace, eye, tril, triu and the index pairs of a
// triangle. Most are one region command with an index operand: nothing is read.
#include <c10/util/strides.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"
#include "torch_neuronx/csrc/register/device.h"

namespace neuron::aten {
namespace {

// arange and range share everything but the count; the Meta kernel checks and counts.
void arange(Arguments& arguments) {
  const at::Tensor& out = arguments.filled_output(3);
  const at::ScalarType type = out.scalar_type();
  if (!has_dtype(type) || c10::isComplexType(type) || type == at::ScalarType::Bool) decline();
  static const lowering::Operator& op = operator_named("arange");
  const at::Scalar start = arguments.scalar(0), step = arguments.scalar(2);
  const at::DimVector strides = c10::contiguous_strides(out.sizes());
  check_no_internal_overlap(out);
  if (c10::isFloatingType(type)) {
    record_elementwise(
        op, dtype_of(type), out,
        {Input::index(0, {strides.data(), strides.size()}), Input(start.toDouble()), Input(step.toDouble())});
  } else {
    record_elementwise(
        op, dtype_of(type), out,
        {Input::index(0, {strides.data(), strides.size()}), Input(start.to<int64_t>()), Input(step.to<int64_t>())});
  }
}

void linspace(Arguments& arguments) {
  const at::Scalar start = arguments.scalar(0), end = arguments.scalar(1);
  const at::ScalarType type = arguments.tensor(3).scalar_type();
  // Integer results are rounded in a way of their own; complex ends have no rule.
  if (start.isComplex() || end.isComplex() || !c10::isFloatingType(type) || !has_dtype(type)) decline();
  const at::Tensor& out = arguments.filled_output(3);
  const int64_t steps = arguments.integer(2);
  check_no_internal_overlap(out);
  if (steps == 1) return record_fill(out, start);
  static const lowering::Operator& op = operator_named("linspace");
  const double first = start.toDouble(), last = end.toDouble();
  double step = (last - first) / static_cast<double>(steps - 1);
  if (type == at::ScalarType::Float) {
    step = static_cast<double>((static_cast<float>(last) - static_cast<float>(first)) / static_cast<float>(steps - 1));
  }
  const at::DimVector strides = c10::contiguous_strides(out.sizes());
  record_elementwise(
      op, dtype_of(type), out,
      {Input::index(0, {strides.data(), strides.size()}), Input(first), Input(last), Input(step), Input(steps)});
}

// Whether the number has a whole part in an integer dtype's range.
bool fits(const at::Scalar& number, at::ScalarType type) {
  const double value = std::trunc(number.toDouble());
  const double bound = std::ldexp(1.0, static_cast<int>(c10::elementSize(type)) * 8 - 1);
  return type == at::ScalarType::Byte ? value >= 0 && value < 2 * bound : value >= -bound && value < bound;
}

void record_eye(const at::Tensor& out) {
  const int64_t strides[] = {-1, 1};
  static const lowering::Operator& op = operator_named("eye");
  record_elementwise(op, dtype_of(out), out, {Input::index(0, strides)});
}

void eye(Arguments& arguments) {
  const at::Tensor& out = arguments.output();
  if (c10::isComplexType(out.scalar_type())) decline();
  record_eye(out);
}

// Index operand column - row - diagonal over the last two dimensions.
template <bool kUpper>
void triangle(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  if (!has_dtype(self.scalar_type()) || c10::isComplexType(self.scalar_type()) || self.dim() < 2) decline();
  const at::Tensor& out = arguments.output();
  at::DimVector strides(static_cast<size_t>(self.dim()), 0);
  strides[strides.size() - 2] = -1;
  strides[strides.size() - 1] = 1;
  static const lowering::Operator& op = operator_named(kUpper ? "triu" : "tril");
  check_no_internal_overlap(out);
  const at::Tensor source = apart_from(out, self, true);
  record_elementwise(op, dtype_of(self), out, {Input(source), Input::index(-arguments.integer(1), strides)});
}

// logspace.out(start, end, steps, base, *, out)
void logspace(Arguments& arguments) {
  const at::Scalar start = arguments.scalar(0), end = arguments.scalar(1);
  const at::ScalarType type = arguments.tensor(4).scalar_type();
  if (start.isComplex() || end.isComplex()) decline();
  if (!c10::isFloatingType(type) && (!fits(start, type) || !fits(end, type))) refuse();
  require_row_dtype(arguments.tensor(4));
  if (type == at::ScalarType::Bool) refuse();
  const int64_t steps = arguments.integer(2);
  const double base = arguments.real(3);
  const at::Tensor& out = arguments.filled_output(4);
  check_no_internal_overlap(out);
  if (out.numel() == 0) return;
  if (steps == 1) return record_fill(out, std::pow(base, start.toDouble()));
  static const kernels::Kernel& found = kernel("logspace");
  const at::Tensor line = out.dim() == 1 ? out : empty({out.numel()}, type, out.device());
  const bool whole = !c10::isFloatingType(type);
  auto edge = [&](const at::Scalar& number) {
    return whole ? Scalar::of(number.to<int64_t>()) : Scalar::of(number.toDouble());
  };
  record_kernel(found, {line}, {}, {}, {edge(start), edge(end), Scalar::of(base)});
  if (out.dim() != 1) record_copy(out, line.view(out.sizes()));
}

// How many elements lie in the triangle of a matrix up to, or from, the diagonal `offset`.
int64_t triangle_size(int64_t rows, int64_t columns, int64_t offset, bool upper) {
  int64_t size = 0;
  for (int64_t row = 0; row < rows && columns > 0; ++row) {
    const int64_t below = std::clamp<int64_t>(row + offset + (upper ? 0 : 1), 0, columns);
    size += upper ? columns - below : below;
  }
  return size;
}

// tril_indices, triu_indices(row, col, offset, *, dtype?, layout?, device?, pin_memory?)
template <bool kUpper>
void triangle_indices(Arguments& arguments) {
  const int64_t rows = arguments.integer(0), columns = arguments.integer(1), offset = arguments.integer(2);
  const at::ScalarType type = arguments.dtype(3).value_or(at::ScalarType::Long);
  if (rows < 0 || columns < 0 || (type != at::ScalarType::Long && type != at::ScalarType::Int)) refuse();
  const at::Device asked = arguments.device(5).value_or(at::Device(c10::DeviceType::PrivateUse1));
  const at::Device device(c10::DeviceType::PrivateUse1, torch_neuronx::resolve_index(asked));
  const at::Tensor out = empty({2, triangle_size(rows, columns, offset, kUpper)}, type, device);
  static const kernels::Kernel& found = kernel("triangle_indices");
  if (out.numel() != 0) record_kernel(found, {out}, {}, {rows, columns, offset, kUpper});
  arguments.give(out);
}

const Registration registrations[] = {
    {"logspace.out", logspace},
    {"tril_indices", triangle_indices<false>},
    {"triu_indices", triangle_indices<true>},
    {"arange.start_out", arange},
    {"range.out", arange},
    {"linspace.out", linspace},
    {"eye.out", eye},
    {"eye.m_out", eye},
    {"tril", triangle<false>},
    {"tril.out", triangle<false>},
    {"tril_", triangle<false>},
    {"triu", triangle<true>},
    {"triu.out", triangle<true>},
    {"triu_", triangle<true>},
};

}  // namespace
}  // namespace neuron::aten
