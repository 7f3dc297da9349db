// Command graphs: what is recorded between begin() and end() is kept instead of run, planned and compiled once, and
// replay() runs it any number of times on the same addresses, at the cost of one task.
//
// While a stream is captured, everything recorded on it goes to a private stream of the graph, whose memory nobody else
// allocates from: what the commands write stays theirs as long as a graph of the pool lives. Operations that need a
// value on the host or wait for the device raise Error(Runtime), and the graph cannot be replayed.
//
// Random numbers: a replay takes them from the generators as they are at that moment and advances each by what the
// whole graph uses, as the same operations would outside a graph.
//
// Threads: any, but one begin/end at a time per graph; replays may be requested from several threads. None takes the
// GIL.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neuron/eager/recorder.h"

namespace neuron::eager {

struct Window;
struct GraphBody;

// The memory of one or more graphs. Graphs of one pool may use each other's dead memory: they must be replayed in the
// order in which they were captured, one after the other.
class GraphPool {
 public:
  explicit GraphPool(int core);
  ~GraphPool();
  GraphPool(const GraphPool&) = delete;
  GraphPool& operator=(const GraphPool&) = delete;
  Stream& stream() const { return stream_; }
  int core() const { return core_; }

 private:
  const int core_;
  Stream& stream_;
};

// A generator's state, or a part of its sequence.
struct RandomState {
  uint64_t seed = 0, offset = 0;
};

class CommandGraph {
 public:
  CommandGraph();
  ~CommandGraph();
  CommandGraph(const CommandGraph&) = delete;
  CommandGraph& operator=(const CommandGraph&) = delete;

  // Captures what is recorded on `stream` from now on. What was recorded before is handed to the executor first.
  void begin(Stream& stream, std::shared_ptr<GraphPool> pool);
  void end();
  // Plans and compiles; done by the first replay() otherwise.
  void instantiate();
  // Runs the commands on `stream`, after everything recorded there. One state per random_uses(). Throws Error(Runtime)
  // when the capture failed, or when memory that the graph uses was freed since.
  void replay(Stream& stream, std::span<const RandomState> states);
  // Forgets the commands; replays under way finish first. The graph may be captured anew.
  void reset();

  bool capturing() const { return capturing_.load(std::memory_order_acquire); }
  bool captured() const { return body_ != nullptr; }
  bool failed() const { return !failure_.empty(); }
  const std::shared_ptr<GraphPool>& pool() const { return pool_; }

  // During the capture, instead of taking numbers from the generator: a state that stands for its part of each replay.
  // `key` tells generators apart, `owner` is kept as long as the graph.
  RandomState reserve_random(const void* key, const std::shared_ptr<void>& owner, uint64_t count);
  struct RandomUse {
    const void* key;
    std::shared_ptr<void> owner;
    RandomState sentinel;  // values that occur nowhere else: how its numbers are found in the commands
    uint64_t count = 0, reservations = 0;
  };
  std::span<const RandomUse> random_uses() const { return random_uses_; }

  // The commands in Graphviz's language.
  std::string dot() const;

  // For Stream, with the capturing stream's mutex held: takes a window that is full; throws when `reason` asks for
  // something a capture cannot give.
  void keep_window(std::unique_ptr<Window>& window, FlushReason reason);
  // Throws Error(Runtime) that says what a capture cannot give; the graph cannot be replayed.
  [[noreturn]] void refuse(std::string_view what);
  // A further stream waits for an event of the capture: it is captured, too.
  void join(Stream& stream);
  uint64_t capture_id() const { return capture_id_; }

 private:
  void check_captured() const;

  std::shared_ptr<GraphPool> pool_;
  std::shared_ptr<GraphBody> body_;
  std::vector<std::unique_ptr<Window>> windows_;  // while capturing
  std::vector<Stream*> captured_streams_;
  std::vector<RandomUse> random_uses_;
  std::string failure_;
  uint64_t capture_id_ = 0;
  std::mutex mutex_;
  std::atomic<bool> capturing_{false};
};

// Captures under way in the process: lets the recording path pass by with one load.
extern std::atomic<int> captures_under_way;
// Where commands for `stream` are recorded: itself, or the private stream of the graph that captures it.
Stream& redirected_stream(Stream& stream);
inline Stream& recording_stream(Stream& stream) {
  return captures_under_way.load(std::memory_order_relaxed) == 0 ? stream : redirected_stream(stream);
}
// Makes the capture of this id, if it is still under way, capture `stream`, too; false otherwise.
bool join_capture(uint64_t id, Stream& stream);
// The graph that captures `stream` (before or after redirection), or null.
CommandGraph* capturing_graph(Stream& stream);

}  // namespace neuron::eager
