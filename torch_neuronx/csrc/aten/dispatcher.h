// Registration with the dispatcher for the few files that build kernels of their own kind (the pointwise driver, views,
// factories, copies). Heavy: everything else uses registration.h.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>

namespace neuron::aten {

// "add.Tensor", "mm", "fsdp::copy_": the namespace is aten when not given.
c10::OperatorName full_name(std::string_view name);
// Registers for the life of the process. Throws when torch has no such operator.
void add_kernel(const c10::OperatorName& name, c10::KernelFunction kernel,
                c10::DispatchKey key = c10::DispatchKey::PrivateUse1);

}  // namespace neuron::aten
