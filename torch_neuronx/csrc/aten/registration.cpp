#include "torch_neuronx/csrc/aten/registration.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstring>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/dispatcher.h"
#include "torch_neuronx/csrc/aten/fallback.h"
#include "torch_neuronx/csrc/aten/lists.h"
#include "torch_neuronx/csrc/aten/pointwise.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/tracking.h"
#include "torch_neuronx/csrc/aten/views.h"
#include "torch_neuronx/csrc/register/errors.h"

namespace neuron::aten {
namespace {

std::vector<RegisteredWrapper>& wrappers() {
  static auto* list = new std::vector<RegisteredWrapper>;
  return *list;
}

class BoxedWrapper final : public c10::OperatorKernel {
 public:
  explicit BoxedWrapper(GeneralKernel general) : general_(std::move(general)) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, c10::Stack* stack) { general_.call_boxed(*stack); }

 private:
  GeneralKernel general_;
};

}  // namespace

void GeneralKernel::call_boxed(c10::Stack& stack) const {
  try {
    Arguments arguments(op_, stack);
    wrapper_(arguments);
    arguments.finish();
    note_executed(*record_);
  } catch (const Declined&) {
    fall_back(op_, stack);
  } catch (const Refused&) {
    raise_as_cpu(op_, stack);
    TORCH_CHECK(false, "the neuron kernel of ", op_.operator_name(), " does not take these arguments");
  } catch (const Error& error) {
    torch_neuronx::rethrow_as_torch(error);
  }
}

Registration::Registration(const char* name, Wrapper wrapper, MakeUnboxed unboxed) {
  wrappers().push_back({name, wrapper, unboxed});
}

const std::vector<RegisteredWrapper>& registered_wrappers() { return wrappers(); }

c10::OperatorName full_name(std::string_view name) {
  const size_t scope = name.find("::");
  std::string space = scope == std::string_view::npos ? "aten" : std::string(name.substr(0, scope));
  std::string_view rest = scope == std::string_view::npos ? name : name.substr(scope + 2);
  const size_t dot = rest.find('.');
  return {space + "::" + std::string(rest.substr(0, dot)),
          dot == std::string_view::npos ? "" : std::string(rest.substr(dot + 1))};
}

c10::OperatorHandle torch_operator(const c10::OperatorName& name) {
  const auto handle = c10::Dispatcher::singleton().findSchema(name);
  TORCH_INTERNAL_ASSERT(handle.has_value(), "this torch has no operator ", c10::toString(name));
  return *handle;
}

void add_kernel(const c10::OperatorName& name, c10::KernelFunction kernel, c10::DispatchKey key) {
  // The dispatcher undoes a registration when its handle dies; ours last as long as the process.
  static auto* handles = new std::vector<c10::RegistrationHandleRAII>;
  torch_operator(name);
  handles->push_back(
      c10::Dispatcher::singleton().registerImpl(name, key, std::move(kernel), std::nullopt, nullptr, "torch_neuronx"));
}

GeneralKernel general_kernel(const c10::OperatorName& name, Wrapper wrapper) {
  return GeneralKernel(torch_operator(name), wrapper, new_operator_record(c10::toString(name)));
}

c10::KernelFunction make_boxed(GeneralKernel general) {
  return c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<BoxedWrapper>(std::move(general)));
}

void register_operators() {
  register_fallback();
  register_views();
  register_strided_views();
  register_factories();
  register_pointwise();
  register_lists();
  for (const RegisteredWrapper& entry : wrappers()) {
    const c10::OperatorName name = full_name(entry.name);
    const GeneralKernel general = general_kernel(name, entry.wrapper);
    add_kernel(name, entry.unboxed != nullptr ? entry.unboxed(general) : make_boxed(general));
  }
}

}  // namespace neuron::aten
