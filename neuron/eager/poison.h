// Poison: the bytes of device memory that hold no value because the command that should have written them failed, or
// was not run because it would have read such bytes itself. Reading them raises the original error until they are
// written again. Docs: docs/decisions/0010-poison.md.
//
// One table for the process, by allocation (a block's generation, which is never used twice): poison follows a block to
// whichever stream reads it, a recycled block is clean, and commands recorded before a storage died still find what
// they read poisoned. Where nothing has failed it costs the load of a number.
//
// Threads: any. What a thread finds is what the commands that its own work is ordered after have left.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "neuron/eager/command.h"
#include "neuron/eager/late_error.h"

namespace neuron::eager {

class Stream;

class Poison {
 public:
  static Poison& instance();

  bool any() const { return count_.load(std::memory_order_acquire) != 0; }

  // Why the command cannot run: the error behind the first of its inputs that has no value. Null when it can.
  Cause blocking(const Command& command) const;
  // The error behind the first bytes without a value, of those the tensor touches or of the block's present allocation.
  Cause find(const TensorArgument& tensor) const;
  Cause find(const runtime::Block& block) const;

  // The command has not written what it should have. `pool`: of the graph that is being replayed, or null.
  void add(const Command& command, const Cause& cause, const Stream* pool);
  // The command has written its outputs.
  void remove(const Command& command);
  // Forgets storages that are gone, once everything that was recorded while they lived has run.
  void collect();

 private:
  struct Range {
    char* high;
    Cause cause;
  };
  struct Allocation {
    const runtime::Block* block;
    const Stream* pool;
    std::map<char*, Range> ranges;  // disjoint, by their low end
    // Empty: alive when last looked at. Otherwise how far each stream must be.
    std::vector<std::pair<Stream*, uint64_t>> horizon;
  };

  Cause find_operand(const Operand& operand) const;
  void collect_locked();
  static bool is_forgotten(uint64_t generation, Allocation& allocation);

  std::atomic<size_t> count_{0};
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Allocation> allocations_;  // by generation
  size_t next_collection_ = 64;
};

}  // namespace neuron::eager
