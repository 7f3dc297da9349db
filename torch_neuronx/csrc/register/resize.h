// Changing the size of a storage, keeping the bytes both sizes have (storage.resize_(), Tensor.resize_()).
#pragma once

#include <c10/core/StorageImpl.h>

namespace torch_neuronx {

// FSDP frees a parameter's memory with bytes == 0 and takes it back later. The copy is recorded, not waited for.
void resize_storage_bytes(c10::StorageImpl& storage, size_t bytes);

}  // namespace torch_neuronx
