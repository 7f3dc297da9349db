#include "torch_neuronx/csrc/aten/refuse.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstring>

namespace neuron::aten {
namespace {

at::Tensor zeros_like(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device().is_cpu()) return tensor;
  at::Tensor zeros(at::detail::empty_strided_cpu(tensor.sizes(), tensor.strides(), tensor.scalar_type()));
  std::memset(zeros.mutable_data_ptr(), 0, zeros.storage().nbytes());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) zeros.unsafeGetTensorImpl()->set_wrapped_number(true);
  return zeros;
}

c10::IValue on_cpu(const c10::IValue& value) {
  if (value.isTensor()) return zeros_like(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(zeros_like(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional(zeros_like(*tensor)) : std::nullopt);
    }
    return list;
  }
  if (value.isDevice()) return c10::Device(c10::DeviceType::CPU);
  if (value.isGenerator()) return c10::IValue();
  return value;
}

}  // namespace

void refuse() { throw Refused(); }

void raise_as_cpu(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack) {
  const size_t count = op.schema().arguments().size();
  std::vector<c10::IValue> arguments;
  arguments.reserve(count);
  for (size_t i = stack.size() - count; i < stack.size(); ++i) arguments.push_back(on_cpu(stack[i]));
  const at::AutoDispatchBelowADInplaceOrView below;
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &arguments);
}

}  // namespace neuron::aten
