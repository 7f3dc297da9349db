// What the operator layer needs to know of a storage and of the calling thread.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <optional>

#include "neuron/eager/recorder.h"
#include "neuron/runtime/block.h"

namespace torch_neuronx {

// The deleter that marks memory of our allocator; its context is the block.
void release_block(void* block);

// The block behind a storage; null for foreign memory (from_blob, DLPack import) and for empty storages.
inline neuron::runtime::Block* block_of(const c10::StorageImpl& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  return data.get_deleter() == &release_block ? static_cast<neuron::runtime::Block*>(data.get_context()) : nullptr;
}

// The stream operations of the calling thread on `device` are recorded on. Marks the device as used (and raises in a
// child forked after use) and observes the deterministic mode, so it is called once per recorded operation.
neuron::eager::Stream& current_stream(c10::Device device);

// Makes the next exposure of the storage's pointer (data_ptr(), DLPack, numpy, torch.save) wait for the commands on it.
// Called at each recorded write; cheap when already armed.
void export_storage(c10::StorageImpl* storage);
inline void arm_storage(c10::StorageImpl& storage) {
  if (!storage.has_materializer()) [[unlikely]]
    storage.set_materializer(&export_storage);
}

// Random numbers: the part of a generator's sequence that one operation uses, taken when the operation is recorded.
struct PhiloxReservation {
  uint64_t seed = 0;
  uint64_t offset = 0;  // a multiple of 4, in 32-bit random words
};
// Takes one word per element, rounded up to whole Philox counters (4 words), from `generator` or, when it is absent or
// undefined, from the device's default generator.
PhiloxReservation reserve_philox(std::optional<at::Generator> generator, const at::Device& device, int64_t elements);

}  // namespace torch_neuronx
