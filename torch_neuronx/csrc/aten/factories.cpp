// Uninitialised tensors: what every other factory of PyTorch is composed from.
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DefaultDtype.h>

#include <limits>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/deterministic.h"
#include "torch_neuronx/csrc/aten/dispatcher.h"
#include "torch_neuronx/csrc/aten/views.h"
#include "torch_neuronx/csrc/register/device.h"

namespace neuron::aten {
namespace {

at::Device checked_device(std::optional<at::Device> device, std::optional<at::Layout> layout,
                          std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "neuron tensors are strided; layout ", *layout,
              " is not supported");
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  const at::Device wanted = device.value_or(at::Device(c10::DeviceType::PrivateUse1));
  TORCH_CHECK(wanted.type() == c10::DeviceType::PrivateUse1, "Expected a neuron device, got ", wanted);
  return {c10::DeviceType::PrivateUse1, torch_neuronx::resolve_index(wanted)};
}

// torch.use_deterministic_algorithms(): uninitialised memory is filled with a value that shows.
void fill_if_deterministic(const at::Tensor& tensor) {
  if (!fills_new_memory()) return;
  const at::ScalarType type = tensor.scalar_type();
  if (!has_dtype(type)) return;
  if (c10::isFloatingType(type) || c10::isComplexType(type)) {
    record_fill(tensor, std::numeric_limits<double>::quiet_NaN());
  } else if (type == at::ScalarType::Bool) {
    record_fill(tensor, true);
  } else {
    const int bits = static_cast<int>(c10::elementSize(type)) * 8;
    const bool is_signed = c10::isSignedType(type);
    if (bits == 64 && !is_signed) return record_fill(tensor, at::Scalar(std::numeric_limits<uint64_t>::max()));
    record_fill(tensor, static_cast<int64_t>((uint64_t{1} << (is_signed ? bits - 1 : bits)) - 1));
  }
}

at::Tensor empty_memory_format(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout> layout, std::optional<at::Device> device,
                               std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format) {
  at::detail::check_size_nonnegative(sizes);
  at::Tensor tensor =
      empty(sizes, dtype.value_or(c10::get_default_dtype_as_scalartype()), checked_device(device, layout, pin_memory));
  if (format.has_value() && *format != at::MemoryFormat::Contiguous) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve,
                "empty(): the memory format 'preserve' needs a tensor to take it from");
    tensor.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  fill_if_deterministic(tensor);
  return tensor;
}

at::Tensor empty_with_strides(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                              std::optional<at::Layout> layout, std::optional<at::Device> device,
                              std::optional<bool> pin_memory) {
  at::detail::check_size_nonnegative(sizes);
  TORCH_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (", sizes.size(),
              ") must match dimensionality of strides (", strides.size(), ")");
  at::Tensor tensor = empty_strided(sizes, strides, dtype.value_or(c10::get_default_dtype_as_scalartype()),
                                    checked_device(device, layout, pin_memory));
  fill_if_deterministic(tensor);
  return tensor;
}

}  // namespace

void register_factories() {
  add_kernel(full_name("empty.memory_format"),
             c10::KernelFunction::makeFromUnboxedRuntimeFunction(&empty_memory_format));
  add_kernel(full_name("empty_strided"), c10::KernelFunction::makeFromUnboxedRuntimeFunction(&empty_with_strides));
}

}  // namespace neuron::aten
