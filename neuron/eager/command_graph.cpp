#include "neuron/eager/command_graph.h"

#include <algorithm>
#include <random>

#include "neuron/base/error.h"
#include "neuron/eager/graph_body.h"
#include "neuron/eager/settings.h"
#include "neuron/eager/stream.h"
#include "neuron/runtime/process.h"
#include "neuron/runtime/queue.h"

namespace neuron::eager {

std::atomic<int> captures_under_way{0};

Stream& redirected_stream(Stream& stream) {
  Stream* target = stream.redirection();
  return target != nullptr ? *target : stream;
}

CommandGraph* capturing_graph(Stream& stream) {
  return captures_under_way.load(std::memory_order_relaxed) == 0 ? nullptr : redirected_stream(stream).capturing();
}

namespace {

// Streams of pools that are gone, for the next ones: a stream lives as long as the process.
struct SpareStreams {
  std::mutex mutex;
  std::vector<Stream*> streams;
};

SpareStreams& spare_streams() {
  static auto* instance = new SpareStreams();
  return *instance;
}

Stream& take_stream(int core) {
  {
    SpareStreams& spare = spare_streams();
    std::lock_guard lock(spare.mutex);
    // The one used last: its cached memory is the warmest.
    auto it = std::find_if(spare.streams.rbegin(), spare.streams.rend(), [&](Stream* s) { return s->core() == core; });
    if (it != spare.streams.rend()) {
      Stream& stream = **it;
      spare.streams.erase(std::next(it).base());
      return stream;
    }
  }
  Stream& stream = create_stream(core, 0);
  stream.serve_graphs();
  return stream;
}

struct ActiveCaptures {
  std::mutex mutex;
  std::vector<CommandGraph*> graphs;
  uint64_t last_id = 0;
};

ActiveCaptures& active_captures() {
  static auto* instance = new ActiveCaptures();
  return *instance;
}

uint64_t random_word() {
  static std::mutex mutex;
  static std::mt19937_64 engine{std::random_device{}()};
  std::lock_guard lock(mutex);
  return engine();
}

class ReplayTask final : public runtime::Task {
 public:
  ReplayTask(Stream& stream, std::shared_ptr<GraphBody> body, std::span<const RandomState> states)
      : stream_(stream), body_(std::move(body)), states_(states.begin(), states.end()) {}
  void run() noexcept override { stream_.execute(*body_, states_); }

