// The ranges of torch tensors for the C interface of foreign.h, in C++. Nothing here waits for the device, as
// data_ptr() would.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "neuron/foreign.h"

namespace neuron::foreign {

inline void check(neuron_status status) {
  if (status == NEURON_OK) return;
  const std::string message = neuron_error_message();
  switch (status) {
    case NEURON_INDEX_ERROR:
      C10_THROW_ERROR(IndexError, message);
    case NEURON_TYPE_ERROR:
      C10_THROW_ERROR(TypeError, message);
    case NEURON_VALUE_ERROR:
      C10_THROW_ERROR(ValueError, message);
    case NEURON_NOT_IMPLEMENTED:
      C10_THROW_ERROR(NotImplementedError, message);
    case NEURON_OUT_OF_MEMORY:
      C10_THROW_ERROR(OutOfMemoryError, message);
    default:
      C10_THROW_ERROR(Error, message);
  }
}

// The address of the first element. The memory holds the tensor's values when a command runs that names it.
inline void* address(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_privateuseone(), "expected a tensor on a neuron device, got one on ", tensor.device());
  const auto* storage = static_cast<const char*>(tensor.storage().unsafeGetStorageImpl()->data());
  return const_cast<char*>(storage) + tensor.storage_offset() * static_cast<int64_t>(tensor.element_size());
}

// All bytes from the first to the last element. A tensor with gaps cannot be written as a whole: it becomes READ_WRITE.
inline neuron_range range(const at::Tensor& tensor, neuron_access access) {
  int64_t reach = tensor.numel() == 0 ? 0 : 1;
  for (int64_t d = 0; d < tensor.dim() && reach != 0; ++d) reach += (tensor.size(d) - 1) * tensor.stride(d);
  if (access == NEURON_WRITE && !tensor.is_non_overlapping_and_dense()) access = NEURON_READ_WRITE;
  if (access != NEURON_READ) check(neuron_note_write(tensor.storage().unsafeGetStorageImpl()));
  return {address(tensor), static_cast<size_t>(reach) * tensor.element_size(), access};
}

// Records `body`, a callable neuron_status(int threads), on the current stream of the device. The callable is destroyed
// on a thread of the device: it may hold addresses, numbers and CPU storages, but nothing that belongs to Python.
template <typename Body>
void enqueue(const char* name, int device, const std::vector<neuron_range>& ranges, Body body, int threads = 0) {
  neuron_stream* stream = nullptr;
  check(neuron_current_stream(device, &stream));
  auto context = std::make_unique<Body>(std::move(body));
  const neuron_command command{
      sizeof(neuron_command),
      name,
      [](void* opaque, int available) { return (*static_cast<Body*>(opaque))(available); },
      [](void* opaque) { delete static_cast<Body*>(opaque); },
      context.release(),
      ranges.data(),
      ranges.size(),
      threads,
  };
  check(neuron_enqueue(stream, &command));
}

}  // namespace neuron::foreign
