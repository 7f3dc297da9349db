#include "neuron/runtime/queue.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/base/native_thread.h"
#include "neuron/base/thread_pool.h"
#include "neuron/runtime/process.h"

namespace neuron::runtime {
namespace {

constexpr int kMaxCores = 64;
// On one processor nobody makes progress while somebody spins.
int spin_microseconds() { return hardware_threads() > 1 ? 20 : 0; }
constexpr uint64_t kNobodyWaits = ~uint64_t{0};

thread_local bool task_runs_here = false;

std::atomic<const WaitHooks*> wait_hooks{nullptr};

// A thread's absence from what its hooks give up.
class Away {
 public:
  Away() = default;
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;
  ~Away() {
    if (hooks_ != nullptr) hooks_->enter(state_);
  }
  void begin() {
    if (hooks_ != nullptr) return;
    hooks_ = wait_hooks.load(std::memory_order_acquire);
    if (hooks_ != nullptr) state_ = hooks_->leave();
  }

 private:
  const WaitHooks* hooks_ = nullptr;
  void* state_ = nullptr;
};

class Executor;

class TaskQueue final : public Queue {
 public:
  explicit TaskQueue(Executor& executor) : executor_(executor) {}

  uint64_t submit(std::unique_ptr<Task> task, bool caller_waits) override;
  uint64_t run(std::unique_ptr<Task> task) override;
  uint64_t submitted() const override { return submitted_.load(std::memory_order_acquire); }
  uint64_t completed() const override { return completed_.load(std::memory_order_acquire); }
  void wait(uint64_t sequence) override;

 private:
  friend class Executor;
  Executor& executor_;
  std::deque<std::unique_ptr<Task>>
      tasks_;                        // guarded by the executor's mutex; only the running thread touches the front
  uint64_t awaited_ = kNobodyWaits;  // lowest sequence a sleeping thread waits for, or lower
  std::atomic<uint64_t> submitted_{0}, completed_{0};
};

// The work of one core. At most one thread runs its tasks at a time: the executor's own or one that waits.
class Executor {
 public:
  explicit Executor(int core) : core_(core) {}

  TaskQueue& add_queue() {
    std::lock_guard lock(mutex_);
    return *queues_.emplace_back(std::make_unique<TaskQueue>(*this));
  }
  uint64_t submit(TaskQueue& queue, std::unique_ptr<Task> task, bool wake);
  void wait(TaskQueue& queue, uint64_t sequence);
  void notify();

  // Shutdown, in this order: drain() on all cores until none makes progress, then stop().
  bool drain();
  void stop();

 private:
  using Lock = std::unique_lock<std::mutex>;

  void start_thread_locked();
  void loop();
  bool advance(Lock& lock, TaskQueue* preferred);
  void hand_over(Lock& lock);