 private:
  Stream& stream_;
  std::shared_ptr<GraphBody> body_;
  std::vector<RandomState> states_;
};

const char* asked_for(FlushReason reason) {
  switch (reason) {
    case FlushReason::HostRead:
      return "the value of a tensor was asked for";
    case FlushReason::DataDependentShape:
      return "the shape of a result depends on values";
    case FlushReason::RawPointer:
      return "the memory of a tensor was asked for";
    case FlushReason::EventQuery:
      return "an event or a query asks whether work is done";
    default:
      return "the host wants to wait for the device";
  }
}

}  // namespace

bool join_capture(uint64_t id, Stream& stream) {
  ActiveCaptures& active = active_captures();
  std::lock_guard lock(active.mutex);
  for (CommandGraph* graph : active.graphs) {
    if (graph->capture_id() != id) continue;
    graph->join(stream);
    return true;
  }
  return false;
}

GraphPool::GraphPool(int core) : core_(core), stream_(take_stream(core)) { stream_.set_graph_memory_in_use(true); }

GraphPool::~GraphPool() {
  stream_.set_graph_memory_in_use(false);
  SpareStreams& spare = spare_streams();
  std::lock_guard lock(spare.mutex);
  spare.streams.push_back(&stream_);
}

CommandGraph::CommandGraph() = default;

CommandGraph::~CommandGraph() {
  if (capturing()) end();
}

void CommandGraph::begin(Stream& stream, std::shared_ptr<GraphPool> pool) {
  if (capturing()) fail(ErrorKind::Runtime, "this graph is being captured already: end the capture first");
  if (captured()) fail(ErrorKind::Runtime, "this graph has been captured already: reset() it to capture it anew");
  if (stream.redirection() != nullptr || stream.capturing() != nullptr)
    fail(ErrorKind::Runtime, "the stream is being captured by another graph: end that capture first");
  if (pool->core() != stream.core())
    fail(ErrorKind::Value, "the memory pool belongs to device {}, the stream to device {}", pool->core(),
         stream.core());
  flush(stream, FlushReason::Explicit);
  Stream& target = pool->stream();
  pool_ = std::move(pool);
  failure_.clear();
  random_uses_.clear();
  {
    std::lock_guard lock(target.mutex());
    if (target.capturing() != nullptr)
      fail(ErrorKind::Runtime, "another graph of this memory pool is being captured: end that capture first");
    target.capture_into(this);
  }
  stream.redirect(&target);
  captured_streams_.assign(1, &stream);
  capturing_.store(true, std::memory_order_release);
  ActiveCaptures& active = active_captures();
  std::lock_guard active_lock(active.mutex);
  capture_id_ = ++active.last_id;
  active.graphs.push_back(this);
  captures_under_way.fetch_add(1);
}

void CommandGraph::join(Stream& stream) {
  std::lock_guard lock(mutex_);
  if (!capturing() || stream.capturing() == this || stream.redirection() == &pool_->stream()) return;
  if (stream.redirection() != nullptr)
    fail(ErrorKind::Runtime, "a stream that one graph captures cannot wait for an event of another graph's capture");
  flush(stream, FlushReason::Explicit);
  stream.redirect(&pool_->stream());
  captured_streams_.push_back(&stream);
}

void CommandGraph::keep_window(std::unique_ptr<Window>& window, FlushReason reason) {
  switch (reason) {
    case FlushReason::WindowFull:
      windows_.push_back(std::move(window));
      window = std::make_unique<Window>();
      return;
    case FlushReason::Explicit:
    case FlushReason::CustomKernel:
    case FlushReason::Mode:
    case FlushReason::MemoryPressure:
    case FlushReason::Exit:
      return;
    default:
      break;
  }
  refuse(asked_for(reason));
}

void CommandGraph::refuse(std::string_view what) {
  std::string text = fmt::format(
      "operation not permitted while a graph is being captured: {}. A graph records commands that run later, at each "
      "replay; move this out of the capture",
      what);
  if (failure_.empty()) failure_ = text;
  throw Error(ErrorKind::Runtime, text);
}

void CommandGraph::end() {
  if (!capturing()) fail(ErrorKind::Runtime, "no capture is under way: capture_begin() starts one");
  {
    ActiveCaptures& active = active_captures();
    std::lock_guard lock(active.mutex);
    std::erase(active.graphs, this);
  }
  Stream& target = pool_->stream();
  auto body = std::make_shared<GraphBody>();
  {
    std::lock_guard lock(target.mutex());
    if (!target.window().commands.empty()) windows_.push_back(target.take_window());
    target.window().reset();
    target.capture_into(nullptr);
  }
  {
    std::lock_guard lock(mutex_);
    for (Stream* stream : captured_streams_) stream->redirect(nullptr);
    captured_streams_.clear();
    capturing_.store(false, std::memory_order_release);
  }
  captures_under_way.fetch_sub(1);
  body->pool = pool_;
  body->windows = std::move(windows_);
  windows_.clear();
  body->index(random_uses_, failure_);
  body_ = std::move(body);
}

void CommandGraph::check_captured() const {
  if (capturing()) fail(ErrorKind::Runtime, "the graph is still being captured: end the capture first");
  if (!captured()) fail(ErrorKind::Runtime, "the graph holds nothing: capture commands first");
  if (!failure_.empty())
    fail(ErrorKind::Runtime, "the capture of this graph failed, so it cannot be replayed: {}", failure_);
}

void CommandGraph::instantiate() {
  check_captured();
  std::lock_guard lock(mutex_);
  if (!body_->prepared.empty() || !runtime_computes() || settings().interpret) return;
  std::lock_guard running(body_->running);
  pool_->stream().prepare(*body_);
}

void CommandGraph::replay(Stream& stream, std::span<const RandomState> states) {
  if (runtime::in_forked_child()) runtime::enter_runtime();
  if (settings().shut_down.load(std::memory_order_relaxed)) return;
  if (capturing_graph(stream) != nullptr)
    fail(ErrorKind::NotImplemented, "a graph cannot be replayed inside the capture of a graph");
  instantiate();
  std::shared_ptr<GraphBody> body = body_;
  if (stream.core() != pool_->core())
    fail(ErrorKind::Value, "the graph was captured on device {} and cannot be replayed on device {}", pool_->core(),
         stream.core());
  check_internal(states.size() == random_uses_.size(), "{} generator states for {}", states.size(),
                 random_uses_.size());
  body->check_memory();
  for (runtime::Block* block : body->written) block->writes.fetch_add(1, std::memory_order_relaxed);
  counters().commands.fetch_add(body->command_count, std::memory_order_relaxed);
  counters().region_commands.fetch_add(body->region_command_count, std::memory_order_relaxed);
  counters().kernel_commands.fetch_add(body->kernel_command_count, std::memory_order_relaxed);
  const bool waits = settings().mode.load(std::memory_order_relaxed) == Mode::Blocking;
  uint64_t sequence;
  {
    std::lock_guard lock(stream.mutex());
    stream.hand_over(FlushReason::Explicit);
    sequence = stream.queue().submit(std::make_unique<ReplayTask>(stream, std::move(body), states), waits);
  }
  if (waits) {
    stream.queue().wait(sequence);
    stream.raise_pending();
  }
}

void CommandGraph::reset() {
  if (capturing()) fail(ErrorKind::Runtime, "the graph is still being captured: end the capture first");
  std::shared_ptr<GraphBody> body;
  {
    std::lock_guard lock(mutex_);
    body = std::move(body_);
    random_uses_.clear();
    failure_.clear();
  }
  pool_.reset();
}

RandomState CommandGraph::reserve_random(const void* key, const std::shared_ptr<void>& owner, uint64_t count) {
  std::lock_guard lock(mutex_);
  auto it =
      std::find_if(random_uses_.begin(), random_uses_.end(), [&](const RandomUse& use) { return use.key == key; });
  if (it == random_uses_.end()) {
    // Both are positive as signed numbers and far from what a program uses; a multiple of 4 as offsets are.
    RandomState sentinel{random_word() >> 1 | uint64_t{1} << 60,
                         (random_word() >> 2 | uint64_t{1} << 59) & ~uint64_t{3}};
    random_uses_.push_back({key, owner, sentinel});
    note_sentinel_seed(sentinel.seed);
    it = random_uses_.end() - 1;
  }
  RandomState reserved{it->sentinel.seed, it->sentinel.offset + it->count};
  it->count += count;
  ++it->reservations;
  return reserved;
}

std::string CommandGraph::dot() const {
  if (!captured()) fail(ErrorKind::Runtime, "the graph holds nothing: capture commands first");
  return body_->dot();
}

}  // namespace neuron::eager
