#include "neuron/eager/memory_hooks.h"

#include "neuron/base/error.h"
#include "neuron/eager/settings.h"
#include "neuron/eager/stream.h"
#include "neuron/runtime/allocator.h"

namespace neuron::eager {
namespace {

// A position is a number of tasks of the stream's queue; a window that has not been handed over is the next task.
class QueueClock final : public runtime::StreamClock {
 public:
  uint64_t recorded(uint64_t stream) override { return stream_by_id(stream).position(); }
  bool passed(uint64_t stream, uint64_t position) override {
    Stream& clocked = stream_by_id(stream);
    // Replays run on other streams: a graph's memory is in use until the graph is gone.
    if (clocked.serves_graphs()) return !clocked.graph_memory_in_use();
    return clocked.queue().completed() >= position;
  }
};

// Memory of core `core` has run out: what is recorded may hold cached memory. Failures stay pending for their own
// readers.
void finish_work(int core) {
  // A task that allocates cannot wait for its own queue.
  if (runtime::inside_task() || settings().shut_down.load(std::memory_order_relaxed)) return;
  for_each_stream([&](Stream& stream) {
    if (stream.core() != core) return;
    uint64_t sequence = 0;
    {
      std::lock_guard lock(stream.mutex());
      sequence = stream.hand_over(FlushReason::MemoryPressure, true);
    }
    if (sequence != 0) stream.queue().wait(sequence);
  });
}

}  // namespace

void install_memory_hooks() {
  static QueueClock clock;
  runtime::set_stream_clock(&clock);
  runtime::set_pressure_handler(finish_work);
}

}  // namespace neuron::eager
