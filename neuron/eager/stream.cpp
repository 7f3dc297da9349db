#include "neuron/eager/stream.h"

#include <algorithm>
#include <deque>

#include "neuron/base/hash.h"
#include "neuron/eager/command_graph.h"
#include "neuron/eager/graph_body.h"
#include "neuron/eager/memory_hooks.h"
#include "neuron/eager/region_runner.h"
#include "neuron/eager/settings.h"
#include "neuron/runtime/device.h"
#include "neuron/runtime/guarded.h"

namespace neuron::eager {

namespace {

constexpr size_t kSpareWindows = 8;

class WindowTask final : public runtime::Task {
 public:
  WindowTask(Stream& stream, std::unique_ptr<Window> window) : stream_(stream), window_(std::move(window)) {}
  void run() noexcept override {
    stream_.execute(*window_);
    stream_.recycle(std::move(window_));
  }

 private:
  Stream& stream_;
  std::unique_ptr<Window> window_;
};

struct Registry {
  std::mutex mutex;
  std::deque<std::unique_ptr<Stream>> streams;  // by id
  static constexpr int kMaxCores = 256;
  std::atomic<Stream*> defaults[kMaxCores] = {};  // by core
  // Found without the lock: every death of a tensor asks for its stream.
  static constexpr uint64_t kQuickIds = 1024;
  std::atomic<Stream*> quick[kQuickIds] = {};  // by id

  // Hold `mutex`.
  Stream& add(int core, int priority) {
    const uint64_t id = streams.size();
    Stream* stream = streams.emplace_back(std::make_unique<Stream>(core, id, priority)).get();
    if (id < kQuickIds) quick[id].store(stream, std::memory_order_release);
    return *stream;
  }
};

Registry& registry() {
  static Registry* instance = [] {
    install_memory_hooks();
    return new Registry();
  }();
  return *instance;
}

}  // namespace

Stream::Stream(int core, uint64_t id, int priority)
    : core_(core),
      id_(id),
      priority_(priority),
      queue_(runtime::create_queue(core)),
      window_(std::make_unique<Window>()),
      runner_(std::make_unique<RegionRunner>(*this)) {}

Stream::~Stream() = default;

namespace {

// Windows end at commands that their own content picks, so that a loop without synchronisation is cut at the same
// places in each round and its plans are found again. After a wait the executor has nothing to do: it gets a few
// short windows, each twice as long as the one before, and works while the rest is recorded. They end behind library
// kernels, where few fusions are lost.
constexpr int kWindowsAfterWait = 3;

bool ends_window(const Window& window, size_t limit, int windows_since_wait) {
  constexpr size_t kShortest = 192, kFirstAfterWait = 48;
  constexpr uint64_t kOneIn = 32;
  // Lists come in sequences over the same tensors, which a kernel goes through once if they are not parted: the command
  // after a sequence is the place to end.
  constexpr size_t kItemsOfACommand = 4, kMostItems = 8192;
  size_t count = window.commands.size() + window.further_items / kItemsOfACommand;
  if (window.further_items >= kMostItems) return true;
  const Command& last = window.commands.back();
  if (windows_since_wait < kWindowsAfterWait && count >= (kFirstAfterWait << windows_since_wait) &&
      last.kind == CommandKind::Kernel && last.items <= 1)
    return true;
  if (count < kShortest) return false;
  if (last.items > 1) return count >= 4 * limit;
  if (count >= limit || (window.commands.size() > 1 && window.commands.end()[-2].items > 1)) return true;
  if (last.output_count == 0) return false;
  uint64_t hash = hash_combine(last.input_count, last.op ? last.op->id : 0x9e37);
  const Operand& output = last.operands[0];
  for (int d = 0; d < output.rank; ++d) hash = hash_combine(hash, static_cast<uint64_t>(output.sizes[d]));
  return (hash >> 17) % kOneIn == 0;
}

}  // namespace

uint64_t Stream::recorded() {
  counters().commands.fetch_add(1, std::memory_order_relaxed);
  if (capturing() != nullptr) [[unlikely]] {
    if (ends_window(*window_, settings().window_limit.load(std::memory_order_relaxed), kWindowsAfterWait))
      hand_over(FlushReason::WindowFull);
    return 0;
  }
  pending_commands_.store(static_cast<uint32_t>(window_->commands.size()), std::memory_order_relaxed);
  switch (settings().mode.load(std::memory_order_relaxed)) {
    case Mode::Adaptive:
      if (ends_window(*window_, settings().window_limit.load(std::memory_order_relaxed), windows_since_wait_))
        hand_over(FlushReason::WindowFull);
      return 0;
    case Mode::Immediate:
      hand_over(FlushReason::Mode);
      return 0;
    case Mode::Blocking:
      return hand_over(FlushReason::Mode, true);
  }
  return 0;
}

std::unique_ptr<Window> Stream::take_window() {
  std::unique_ptr<Window> window = std::move(window_);
  window_ = std::make_unique<Window>();
  return window;
}

uint64_t Stream::hand_over(FlushReason reason, bool caller_waits) {
  if (CommandGraph* graph = capturing()) [[unlikely]] {
    graph->keep_window(window_, reason);
    return queue_.submitted();
  }
  windows_since_wait_ = caller_waits ? 0 : std::min(windows_since_wait_ + 1, kWindowsAfterWait);
  if (!window_->commands.empty()) {
    counters().flushes[static_cast<int>(reason)].fetch_add(1, std::memory_order_relaxed);
    auto full = std::move(window_);
    if (spare_windows_.empty()) {
      window_ = std::make_unique<Window>();
    } else {
      window_ = std::move(spare_windows_.back());
      spare_windows_.pop_back();
    }
    queue_.submit(std::make_unique<WindowTask>(*this, std::move(full)), caller_waits);
    pending_commands_.store(0, std::memory_order_release);
  } else {
    window_->deaths.clear();
  }
  return queue_.submitted();
}

void Stream::recycle(std::unique_ptr<Window> window) {
  window->reset();
  std::lock_guard lock(mutex_);
  if (spare_windows_.size() < kSpareWindows) spare_windows_.push_back(std::move(window));
}

void Stream::execute(Window& window) noexcept {
  if (!runtime::driver().computes()) return;
  runtime::DeviceAccess access;
  ++execution_;
  runner_->run(window);
}

void Stream::execute(GraphBody& graph, std::span<const RandomState> states) noexcept {
  if (!runtime::driver().computes()) return;
  std::lock_guard lock(graph.running);
  runtime::DeviceAccess access;
  ++execution_;
  replayed_ = &graph.pool->stream();
  graph.fill_random(states);
  for (size_t i = 0; i < graph.windows.size(); ++i) {
    if (graph.prepared.empty()) {
      runner_->run(*graph.windows[i]);  // the interpreter keeps no plans
    } else {
      runner_->run_prepared(*graph.prepared[i], *graph.windows[i]);
    }
  }
  replayed_ = nullptr;
}

void Stream::prepare(GraphBody& graph) {
  // Graphs of one pool share the planner of its stream.
  static std::mutex one_at_a_time;
  std::lock_guard lock(one_at_a_time);
  const bool fusing = settings().fusion && settings().mode == Mode::Adaptive;
  std::vector<std::unique_ptr<PreparedWindow>> prepared;
  for (auto& window : graph.windows) prepared.push_back(runner_->prepare(*window, fusing));
  graph.prepared = std::move(prepared);
}

void Stream::fail(const Command& command) {
  const Cause cause = failure_of(command);
  poison_.add(command, cause, replayed_);
  keep(cause, command.sequence);
}

void Stream::skip(const Command& command, const Cause& cause) {
  poison_.add(command, cause, replayed_);
  // Nothing remembers that foreign memory has no value: who waits for it is told now.
  for (const Operand& output : command.outputs()) {
    if (output.block == nullptr && output.low != output.high) return keep(cause, command.sequence);
  }
}

void Stream::keep(const Cause& cause, uint64_t sequence) {
  std::lock_guard lock(error_mutex_);
  const bool earlier = pending_.execution == execution_ && sequence < pending_.sequence;
  if (pending_.cause == nullptr || earlier) pending_ = {cause, execution_, sequence};
  has_pending_error_.store(true, std::memory_order_release);
}

void Stream::raise_pending() {
  poison_.collect();
  if (!has_pending_error_.load(std::memory_order_acquire)) return;
  Cause cause;
  {
    std::lock_guard lock(error_mutex_);
    cause = std::move(pending_.cause);
    pending_.cause = nullptr;
    has_pending_error_.store(false, std::memory_order_release);
  }
  if (cause != nullptr) cause->raise();
}

Stream& create_stream(int core, int priority) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  return all.add(core, priority);
}

