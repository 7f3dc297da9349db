// Tensors whose values follow from the position: arange, linspace, eye, tril, triu and the index pairs of a triangle.
// Each is one region command with an index operand: nothing is read.
#include <c10/util/strides.h>

#include <cmath>
#include <limits>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

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

const Registration registrations[] = {
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
