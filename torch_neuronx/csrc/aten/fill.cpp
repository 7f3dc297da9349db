// Filling with one value, and reading one value back.
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_local_scalar_dense_ops.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/fill_ops.h>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/copy.h"
#include "torch_neuronx/csrc/aten/known_numbers.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/tensor_argument.h"
#include "torch_neuronx/csrc/register/storage.h"

namespace neuron::aten {
namespace {

// The value as the dtype holds it, as a 0-dimensional CPU tensor: raises CPU's text when it does not fit.
at::Tensor host_element(const at::Scalar& value, at::ScalarType dtype) {
  at::Tensor element(at::detail::empty_cpu({}, dtype));
  at::AutoDispatchBelowADInplaceOrView below;
  at::_ops::fill__Scalar::call(element, value);
  return element;
}

}  // namespace

void record_fill(const at::Tensor& output, const at::Scalar& value) {
  if (output.numel() == 0) return;
  static const lowering::Operator& op = operator_named("fill");
  const at::ScalarType dtype = output.scalar_type();
  if (c10::isComplexType(dtype) && has_dtype(dtype)) {
    const at::Tensor parts = as_real(output);
    const auto number = value.toComplexDouble();
    record_fill(parts.select(-1, 0), number.real());
    record_fill(parts.select(-1, 1), number.imag());
    return;
  }
  const bool plain = has_dtype(dtype) && (c10::elementSize(dtype) > 1 || dtype == at::ScalarType::Bool);
  if (plain && c10::isFloatingType(dtype) && !value.isComplex()) {
    const Scalar number = scalar_of(value);
    record_elementwise(op, dtype_of(dtype), output, {Input(number)});
    if (output.dim() == 0)
      remember_number(read_argument(output), torch_neuronx::current_stream(output.device()), number);
    return;
  }
  const at::Tensor element = host_element(value, dtype);
  if (plain || c10::isIntegralType(dtype, /*includeBool=*/true)) {
    record_elementwise(op, dtype_of(dtype), output, {Input(element)});
    return;
  }
  // float8 and the like: the bits of the element.
  if (c10::elementSize(dtype) != 1) decline();
  record_elementwise(op, DType::UInt8, reinterpret(output, at::ScalarType::Byte),
                     {Input(reinterpret(element, at::ScalarType::Byte))});
}

namespace {

void fill_scalar(Arguments& arguments) {
  record_fill(arguments.tensor(0), arguments.scalar(1));
  arguments.give(arguments.tensor(0));
}

void fill_tensor(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  const at::Tensor& value = arguments.tensor(1);
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
  if (value.device().is_cpu()) {
    record_fill(self, at::_ops::_local_scalar_dense::call(value));
  } else {
    copy_tensor(self, value, false);
  }
  arguments.give(self);
}

void zero(Arguments& arguments) {
  record_fill(arguments.tensor(0), 0);
  arguments.give(arguments.tensor(0));
}

void local_scalar_dense(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  TORCH_CHECK(self.numel() > 0, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  arguments.give(at::_ops::_local_scalar_dense::call(host_copy(self)));
}

void equal(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  const at::Tensor& other = arguments.tensor(1);
  const at::Tensor* both[] = {&self, &other};
  TORCH_CHECK(self.device() == other.device(), "Cannot compare two tensors on different devices. Got: ", self.device(),
              " and ", other.device());
  common_device(both);
  bool result = self.sizes().equals(other.sizes());
  if (result && self.numel() != 0) {
    at::AutoDispatchBelowADInplaceOrView below;
    const at::Tensor all = at::_ops::all::call(at::_ops::eq_Tensor::call(self, other));
    result = at::_ops::_local_scalar_dense::call(host_copy(all)).toBool();
  }
  arguments.give_boolean(result);
}

const Registration registrations[] = {
    {"fill_.Scalar", fill_scalar},
    {"fill_.Tensor", fill_tensor},
    {"zero_", zero},
    {"_local_scalar_dense", local_scalar_dense},
    {"equal", equal},
};

}  // namespace
}  // namespace neuron::aten
