// Registration with the dispatcher for the few files that build kernels of their own kind (the pointwise driver, views,
// factories, copies). Heavy: everything else uses registration.h.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>

#include "torch_neuronx/csrc/aten/arguments.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/tracking.h"
#include "torch_neuronx/csrc/register/errors.h"

namespace neuron::aten {

// "add.Tensor", "mm", "fsdp::copy_": the namespace is aten when not given.
c10::OperatorName full_name(std::string_view name);
// Throws when torch has no such operator.
c10::OperatorHandle torch_operator(const c10::OperatorName& name);
// Registers for the life of the process. Throws when torch has no such operator.
void add_kernel(const c10::OperatorName& name, c10::KernelFunction kernel,
                c10::DispatchKey key = c10::DispatchKey::PrivateUse1);

// An operator by its wrapper: what the dispatcher calls for most operators, and what an unboxed kernel turns to for the
// calls it does not take. Small and copyable.
class GeneralKernel {
 public:
  GeneralKernel(c10::OperatorHandle op, Wrapper wrapper, OperatorRecord& record)
      : op_(std::move(op)), wrapper_(wrapper), record_(&record) {}

  // Replaces the arguments on the stack by the results.
  void call_boxed(c10::Stack& stack) const;
  template <typename... Arguments>
  at::Tensor call(const Arguments&... arguments) const {
    c10::Stack stack;
    stack.reserve(sizeof...(Arguments));
    (stack.emplace_back(arguments), ...);
    call_boxed(stack);
    return std::move(stack.back()).toTensor();
  }
  // What `body` gives, which has to take the call: its errors become those of Python.
  template <typename F>
  auto quickly(F&& body) const {
    try {
      auto result = body();
      note_executed(*record_);
      return result;
    } catch (const Error& error) {
      torch_neuronx::rethrow_as_torch(error);
    }
  }
  // True when `body` gives true, that is, took the call; declining is not taking it.
  template <typename F>
  bool attempt(F&& body) const {
    try {
      const bool taken = body();
      if (taken) note_executed(*record_);
      return taken;
    } catch (const Declined&) {
      return false;
    } catch (const Error& error) {
      torch_neuronx::rethrow_as_torch(error);
    }
  }
  const c10::OperatorHandle& op() const { return op_; }

 private:
  c10::OperatorHandle op_;
  Wrapper wrapper_;
  OperatorRecord* record_;
};

// Throws when torch has no such operator.
GeneralKernel general_kernel(const c10::OperatorName& name, Wrapper wrapper);
c10::KernelFunction make_boxed(GeneralKernel general);

// The kernel function of a functor that is built from a GeneralKernel: `&make_unboxed<Product>` in a Registration.
template <typename Functor>
c10::KernelFunction make_unboxed(const GeneralKernel& general) {
  return c10::KernelFunction::makeFromUnboxedFunctor<false, Functor>(std::make_unique<Functor>(general));
}

}  // namespace neuron::aten
