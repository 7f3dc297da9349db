// Powers with a number as exponent: the exponents that PyTorch computes by products and roots are recorded as such.
#include "torch_neuronx/csrc/aten/powers.h"

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
  if (exponent.isComplex() || self.scalar_type() == at::ScalarType::Bool) decline();
  require_row_dtype(self);
  TORCH_CHECK(self.is_floating_point() || exponent.isFloatingPoint() || exponent.toLong() >= 0,
              "Integers to negative integer powers are not allowed.");
  const at::Tensor& out = arguments.output();
  require_row_dtype(out);
  check_no_internal_overlap(out);
  if (!out.is_same(self)) check_no_partial_overlap(out, self);
  const bool integral = !self.is_floating_point() && !exponent.isFloatingPoint();
  at::ScalarType common = self.scalar_type();
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

const Registration registrations[] = {
    {"pow.Tensor_Scalar", power},
    {"pow.Tensor_Scalar_out", power},
    {"pow_.Scalar", power},
};

}  // namespace
}  // namespace neuron::aten
