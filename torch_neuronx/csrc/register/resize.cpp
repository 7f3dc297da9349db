#include "torch_neuronx/csrc/register/resize.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/copy_ops.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/storage.h"

namespace torch_neuronx {
namespace {

// The first `bytes` bytes of a storage as a tensor.
at::Tensor as_bytes(c10::Storage storage, int64_t bytes) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), caffe2::TypeMeta::Make<uint8_t>());
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous({bytes});
  return tensor;
}

}  // namespace

void resize_storage_bytes(c10::StorageImpl& storage, size_t bytes) {
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  const size_t kept = std::min(storage.nbytes(), bytes);
  const c10::DeviceGuard guard(storage.device());
  c10::Allocator* allocator = c10::GetAllocator(kDeviceType);
  auto resized = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       allocator->allocate(bytes), allocator, true);
  if (kept > 0) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto old = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(&storage);
    at::Tensor target = as_bytes(c10::Storage(resized), static_cast<int64_t>(kept));
    at::_ops::copy_::call(target, as_bytes(c10::Storage(old), static_cast<int64_t>(kept)), false);
  }
  // The pointer changes hands inside the device: nothing is exposed, so nothing needs to be waited for.
  storage.clear_materializer();
  resized->clear_materializer();
  storage.set_data_ptr_noswap(resized->set_data_ptr(c10::DataPtr()));
  storage.set_nbytes(bytes);
  arm_storage(storage);
}

}  // namespace torch_neuronx
