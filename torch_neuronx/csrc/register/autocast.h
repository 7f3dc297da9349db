// The boxed kernels of autocast: they walk the argument stack, cast, and call the operator again below autocast. One
// kernel per policy serves every operator of its list: templates over each operator's signature would cost minutes to
// compile.
#pragma once

#include <ATen/core/stack.h>

namespace c10 {
class OperatorHandle;
class DispatchKeySet;
}  // namespace c10

namespace torch_neuronx {

void autocast_to_lower_precision(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
void autocast_to_float32(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
void autocast_with_float32_dtype(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
void autocast_norm(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
void autocast_promote(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
void autocast_banned(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace torch_neuronx
