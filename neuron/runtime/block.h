// A block: the unit in which the caching allocator hands out device memory, and the identity that recorded commands
// use.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace neuron::runtime {

// Lives as long as its segment; reused (with a new generation) for later allocations at the same address.
struct Block {
  void* address = nullptr;
  size_t size = 0;                   // rounded size handed out
  std::atomic<size_t> requested{0};  // what the caller asked for; the executor may still read it of a block handed on
  int core = 0;
  uint64_t stream = 0;                           // id of the stream it was allocated for
  std::atomic<uint64_t> generation{0};           // process-wide counter; new at each allocation
  std::atomic<uint64_t> writes{0};               // write generation: packs of weights are keyed on it
  std::atomic<uint64_t> dead_generation{0};      // equals generation: the storage died, no command to come uses it
  std::atomic<uint64_t> exported_generation{0};  // equals generation: a raw pointer was handed out, no write is dropped
  uint8_t allocator_state[64] = {};              // owned by the allocator
};

}  // namespace neuron::runtime
