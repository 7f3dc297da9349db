// The history of allocations behind torch.neuron.memory._record_memory_history(): off by default, then one test of a
// flag per allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "neuron/runtime/block.h"

namespace torch_neuronx {

struct MemoryEvent {
  std::string_view action;  // "alloc", "free_requested", "free_completed", "oom", "snapshot": CUDA's names
  int core = 0;
  uintptr_t address = 0;
  size_t size = 0;
  uint64_t stream = 0;
  int64_t microseconds = 0;  // since the epoch
};

// Keeps the last `limit` events per process; 0 switches recording off and forgets them.
void set_memory_history(size_t limit);
std::vector<MemoryEvent> memory_history();

void note_allocation(const neuron::runtime::Block& block);
void note_release(const neuron::runtime::Block& block);
void note_out_of_memory(int core, size_t requested);

}  // namespace torch_neuronx
