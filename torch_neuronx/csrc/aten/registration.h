// The list of operator wrappers: each family file adds its own with static Registration objects; register_operators()
// hands all to the dispatcher under PrivateUse1 once, when the extension module is loaded. No dispatcher header is
// needed to add one.
#pragma once

#include <vector>

namespace c10 {
class KernelFunction;
}

namespace neuron::aten {

class Arguments;
using Wrapper = void (*)(Arguments& arguments);
// Makes the unboxed kernel of an operator whose every call counts; what it does not take it gives to `general`, the
// boxed way through the wrapper (dispatcher.h).
class GeneralKernel;
using MakeUnboxed = c10::KernelFunction (*)(const GeneralKernel& general);

// `name`: ATen's name with overload, without namespace: "mm", "add.Tensor", "sum.dim_IntList". The string must be a
// literal. A prefix like "fsdp::" gives another namespace.
class Registration {
 public:
  Registration(const char* name, Wrapper wrapper, MakeUnboxed unboxed = nullptr);
};

struct RegisteredWrapper {
  const char* name;
  Wrapper wrapper;
  MakeUnboxed unboxed;
};
const std::vector<RegisteredWrapper>& registered_wrappers();

// Registers every wrapper, the table's elementwise operators, views, factories, copies and the fallback. Called by the
// module's initialisation, with the GIL, exactly once.
void register_operators();

}  // namespace neuron::aten
