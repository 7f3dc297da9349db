// Events: a point of a stream. Recording one hands over the stream's window, so that the event's place in the queue is
// fixed.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/eager/command_graph.h"
#include "neuron/eager/settings.h"
#include "neuron/eager/stream.h"

namespace neuron::eager {

class Event {
 public:
  explicit Event(bool timing) : timing(timing) {}

  const bool timing;
  std::mutex mutex;
  Stream* stream = nullptr;  // of the last recording
  uint64_t sequence = 0;     // its place in the stream's queue
  uint64_t capture = 0;      // of the capture it was recorded in, if any: it orders streams of that capture only
  std::vector<int> waiting;  // cores whose queues wait for it: to be woken, whichever core reaches it
  std::atomic<uint64_t> recordings{0}, reached{0};
  std::chrono::steady_clock::time_point time;
};

namespace {

class RecordTask final : public runtime::Task {
 public:
  RecordTask(std::shared_ptr<Event> event, uint64_t recording, int core)
      : event_(std::move(event)), recording_(recording), core_(core) {}
  void run() noexcept override {
    std::vector<int> waiting;
    {
      std::lock_guard lock(event_->mutex);
      event_->time = std::chrono::steady_clock::now();
      event_->reached.store(recording_, std::memory_order_release);
      waiting.swap(event_->waiting);
    }
    runtime::notify_queues(core_);
    for (int core : waiting) {
      if (core != core_) runtime::notify_queues(core);
    }
  }

 private:
  std::shared_ptr<Event> event_;
  uint64_t recording_;
  int core_;
};

class WaitTask final : public runtime::Task {
 public:
  WaitTask(std::shared_ptr<Event> event, uint64_t recording) : event_(std::move(event)), recording_(recording) {}
  bool ready() override { return event_->reached.load(std::memory_order_acquire) >= recording_; }
  void run() noexcept override {}

 private:
  std::shared_ptr<Event> event_;
  uint64_t recording_;
};

// The capture that the event was last recorded in, or 0.
uint64_t capture_of(Event& event) {
  std::lock_guard lock(event.mutex);
  return event.capture;
}

void refuse_captured(Event& event) {
  if (capture_of(event) == 0) return;
  neuron::fail(ErrorKind::Runtime,
               "the event was recorded while a graph was being captured: it orders the streams of that capture and can "
               "neither be queried nor waited for by the host. Record it anew outside the capture");
}

}  // namespace

std::shared_ptr<Event> create_event(bool timing) { return std::make_shared<Event>(timing); }

void record_event(Stream& stream, const std::shared_ptr<Event>& event) {
  if (settings().shut_down) return;
  if (CommandGraph* graph = stream.capturing()) [[unlikely]] {
    std::lock_guard lock(event->mutex);
    event->capture = graph->capture_id();
    return;
  }
  std::lock_guard lock(stream.mutex());
  stream.hand_over(FlushReason::EventQuery);
  std::lock_guard event_lock(event->mutex);
  uint64_t recording = ++event->recordings;
  event->capture = 0;
  event->stream = &stream;
  event->sequence = stream.queue().submit(std::make_unique<RecordTask>(event, recording, stream.core()));
}

void wait_event(Stream& stream, const std::shared_ptr<Event>& event) {
  if (settings().shut_down) return;
  // Commands of one capture run in the order they are recorded, whichever stream they are recorded on.
  if (captures_under_way.load() != 0 && join_capture(capture_of(*event), stream)) return;
  uint64_t recording = event->recordings.load();
  if (recording == 0 || event->reached.load() >= recording) return;
  if (stream.capturing() != nullptr)
    neuron::fail(
        ErrorKind::Runtime,
        "operation not permitted while a graph is being captured: waiting for an event that was recorded outside "
        "the capture. Wait for it before the capture begins");
  std::lock_guard lock(stream.mutex());
  stream.hand_over(FlushReason::EventQuery);
  {
    std::lock_guard event_lock(event->mutex);
    event->waiting.push_back(stream.core());
  }
  stream.queue().submit(std::make_unique<WaitTask>(event, recording));
}

bool query_event(Event& event) {
  refuse_captured(event);
  return event.reached.load(std::memory_order_acquire) >= event.recordings.load();
}

void synchronize_event(Event& event) {
  refuse_captured(event);
  Stream* stream;
  uint64_t sequence;
  {
    std::lock_guard lock(event.mutex);
    stream = event.stream;
    sequence = event.sequence;
  }
  if (stream == nullptr || settings().shut_down) return;
  stream->queue().wait(sequence);
  stream->raise_pending();
}

double elapsed_milliseconds(Event& start, Event& end) {
  if (!start.timing || !end.timing)
    neuron::fail(ErrorKind::Value,
                 "both events must be created with enable_timing=True to measure the time between them");
  if (start.recordings == 0 || end.recordings == 0)
    neuron::fail(ErrorKind::Value, "both events must be recorded before the time between them can be read");
  if (!query_event(start) || !query_event(end))
    neuron::fail(ErrorKind::Runtime,
                 "both events must be completed before the time between them can be read: synchronize them first");
  // One after the other: both may be the same event.
  auto time_of = [](Event& event) {
    std::lock_guard lock(event.mutex);
    return event.time;
  };
  return std::chrono::duration<double, std::milli>(time_of(end) - time_of(start)).count();
}

}  // namespace neuron::eager
