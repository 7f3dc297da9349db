#include "torch_neuronx/csrc/aten/promotion.h"

#include <ATen/ScalarOps.h>
#include <ATen/native/TypeProperties.h>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/refuse.h"

namespace neuron::aten {

at::Tensor as_operand(const at::Scalar& number) {
  if (number.isComplex()) refuse();
  at::Tensor value = c10::scalar_to_tensor(number);
  value.unsafeGetTensorImpl()->set_wrapped_number(true);
  return value;
}

at::ScalarType common_dtype(const at::Tensor& a, const at::Tensor& b) {
  at::native::ResultTypeState state = {};
  state = at::native::update_result_type_state(a, state);
  state = at::native::update_result_type_state(b, state);
  return at::native::result_type(state);
}

at::Tensor as_common(const at::Tensor& tensor, at::ScalarType dtype, at::Device device) {
  return to_dtype(is_neuron(tensor) ? tensor : to_device(tensor, device), dtype);
}

}  // namespace neuron::aten
