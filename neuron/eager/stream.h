// A stream: the open window of recorded commands, and the runtime queue that executes handed-over windows in order.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "neuron/eager/command.h"
#include "neuron/eager/late_error.h"
#include "neuron/eager/poison.h"
#include "neuron/runtime/queue.h"

namespace neuron::eager {

class CommandGraph;
class RegionRunner;
struct GraphBody;
struct RandomState;

// Sequence numbers of captured commands begin here: they are not those of the stream that replays them. What messages
// show is what is left without this bit.
inline constexpr uint64_t kCapturedSequence = uint64_t{1} << 39;

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
    return pending_commands_.load(std::memory_order_relaxed) != 0 || queue_.completed() != queue_.submitted() ||
           capturing() != nullptr;
  }

  // Capture into graphs (command_graph.h). The stream of the program is redirected to the private stream of a graph,
  // which keeps what is recorded instead of handing it over.
  Stream* redirection() const { return redirection_.load(std::memory_order_acquire); }
  void redirect(Stream* target) { redirection_.store(target, std::memory_order_release); }
  CommandGraph* capturing() const { return capture_.load(std::memory_order_acquire); }
  void capture_into(CommandGraph* graph) { capture_.store(graph, std::memory_order_release); }  // hold mutex()
  std::unique_ptr<Window> take_window();                                                        // hold mutex()
  // A private stream: nothing runs on it, and its memory is in use as long as a graph may be replayed.
  void serve_graphs() {
    sequence_ = kCapturedSequence;
    serves_graphs_.store(true, std::memory_order_release);
  }
  bool serves_graphs() const { return serves_graphs_.load(std::memory_order_acquire); }
  void set_graph_memory_in_use(bool on) { graph_memory_in_use_.store(on, std::memory_order_release); }
  bool graph_memory_in_use() const { return graph_memory_in_use_.load(std::memory_order_acquire); }
  // Plans a graph and compiles its kernels, on the calling thread.
  void prepare(GraphBody& graph);

  // The queue sequence after which everything recorded so far has run, once it is handed over. Takes no lock.
  uint64_t position() const {
    // In this order: a window handed over in between is counted twice, never not at all.
    const uint64_t pending = pending_commands_.load(std::memory_order_acquire) != 0 ? 1 : 0;
    return queue_.submitted() + pending;
  }

  // Executor side, one window at a time.
  void execute(Window& window) noexcept;
  void execute(GraphBody& graph, std::span<const RandomState> states) noexcept;
  void recycle(std::unique_ptr<Window> window);
  bool any_poison() const { return poison_.any(); }
  // Why the command cannot run, or null (poison.h).
  Cause blocking(const Command& command) const { return poison_.any() ? poison_.blocking(command) : nullptr; }
  // The command was not run because of `cause`: nor do its outputs have a value.
  void skip(const Command& command, const Cause& cause);
  // In a catch block: the exception is the late error of the command.
  void fail(const Command& command);
  // What the command wrote is good again.
  void succeed(const Command& command) { poison_.remove(command); }

  // Raises and clears the first pending late error.
  void raise_pending();

 private:
  const int core_;
  const uint64_t id_;
  const int priority_;
  runtime::Queue& queue_;

  std::mutex mutex_;
  std::unique_ptr<Window> window_;
  std::vector<std::unique_ptr<Window>> spare_windows_;
  uint64_t sequence_ = 0;
  int windows_since_wait_ = 0;  // handed over since somebody waited for everything; counts a few
  std::atomic<uint32_t> pending_commands_{0};
  std::atomic<Stream*> redirection_{nullptr};
  std::atomic<CommandGraph*> capture_{nullptr};
  std::atomic<bool> serves_graphs_{false}, graph_memory_in_use_{false};

  // Kept until a synchronising call raises it. Of one execution the failure that was recorded first, whatever the order
  // its commands ran in; of several executions the first.
  struct Pending {
    Cause cause;
    uint64_t execution, sequence;
  };
  void keep(const Cause& cause, uint64_t sequence);

  Poison& poison_ = Poison::instance();
  std::mutex error_mutex_;
  Pending pending_{};
  std::atomic<bool> has_pending_error_{false};
  uint64_t execution_ = 0;            // of windows and graphs, counted
  const Stream* replayed_ = nullptr;  // the private stream of the graph that is being replayed

  std::unique_ptr<RegionRunner> runner_;
};

// Applies to every stream, in order of creation.
void for_each_stream(const std::function<void(Stream&)>& body);

}  // namespace neuron::eager
