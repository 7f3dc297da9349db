#include "torch_neuronx/csrc/aten/fallback.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/native/CPUFallback.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "neuron/base/hash.h"
#include "neuron/eager/command_graph.h"
#include "neuron/eager/recorder.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/dispatcher.h"
#include "torch_neuronx/csrc/aten/tracking.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/errors.h"
#include "torch_neuronx/csrc/register/storage.h"

namespace neuron::aten {
namespace {

uint64_t device_bytes(const c10::IValue& value) {
  uint64_t bytes = 0;
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && is_neuron(tensor)) bytes += tensor.nbytes();
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    for (const c10::IValue& item : value.toListRef()) bytes += device_bytes(item);
  }
  return bytes;
}

at::Device device_of_call(const std::vector<c10::IValue>& stack, size_t base) {
  for (size_t i = base; i < stack.size(); ++i) {
    if (stack[i].isTensor() && is_neuron(stack[i].toTensor())) return stack[i].toTensor().device();
    if (stack[i].isDevice() && stack[i].toDevice().has_index()) return stack[i].toDevice();
  }
  return at::Device(c10::DeviceType::PrivateUse1, torch_neuronx::current_device());
}

// Our generators cannot feed a CPU kernel: a CPU generator seeded from ours takes its place, so that torch.manual_seed
// and the state of the device's generator still decide the numbers.
void replace_generators(const c10::OperatorHandle& op, std::vector<c10::IValue>& stack, size_t base) {
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = stack[base + i];
    if (arguments[i].name() != "generator" || !(value.isNone() || value.isGenerator())) continue;
    std::optional<at::Generator> generator;
    if (value.isGenerator()) {
      generator = value.toGenerator();
      if (generator->device().type() != c10::DeviceType::PrivateUse1) continue;
    }
    const auto reserved = torch_neuronx::reserve_philox(generator, device_of_call(stack, base), 4);
    value = at::detail::createCPUGenerator(hash_combine(reserved.seed, reserved.offset));
  }
}

// The operator that computes this one on the CPU. Only a device outside torch is given `convolution_overrideable`; it
// has the arguments of `convolution`, which the CPU knows.
c10::OperatorHandle on_the_cpu(const c10::OperatorHandle& op) {
  if (op.operator_name().name != "aten::convolution_overrideable") return op;
  return c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
}

}  // namespace

void fall_back(const c10::OperatorHandle& op, std::vector<c10::IValue>& stack) {
  const std::string name = c10::toString(op.operator_name());
  if (eager::strict_mode()) {
    C10_THROW_ERROR(
        NotImplementedError,
        "The operator '" + name +
            "' has no neuron kernel for these arguments and would run on the CPU, which strict mode refuses. Unset "
            "'strict' in TORCH_NEURONX_EAGER_MODE to allow CPU fallbacks.");
  }
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  const size_t base = stack.size() - count;
  if (auto* graph = eager::capturing_graph(torch_neuronx::current_stream(device_of_call(stack, base)))) [[unlikely]] {
    torch_neuronx::translate_errors([&] {
      graph->refuse(
          fmt::format("the operator '{}' has no neuron kernel for these arguments and runs on the CPU", name));
    });
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += device_bytes(stack[base + i]);
  replace_generators(op, stack, base);
  for (size_t i = 0; i < count; ++i) {
    const c10::IValue& given = stack[base + i];
    if (!schema.arguments()[i].is_out() || !given.isTensor() || is_neuron(given.toTensor())) continue;
    TORCH_CHECK(!given.toTensor().defined(), "Expected all tensors to be on the same device, but found at least two ",
                "devices, ", device_of_call(stack, base), " and ", given.toTensor().device(), "!");
  }

  at::native::cpu_fallback(on_the_cpu(op), &stack, /*error_on_views=*/true);

  for (const c10::IValue& result : stack) bytes += device_bytes(result);
  if (note_fallback(name, bytes)) {
    TORCH_WARN(
        "The operator '", name,
        "' has no neuron kernel and runs on the CPU. This is slower, because its tensors are copied between the device "
        "and the host. torch_neuronx.get_fallback_ops() lists all such operators; "
        "TORCH_NEURONX_EAGER_MODE=adaptive,strict makes them errors.");
  }
}

namespace {

void boxed_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  fall_back(op, *stack);
}

}  // namespace

void register_fallback() {
  static auto* handle = new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerFallback(
      c10::DispatchKey::PrivateUse1, c10::KernelFunction::makeFromBoxedFunction<&boxed_fallback>(), "torch_neuronx"));
  (void)handle;
}

}  // namespace neuron::aten
