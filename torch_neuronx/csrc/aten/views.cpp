// Views and the operations on a tensor's storage: metadata only, nothing is recorded (resize_ keeps the contents by a
// recorded copy).
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/deterministic.h"
#include "torch_neuronx/csrc/aten/dispatcher.h"
#include "torch_neuronx/csrc/aten/views.h"
#include "torch_neuronx/csrc/register/errors.h"
#include "torch_neuronx/csrc/register/resize.h"
#include "torch_neuronx/csrc/register/storage.h"

namespace neuron::aten {
namespace {

// Storage large enough for the tensor's present sizes, strides and offset.
void grow_storage(c10::TensorImpl* impl, size_t bytes) {
  if (impl->numel() == 0) return;
  const c10::Storage& storage = impl->unsafe_storage();
  if (bytes > storage.nbytes()) torch_neuronx::resize_storage_bytes(*storage.unsafeGetStorageImpl(), bytes);
}

void set_geometry(c10::TensorImpl* impl, at::IntArrayRef sizes, at::OptionalIntArrayRef strides) {
  size_t bytes = 0;
  const auto offset = static_cast<size_t>(impl->storage_offset());
  if (strides.has_value()) {
    impl->set_sizes_and_strides(sizes, *strides);
    bytes = at::detail::computeStorageNbytes(sizes, *strides, impl->itemsize(), offset);
  } else {
    impl->set_sizes_contiguous(sizes);
    bytes = at::detail::computeStorageNbytesContiguous(sizes, impl->itemsize(), offset);
  }
  grow_storage(impl, bytes);
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  at::detail::check_size_nonnegative(sizes);
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  if (!self.sizes().equals(sizes)) {
    const size_t before = impl->unsafe_storage().nbytes();
    set_geometry(impl, sizes, std::nullopt);
    if (fills_new_memory()) at::native::fill_resize_deterministic_(self, static_cast<int64_t>(before));
  }
  if (format.has_value()) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format", *format);
    impl->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef sizes,
                        at::IntArrayRef strides) {
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  set_geometry(impl, sizes, strides.data() != nullptr ? at::OptionalIntArrayRef(strides) : std::nullopt);
  return self;
}

at::Tensor& set_source_storage(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_storage(self, std::move(source), 0, {elements}, {});
}

at::Tensor& set_source_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_nothing(at::Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  c10::Allocator* allocator = c10::GetAllocator(c10::DeviceType::PrivateUse1);
  at::Storage storage(at::Storage::use_byte_size_t(), 0, allocator->allocate(0), allocator, true);
  return set_storage(self, std::move(storage), 0, {0}, {});
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  c10::getDeviceAllocator(c10::DeviceType::PrivateUse1)->recordStream(self.storage().data_ptr(), stream);
}

template <typename F>
void add(const char* name, F* function) {
  add_kernel(full_name(name), c10::KernelFunction::makeFromUnboxedRuntimeFunction(function));
}

}  // namespace

void register_views() {
  add("as_strided", &at::native::as_strided_tensorimpl);
  add("view", static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef)>(&at::native::view));
  add("_reshape_alias", &at::native::_reshape_alias);
  add("unfold", &at::native::unfold);
  add("view_as_real", &at::native::view_as_real);
  add("view_as_complex", &at::native::view_as_complex);
  add("is_set_to", &at::native::is_set_to);
  add("resize_", &resize);
  add("set_.source_Storage_storage_offset", &set_storage);
  add("set_.source_Storage", &set_source_storage);
  add("set_.source_Tensor", &set_source_tensor);
  add("set_", &set_nothing);
  add("record_stream", &record_stream);
  // As for _copy_from (register/dispatch_keys.cpp): the copy honours the bits itself.
  for (c10::DispatchKey key : {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative}) {
    add_kernel(full_name("_copy_from_and_resize"), c10::KernelFunction::makeFallthrough(), key);
  }
}

}  // namespace neuron::aten
