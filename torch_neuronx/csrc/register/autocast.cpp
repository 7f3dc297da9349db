#include "torch_neuronx/csrc/register/autocast.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <span>
#include <vector>

#include "torch_neuronx/csrc/register/autocast_lists.h"
#include "torch_neuronx/csrc/register/device.h"

// Declared here as in ATen/autocast_mode.h, which includes every operator of torch.
namespace at::autocast {
TORCH_API at::ScalarType get_autocast_dtype(at::DeviceType device_type);
TORCH_API Tensor cached_cast(at::ScalarType to_type, const Tensor& arg, DeviceType device_type);
}  // namespace at::autocast

namespace torch_neuronx {
namespace {

using torch::jit::Stack;

at::Tensor cast(at::ScalarType type, const at::Tensor& tensor) {
  return at::autocast::cached_cast(type, tensor, kDeviceType);
}

// Whether autocast has a say in this tensor: a float on the device, and not float64.
bool is_eligible(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_privateuseone() && tensor.is_floating_point() &&
         tensor.scalar_type() != at::kDouble;
}

// Calls `visit(tensor)` for each tensor in the value (a tensor, a list, a list of optionals) and puts the result in its
// place.
template <typename Visit>
void replace_tensors(c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    value = visit(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> result;
    for (const at::Tensor& tensor : value.toTensorVector()) result.push_back(visit(tensor));
    value = std::move(result);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> result;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      result.push_back(tensor ? std::optional<at::Tensor>(visit(*tensor)) : std::nullopt);
    }
    value = std::move(result);
  }
}

std::span<c10::IValue> arguments(const c10::OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  return {stack->data() + (stack->size() - count), count};
}

void cast_all(const c10::OperatorHandle& op, Stack* stack, at::ScalarType type) {
  for (c10::IValue& value : arguments(op, stack)) {
    replace_tensors(value, [type](const at::Tensor& tensor) { return tensor.defined() ? cast(type, tensor) : tensor; });
  }
}

struct BelowAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::DispatchKeySet(c10::DispatchKey::AutocastPrivateUse1)};
};

bool first_argument_is_eligible(const c10::OperatorHandle& op, Stack* stack) {
  const c10::IValue& first = arguments(op, stack)[0];
  return first.isTensor() && is_eligible(first.toTensor());
}

}  // namespace

void autocast_to_lower_precision(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const BelowAutocast below;
  cast_all(op, stack, at::autocast::get_autocast_dtype(kDeviceType));
  op.callBoxed(stack);
}

void autocast_to_float32(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const BelowAutocast below;
  cast_all(op, stack, at::kFloat);
  op.callBoxed(stack);
}

void autocast_with_float32_dtype(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const BelowAutocast below;
  if (first_argument_is_eligible(op, stack)) {
    const std::optional<int> dtype = op.schema().argumentIndexWithName("dtype");
    TORCH_INTERNAL_ASSERT(dtype.has_value(), op.operator_name(), " has no dtype argument");
    c10::IValue& value = arguments(op, stack)[*dtype];
    if (value.isNone()) value = at::kFloat;
  }
  op.callBoxed(stack);
}

void autocast_norm(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const BelowAutocast below;
  if (!first_argument_is_eligible(op, stack)) return op.callBoxed(stack);
  const std::string& overload = op.operator_name().overload_name;
  const auto row = std::find_if(kFloat32NormOperators.begin(), kFloat32NormOperators.end(),
                                [&](const AutocastRedispatch& entry) { return overload == entry.overload; });
  TORCH_INTERNAL_ASSERT(row != kFloat32NormOperators.end());
  stack->emplace_back(at::kFloat);
  c10::Dispatcher::singleton()
      .findSchemaOrThrow((std::string("aten::") + row->name).c_str(), row->target_overload)
      .callBoxed(stack);
}

void autocast_promote(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const BelowAutocast below;
  const at::ScalarType lower = at::autocast::get_autocast_dtype(kDeviceType);
  at::ScalarType widest = lower;
  for (c10::IValue& value : arguments(op, stack)) {
    replace_tensors(value, [&](const at::Tensor& tensor) {
      if (is_eligible(tensor)) {
        if (tensor.scalar_type() == at::kFloat) {
          widest = at::kFloat;
        } else {
          TORCH_CHECK(tensor.scalar_type() == lower, "Unexpected floating ScalarType in at::autocast::prioritize");
        }
      }
      return tensor;
    });
  }
  cast_all(op, stack, widest);
  op.callBoxed(stack);
}

void autocast_banned(const c10::OperatorHandle&, c10::DispatchKeySet, Stack*) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
              "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
              "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
              "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
              "safe to autocast.");
}

}  // namespace torch_neuronx
