#include "neuron/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>

#include "neuron/base/futex.h"
#include "neuron/base/native_thread.h"

namespace neuron {
namespace {

constexpr int kMaxParts = 256;
constexpr int kSpinMicroseconds = 30;

// One call of parallel_for, on its caller's stack. A worker's last access to it is the decrement of `pending`.
struct Job {
  Job(FunctionRef<void(int64_t, int64_t)> job_body, int64_t items, int part_count)
      : body(job_body), count(items), parts(part_count) {}

  FunctionRef<void(int64_t, int64_t)> body;
  int64_t count;
  int parts;
  std::atomic<uint32_t> pending{0};  // parts given to workers and not done; the top bit: the caller sleeps on this word
  std::mutex error_mutex;
  std::exception_ptr error;
  int error_part = kMaxParts;

  // Part `part` of the static partition: sizes differ by at most one.
  void run(int part) {
    const int64_t share = count / parts, rest = count % parts;
    const int64_t begin = part * share + std::min<int64_t>(part, rest);
    try {
      body(begin, begin + share + (part < rest ? 1 : 0));
    } catch (...) {
      // Of several failures the one of the lowest part is kept, whichever thread was quickest.
      std::lock_guard lock(error_mutex);
      if (part < error_part) {
        error_part = part;
        error = std::current_exception();
      }
    }
  }
};

constexpr uint32_t kCallerSleeps = 1u << 31;

// A part offered to a worker. It lives on the caller's stack until the part is done, and its address tells offers
// apart.
struct Offer {
  Job* job;
  int part;
};

Offer busy_marker;

struct alignas(64) Worker {
  std::atomic<Offer*> offer{nullptr};  // null: free; &busy_marker: at work; otherwise waiting to be taken
  std::atomic<uint32_t> asleep{0};
};

thread_local bool inside_parallel = false;

class Pool {
 public:
  void run(Job& job, int wanted_workers);

 private:
  int start_workers(int wanted);
  static void work(Worker& worker);

  std::atomic<int> started_{0};
  std::mutex start_mutex_;
  Worker workers_[kMaxParts - 1];
};

void Pool::work(Worker& worker) {
  inside_parallel = true;
  for (;;) {
    Offer* offer = worker.offer.load();
    if (offer == nullptr) {
      if (spin_until(kSpinMicroseconds, [&] { return worker.offer.load(std::memory_order_relaxed) != nullptr; }))
        continue;
      worker.asleep.store(1);
      if (worker.offer.load() == nullptr) futex_wait(worker.asleep, 1);
      worker.asleep.store(0);
      continue;
    }
    // The caller may have taken the part back. Once it is ours the caller waits for it, so the offer can be read.
    if (!worker.offer.compare_exchange_strong(offer, &busy_marker)) continue;
    Job& job = *offer->job;
    job.run(offer->part);
    worker.offer.store(nullptr);
    if (job.pending.fetch_sub(1) == (kCallerSleeps | 1)) futex_wake_one(&job.pending);
  }
}

int Pool::start_workers(int wanted) {
  std::lock_guard lock(start_mutex_);
  int started = started_.load();
  try {
    for (; started < wanted; ++started) {
      Worker& worker = workers_[started];
      start_thread("neuron-pool-" + std::to_string(started), [&worker] { work(worker); }).detach();
    }
  } catch (const std::system_error&) {
    // Fewer threads give the same results: the caller runs what nobody takes.
  }
  started_.store(started);
  return started;
}

void Pool::run(Job& job, int wanted_workers) {
  int workers = started_.load();
  if (workers < wanted_workers) workers = start_workers(wanted_workers);

  // Part p goes to worker p - 1 when it is free, so that repeated loops find their data in the same caches.
  Offer offers[kMaxParts];
  uint8_t taker[kMaxParts];
  int offered = 1;  // the next part to give away; part 0 is the caller's
  for (int w = 0; w < workers && offered < job.parts; ++w) {
    Worker& worker = workers_[w];
    Offer* expected = nullptr;
    if (worker.offer.load(std::memory_order_relaxed) != nullptr) continue;
    offers[offered] = {&job, offered};
    job.pending.fetch_add(1);
    if (!worker.offer.compare_exchange_strong(expected, &offers[offered])) {
      job.pending.fetch_sub(1);
      continue;
    }
    if (worker.asleep.exchange(0) != 0) futex_wake_one(&worker.asleep);
    taker[offered++] = static_cast<uint8_t>(w);
  }

  job.run(0);
  for (int part = offered; part < job.parts; ++part) job.run(part);
  // Parts no worker has begun yet are taken back: a thread the system does not schedule delays nobody.
  for (int part = offered - 1; part >= 1; --part) {
    Offer* mine = &offers[part];
    if (workers_[taker[part]].offer.compare_exchange_strong(mine, nullptr)) {
      job.run(part);
      job.pending.fetch_sub(1);
    }
  }
  if (spin_until(kSpinMicroseconds, [&] { return job.pending.load() == 0; })) return;
  uint32_t pending = job.pending.fetch_or(kCallerSleeps) | kCallerSleeps;
  while (pending != kCallerSleeps) {
    futex_wait(job.pending, pending);
    pending = job.pending.load();
  }
}

std::atomic<Pool*> current_pool{nullptr};

// The pool lives until the process ends: workers may be asleep in it while static objects are destroyed.
Pool& pool() {
  if (Pool* existing = current_pool.load()) return *existing;
  static std::once_flag registered;
  // In a forked child no worker exists and locks may be held by nobody: it starts with a new pool.
  std::call_once(registered, [] { pthread_atfork(nullptr, nullptr, [] { current_pool.store(nullptr); }); });
  auto fresh = std::make_unique<Pool>();
  Pool* expected = nullptr;
  if (current_pool.compare_exchange_strong(expected, fresh.get())) return *fresh.release();
  return *expected;
}

}  // namespace

void parallel_for(int threads, int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  const int64_t most = std::min<int64_t>({threads, kMaxParts, count / std::max<int64_t>(grain, 1)});
  if (most <= 1 || inside_parallel) {
    body(0, count);
    return;
  }
  Job job(body, count, static_cast<int>(most));
  inside_parallel = true;
  pool().run(job, job.parts - 1);
  inside_parallel = false;
  if (job.error) std::rethrow_exception(job.error);
}

int hardware_threads() {
  static const int count = [] {
    for (int capacity = 1024; capacity <= 1 << 20; capacity *= 2) {
      cpu_set_t* set = CPU_ALLOC(capacity);
      const size_t size = CPU_ALLOC_SIZE(capacity);
      const int found = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
      CPU_FREE(set);
      if (found > 0) return found;
    }
    return 1;
  }();
  return count;
}

}  // namespace neuron