  const int core_;
  std::mutex mutex_;
  std::condition_variable work_, progress_;
  std::vector<std::unique_ptr<TaskQueue>> queues_;
  std::vector<std::pair<TaskQueue*, std::unique_ptr<Task>*>> heads_;  // scratch of the running thread
  std::atomic<uint64_t> changes_{0};  // counts everything that may let a waiting thread go on
  size_t pending_ = 0;                // tasks in all queues
  size_t next_ = 0;                   // where the round of the queues starts
  int sleeping_waiters_ = 0;
  bool running_ = false, asleep_ = false, stopped_ = false;
  std::thread thread_;
};

uint64_t Executor::submit(TaskQueue& queue, std::unique_ptr<Task> task, bool wake) {
  enter_runtime();
  Lock lock(mutex_);
  if (stopped_) fail(ErrorKind::Runtime, "the neuron runtime has been shut down: core {} takes no more work", core_);
  queue.tasks_.push_back(std::move(task));
  ++pending_;
  changes_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t sequence = queue.submitted_.load(std::memory_order_relaxed) + 1;
  queue.submitted_.store(sequence, std::memory_order_release);
  if (wake && !running_) {
    if (!thread_.joinable()) start_thread_locked();
    if (asleep_) {
      lock.unlock();
      work_.notify_one();
    }
  }
  return sequence;
}

void Executor::start_thread_locked() {
  try {
    thread_ = start_thread("neuron-core-" + std::to_string(core_), [this] { loop(); });
  } catch (const std::system_error&) {
    // No thread to be had: the tasks run when somebody waits for them.
  }
}

// Runs one ready task, of the preferred queue if it has one. Called and left with the lock held, which is released
// while the task is asked, run and destroyed. False: nothing was ready.
bool Executor::advance(Lock& lock, TaskQueue* preferred) {
  if (pending_ == 0) return false;
  running_ = true;
  heads_.clear();
  if (preferred != nullptr && !preferred->tasks_.empty()) heads_.emplace_back(preferred, &preferred->tasks_.front());
  for (size_t i = 0; i < queues_.size(); ++i) {
    TaskQueue* queue = queues_[(next_ + i) % queues_.size()].get();
    if (queue != preferred && !queue->tasks_.empty()) heads_.emplace_back(queue, &queue->tasks_.front());
  }
  lock.unlock();
  TaskQueue* ran = nullptr;
  for (auto [queue, head] : heads_) {
    if (!(*head)->ready()) continue;
    task_runs_here = true;
    (*head)->run();
    task_runs_here = false;
    head->reset();  // what the task holds is released before anyone sees it complete
    ran = queue;
    break;
  }
  lock.lock();
  running_ = false;
  if (ran == nullptr) return false;
  ran->tasks_.pop_front();
  --pending_;
  next_ = (next_ + 1) % queues_.size();
  const uint64_t completed = ran->completed_.load(std::memory_order_relaxed) + 1;
  ran->completed_.store(completed, std::memory_order_release);
  changes_.fetch_add(1, std::memory_order_relaxed);
  if (completed >= ran->awaited_) {
    ran->awaited_ = kNobodyWaits;  // who is not done yet enters itself again
    progress_.notify_all();
  }
  return true;
}

void Executor::loop() {
  Lock lock(mutex_);
  while (!stopped_) {
    const uint64_t seen = changes_.load(std::memory_order_relaxed);
    if (!running_ && advance(lock, nullptr)) continue;
    lock.unlock();
    spin_until(spin_microseconds(), [&] { return changes_.load(std::memory_order_relaxed) != seen; });
    lock.lock();
    if (changes_.load(std::memory_order_relaxed) != seen && !running_) continue;
    asleep_ = true;
    // While another thread runs the tasks it hands the rest over when it leaves.
    work_.wait(lock, [&] { return stopped_ || (!running_ && changes_.load(std::memory_order_relaxed) != seen); });
    asleep_ = false;
  }
}

void Executor::wait(TaskQueue& queue, uint64_t sequence) {
  auto done = [&] { return queue.completed() >= sequence; };
  if (done()) return;
  enter_runtime();
  check_internal(sequence <= queue.submitted(), "waiting for task {} of a queue that has {}", sequence,
                 queue.submitted());
  check_internal(!task_runs_here, "a task waits for task {} of a queue", sequence);
  Away away;  // ends after the lock
  Lock lock(mutex_);
  while (!done()) {
    if (stopped_)
      fail(ErrorKind::Runtime, "the neuron runtime was shut down before task {} of core {} ran", sequence, core_);
    const uint64_t seen = changes_.load(std::memory_order_relaxed);
    if (!running_ && advance(lock, &queue)) continue;
    auto changed = [&] { return changes_.load(std::memory_order_relaxed) != seen; };
    const bool others_run = running_;
    lock.unlock();
    away.begin();
    spin_until(spin_microseconds(), [&] { return done() || (!others_run && changed()); });
    lock.lock();
    ++sleeping_waiters_;
    while (!stopped_ && !done() && (running_ || !changed())) {
      queue.awaited_ = std::min(queue.awaited_, sequence);
      progress_.wait(lock);
    }
    --sleeping_waiters_;
  }
  hand_over(lock);
}

// A waiting thread leaves: what is left is for the executor or for another waiting thread.
void Executor::hand_over(Lock& lock) {
  if (pending_ == 0 || running_ || stopped_) return;
  changes_.fetch_add(1, std::memory_order_relaxed);
  if (!thread_.joinable()) start_thread_locked();
  const bool wake_executor = asleep_, wake_waiters = sleeping_waiters_ > 0;
  lock.unlock();
  if (wake_executor) work_.notify_one();
  if (wake_waiters) progress_.notify_all();
}

void Executor::notify() {
  Lock lock(mutex_);
  changes_.fetch_add(1, std::memory_order_relaxed);
  if (pending_ == 0) return;
  if (!thread_.joinable() && !running_ && !stopped_) start_thread_locked();
  work_.notify_one();
  progress_.notify_all();
}

bool Executor::drain() {
  Lock lock(mutex_);
  bool progressed = false;
  for (;;) {
    if (running_) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
      progressed = true;
    } else if (advance(lock, nullptr)) {
      progressed = true;
    } else {
      return progressed;
    }
  }
}

void Executor::stop() {
  std::deque<std::unique_ptr<Task>> dropped;
  {
    Lock lock(mutex_);
    stopped_ = true;
    while (running_) {  // a waiting thread still asks the heads of the queues whether they are ready
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    for (auto& queue : queues_) {
      for (auto& task : queue->tasks_) dropped.push_back(std::move(task));
      queue->tasks_.clear();
    }
    pending_ = 0;
  }
  work_.notify_all();
  progress_.notify_all();
  if (thread_.joinable()) thread_.join();
}

uint64_t TaskQueue::submit(std::unique_ptr<Task> task, bool caller_waits) {
  return executor_.submit(*this, std::move(task), !caller_waits);
}

uint64_t TaskQueue::run(std::unique_ptr<Task> task) {
  const uint64_t sequence = executor_.submit(*this, std::move(task), false);
  executor_.wait(*this, sequence);
  return sequence;
}

void TaskQueue::wait(uint64_t sequence) { executor_.wait(*this, sequence); }

// Executors outlive static destruction: a late deleter may still reach them.
std::array<std::atomic<Executor*>, kMaxCores> executors;
std::mutex executors_mutex;

Executor& executor_of(int core) {
  check_internal(core >= 0 && core < kMaxCores, "no core {}: a process has at most {}", core, kMaxCores);
  std::lock_guard lock(executors_mutex);
  Executor* executor = executors[core].load();
  if (executor == nullptr) executors[core].store(executor = new Executor(core));
  return *executor;
}

}  // namespace

void set_wait_hooks(const WaitHooks* hooks) { wait_hooks.store(hooks, std::memory_order_release); }

bool inside_task() { return task_runs_here; }

Queue& create_queue(int core) {
  enter_runtime();
  return executor_of(core).add_queue();
}

void notify_queues(int core) {
  if (in_forked_child() || core < 0 || core >= kMaxCores) return;
  if (Executor* executor = executors[core].load()) executor->notify();
}

void shutdown_queues() {
  if (in_forked_child()) return;
  static std::once_flag once;
  std::call_once(once, [] {
    for (bool progressed = true; progressed;) {
      progressed = false;
      for (auto& executor : executors) {
        if (executor.load() != nullptr) progressed |= executor.load()->drain();
      }
    }
    for (auto& executor : executors) {
      if (executor.load() != nullptr) executor.load()->stop();
    }
  });
}

}  // namespace neuron::runtime
