// A stream: the open window of recorded commands, and the runtime queue that executes handed-over windows in order.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/eager/command.h"
#include "neuron/runtime/queue.h"

namespace neuron::eager {

class RegionRunner;

// A failure found while executing, kept until a synchronising call raises it.
struct LateError {
  ErrorKind kind;
  std::string message;
};

class Stream {
 public:
  Stream(int core, uint64_t id, int priority);
  ~Stream();

  int core() const { return core_; }
  uint64_t id() const { return id_; }
  int priority() const { return priority_; }
  runtime::Queue& queue() { return queue_; }

  // Recording: hold mutex(), append to window(), then call recorded() which hands the window over when it is full or
  // the mode asks for it.
  std::mutex& mutex() { return mutex_; }
  Window& window() { return *window_; }
  uint64_t next_sequence() { return ++sequence_; }
  // Called with the mutex held after a command was appended. Returns the queue sequence to wait for (blocking mode), or
  // 0.
  uint64_t recorded();
  // With the mutex held. Returns the queue sequence after which everything recorded so far has run.
  // `caller_waits`: the caller waits for it next, so the executor need not be woken.
  uint64_t hand_over(FlushReason reason, bool caller_waits = false);

  bool has_pending() const {
    return pending_commands_.load(std::memory_order_relaxed) != 0 || queue_.completed() != queue_.submitted();
  }

  // The queue sequence after which everything recorded so far has run, once it is handed over. Takes no lock.
  uint64_t position() const {
    // In this order: a window handed over in between is counted twice, never not at all.
    const uint64_t pending = pending_commands_.load(std::memory_order_acquire) != 0 ? 1 : 0;
    return queue_.submitted() + pending;
  }

  // Executor side, one window at a time.
  void execute(Window& window) noexcept;
  void recycle(std::unique_ptr<Window> window);
  void fail(const Command& command, ErrorKind kind, const std::string& message);
  bool poisoned(const Command& command) const;
  // The command is not run because an input is poisoned: its outputs become poisoned by the same failure.
  void skip(const Command& command);
  uint64_t poison_of(const Command& command) const;
  void poison_outputs(const Command& command, uint64_t sequence);
  bool any_poison() const { return any_poison_.load(std::memory_order_acquire); }
  // What the command wrote is good again.
  void succeed(const Command& command);

  // Raises and clears the first pending late error.
  void raise_pending();
  // Raises when the block's content was never written because of an error.
  void raise_if_poisoned(const runtime::Block* block);

 private:
  const int core_;
  const uint64_t id_;
  const int priority_;
  runtime::Queue& queue_;

  std::mutex mutex_;
  std::unique_ptr<Window> window_;
  std::vector<std::unique_ptr<Window>> spare_windows_;
  uint64_t sequence_ = 0;
  std::atomic<uint32_t> pending_commands_{0};

  std::mutex error_mutex_;
  std::unique_ptr<LateError> pending_error_;
  std::unordered_map<uint64_t, LateError> poison_;  // by the sequence number of the failed command
  std::vector<std::pair<const runtime::Block*, uint64_t>> poisoned_blocks_;  // with the generation
  std::atomic<bool> any_poison_{false};

  std::unique_ptr<RegionRunner> runner_;
};

// Applies to every stream, in order of creation.
void for_each_stream(const std::function<void(Stream&)>& body);

}  // namespace neuron::eager