Stream& default_stream(int core) {
  Registry& all = registry();
  check_internal(core >= 0 && core < Registry::kMaxCores, "core {} is out of range", core);
  if (Stream* known = all.defaults[core].load(std::memory_order_acquire)) return *known;
  std::lock_guard lock(all.mutex);
  if (Stream* known = all.defaults[core].load(std::memory_order_acquire)) return *known;
  Stream& stream = all.add(core, 0);
  all.defaults[core].store(&stream, std::memory_order_release);
  return stream;
}

Stream& stream_by_id(uint64_t id) {
  Registry& all = registry();
  if (id < Registry::kQuickIds) {
    if (Stream* known = all.quick[id].load(std::memory_order_acquire)) return *known;
  }
  std::lock_guard lock(all.mutex);
  if (id >= all.streams.size())
    neuron::fail(ErrorKind::Value, "stream id {} does not exist; {} streams have been made", id, all.streams.size());
  return *all.streams[id];
}

uint64_t stream_id(const Stream& stream) { return stream.id(); }
int stream_core(const Stream& stream) { return stream.core(); }

void for_each_stream(const std::function<void(Stream&)>& body) {
  Registry& all = registry();
  std::vector<Stream*> streams;
  {
    std::lock_guard lock(all.mutex);
    for (auto& stream : all.streams) streams.push_back(stream.get());
  }
  for (Stream* stream : streams) body(*stream);
}

}  // namespace neuron::eager
