// Dispatch keys around the device's own: autocast, the lazy conjugate and negative bits, keys we have no kernels for,
// and the one question torch asks about assigning `tensor.data` across devices.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <mutex>

#include "torch_neuronx/csrc/register/autocast.h"
#include "torch_neuronx/csrc/register/autocast_lists.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/dispatch_keys.h"

namespace torch_neuronx {
namespace {

using torch::CppFunction;

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  for (const char* name : kLowerPrecisionOperators) {
    m.impl(name, CppFunction::makeFromBoxedFunction<&autocast_to_lower_precision>());
  }
  for (const char* name : kFloat32Operators) m.impl(name, CppFunction::makeFromBoxedFunction<&autocast_to_float32>());
  for (const char* name : kFloat32DtypeOperators) {
    m.impl(name, CppFunction::makeFromBoxedFunction<&autocast_with_float32_dtype>());
  }
  for (const AutocastRedispatch& row : kFloat32NormOperators) {
    m.impl((std::string(row.name) + "." + row.overload).c_str(), CppFunction::makeFromBoxedFunction<&autocast_norm>());
  }
  for (const char* name : kPromotedOperators) m.impl(name, CppFunction::makeFromBoxedFunction<&autocast_promote>());
  m.impl("binary_cross_entropy", CppFunction::makeFromBoxedFunction<&autocast_banned>());
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && (tensor.is_cpu() || tensor.is_privateuseone()) && !tensor.is_quantized();
}

// Lets `parameter.data = tensor` cross between CPU and device, so that module.to("neuron") keeps its Parameter objects
// (an optimizer built before would otherwise go on training dead CPU tensors).
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  return is_plain(self) && is_plain(from);
}

struct SilentHandler final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// torch's own kernel is composite and asks to be overridden per backend, yet warns at each import when that is done.
[[maybe_unused]] const torch::Library* const shallow_copy_library = [] {
  SilentHandler silent;
  const c10::WarningUtils::WarningHandlerGuard guard(&silent);
  auto* library = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
  return library;
}();

const char* kind_of_tensor(c10::DispatchKeySet keys) {
  if (keys.has(c10::DispatchKey::SparsePrivateUse1)) return "sparse COO";
  if (keys.has(c10::DispatchKey::SparseCsrPrivateUse1)) return "sparse compressed";
  if (keys.has(c10::DispatchKey::QuantizedPrivateUse1)) return "quantized";
  return "nested";
}

void refuse(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack*) {
  C10_THROW_ERROR(NotImplementedError, c10::str(op.operator_name(), ": ", kind_of_tensor(keys),
                                                " tensors are not supported on the neuron device. Convert to a dense "
                                                "tensor first, or move the tensor to the CPU."));
}

}  // namespace

void refuse_other_layouts() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const c10::DispatchKey key :
         {c10::DispatchKey::SparsePrivateUse1, c10::DispatchKey::SparseCsrPrivateUse1,
          c10::DispatchKey::QuantizedPrivateUse1, c10::DispatchKey::NestedTensorPrivateUse1}) {
      auto* library = new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);  // for good
      library->fallback(CppFunction::makeFromBoxedFunction<&refuse>());
    }
  });
}

}  // namespace torch_neuronx
