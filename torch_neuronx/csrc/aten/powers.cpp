// Powers with a number as exponent: the exponents that PyTorch computes by products and roots are recorded as such.
// polygamma, whose order is a number too.
#include "torch_neuronx/csrc/aten/powers.h"

#include <c10/core/DefaultDtype.h>

#include "neuron/lowering/operator_attributes.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"
#include "torch_neuronx/csrc/aten/tensor_argument.h"

namespace neuron::aten {

const lowering::Operator* special_power(double exponent, bool integral) {
  if (exponent == 1) return &operator_named("copy");
  if (exponent == 2) return &operator_named("square");
  if (exponent == 3) return &operator_named("cube");
  if (integral) return nullptr;
  if (exponent == 0.5) return &operator_named("sqrt");
  if (exponent == -0.5) return &operator_named("rsqrt");
  if (exponent == -1) return &operator_named("reciprocal");
  if (exponent == -2) return &operator_named("reciprocal_square");
  return nullptr;
}

namespace {

// pow(self, exponent), its out= and in-place forms.
void power(Arguments& arguments) {
  static const lowering::Operator& general = operator_named("pow");
  const at::Tensor& self = arguments.tensor(0);
  const at::Scalar exponent = arguments.scalar(1);
  const bool truth = self.scalar_type() == at::ScalarType::Bool;
  if (exponent.isComplex() || (truth && exponent.isBoolean())) decline();
  require_row_dtype(self);
  TORCH_CHECK(self.is_floating_point() || exponent.isFloatingPoint() || exponent.toLong() >= 0,
              "Integers to negative integer powers are not allowed.");
  const at::Tensor& out = arguments.output();
  require_row_dtype(out);
  check_no_internal_overlap(out);
  if (!out.is_same(self)) check_no_partial_overlap(out, self);
  const bool integral = !self.is_floating_point() && !exponent.isFloatingPoint();
  at::ScalarType common = truth ? at::ScalarType::Long : self.scalar_type();
  if (!self.is_floating_point() && exponent.isFloatingPoint()) common = c10::get_default_dtype_as_scalartype();
  const double number = exponent.toDouble();
  if (number == 0) return record_fill(out, 1);
  const lowering::Operator* op = special_power(number, integral);
  if (op != nullptr) {
    record_elementwise(*op, dtype_of(common), out, {Input(self)});
  } else {
    record_elementwise(general, dtype_of(common), out,
                       {Input(self), Input(narrowed(scalar_of(exponent), dtype_of(common)))});
  }
}

// polygamma(n, self) and its out= form.
void polygamma(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("polygamma");
  const int64_t order = arguments.integer(0);
  const at::Tensor& self = arguments.tensor(1);
  require_row_dtype(self);
  const at::Tensor& out = arguments.output();
  require_row_dtype(out);
  if (order > lowering::kLargestPolygamma) decline();
  check_no_internal_overlap(out);
  if (!out.is_same(self)) check_no_partial_overlap(out, self);
  const at::ScalarType common = self.is_floating_point() ? self.scalar_type() : c10::get_default_dtype_as_scalartype();
  record_elementwise(op, dtype_of(common), out, {Input(self)}, {order});
}

const Registration registrations[] = {
    {"polygamma", polygamma},         {"polygamma.out", polygamma}, {"pow.Tensor_Scalar", power},
    {"pow.Tensor_Scalar_out", power}, {"pow_.Scalar", power},
};

}  // namespace
}  // namespace neuron::aten
