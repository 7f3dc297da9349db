#include "neuron/eager/kernel_store.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "neuron/base/error.h"
#include "neuron/cache/cache.h"
#include "neuron/eager/settings.h"
#include "neuron/passes/pipeline.h"

namespace neuron::eager {

struct KernelStore::Entry {
  explicit Entry(std::string name) : key(std::move(name)) {}
  std::string key;
  std::atomic<const codegen::Executable*> ready{nullptr};
  std::shared_ptr<const codegen::Executable> owner;
  std::mutex mutex;  // held while compiling
  std::atomic<int> sightings{0};
  std::atomic<bool> queued{false}, looked_up{false};
  std::shared_ptr<const codegen::RegionSpec> spec;
};

namespace {

struct Background {
  std::mutex mutex;
  std::condition_variable wake, idle;
  std::deque<std::function<void()>> work;
  bool running = false, busy = false, stop = false;
  std::thread thread;

  void submit(std::function<void()> job) {
    std::lock_guard lock(mutex);
    if (stop) return;
    work.push_back(std::move(job));
    if (!running) {
      try {
        thread = std::thread([this] { loop(); });
        running = true;
      } catch (const std::system_error&) {
        return;  // no thread to be had now; what is waiting is compiled when a later request starts one
      }
    }
    wake.notify_one();
  }

  void loop() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return stop || !work.empty(); });
      if (stop) return;
      auto job = std::move(work.front());
      work.pop_front();
      busy = true;
      lock.unlock();
      job();
      lock.lock();
      busy = false;
      if (work.empty()) idle.notify_all();
    }
  }
};

Background& background() {
  static Background* instance = new Background();
  return *instance;
}

struct Table {
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<KernelStore::Entry>> entries;
};

Table& table() {
  static Table* instance = new Table();
  return *instance;
}

}  // namespace

KernelStore& KernelStore::instance() {
  static KernelStore* store = new KernelStore();
  return *store;
}

KernelStore::Entry& KernelStore::entry(const std::string& key) {
  Table& all = table();
  {
    std::shared_lock lock(all.mutex);
    auto it = all.entries.find(key);
    if (it != all.entries.end()) return *it->second;
  }
  std::unique_lock lock(all.mutex);
  auto& slot = all.entries[key];
  if (!slot) slot = std::make_unique<Entry>(key);
  return *slot;
}

const codegen::Executable* KernelStore::ready(const Entry& entry) {
  return entry.ready.load(std::memory_order_acquire);
}

namespace {

std::atomic<bool> specs_are_kept{false};

// What the bytes of a kernel depend on beside the build: the region and the instruction set.
std::string cache_key(const std::string& region, codegen::HostTarget target) {
  return std::string("region ") + codegen::host_target_name(target) + '\n' + region;
}
std::string cache_key(const std::string& region) { return cache_key(region, codegen::detected_host_target()); }

std::shared_ptr<const codegen::Executable> load_bytes(std::string_view bytes) {
  try {
    return codegen::host_compiler().load(std::string(bytes));
  } catch (const Error&) {
    return nullptr;  // of another build or target: compiled anew and replaced
  }
}

}  // namespace

const codegen::Executable* KernelStore::load(Entry& entry) {
  // What comes from a pack or a disk has no graph.
  if (entry.looked_up.load(std::memory_order_relaxed) || specs_are_kept) return ready(entry);
  std::lock_guard lock(entry.mutex);
  if (entry.looked_up.exchange(true) || entry.owner) return ready(entry);
  if (auto blob = cache::process_cache().find(cache_key(entry.key))) {
    entry.owner = load_bytes(blob->bytes);
    if (entry.owner) {
      counters().disk_hits += 1;
      entry.ready.store(entry.owner.get(), std::memory_order_release);
    }
  }
  return ready(entry);
}

const codegen::Executable& KernelStore::compile(Entry& entry, const std::function<codegen::RegionSpec()>& build) {
  if (const codegen::Executable* known = load(entry)) return *known;
  std::lock_guard lock(entry.mutex);
  if (!entry.owner) {
    auto start = std::chrono::steady_clock::now();
    codegen::RegionSpec spec = build();
    spec.graph = std::make_shared<ir::Graph>(passes::run_pipeline(*spec.graph));
    entry.owner = codegen::host_compiler().compile(spec);
    if (specs_are_kept) entry.spec = std::make_shared<codegen::RegionSpec>(spec);
    auto elapsed = std::chrono::steady_clock::now() - start;
    counters().compiled_kernels += 1;
    counters().compile_nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count();
    std::string bytes = entry.owner->serialize();
    if (!bytes.empty()) cache::process_cache().put(cache_key(entry.key), std::move(bytes));
    entry.ready.store(entry.owner.get(), std::memory_order_release);
  }
  return *entry.owner;
}

void KernelStore::keep_specs() { specs_are_kept = true; }

std::vector<std::pair<std::string, std::string>> KernelStore::stored_kernels(codegen::HostTarget target) {
  std::vector<std::pair<std::string, std::string>> result;
  Table& all = table();
  std::shared_lock lock(all.mutex);
  for (const auto& [key, entry] : all.entries) {
    std::lock_guard held(entry->mutex);
    if (!entry->owner || !entry->spec) continue;
    const auto kernel = codegen::host_compiler().compile_for(*entry->spec, target);
    result.emplace_back(cache_key(key, target), kernel->serialize());
  }
  return result;
}

bool KernelStore::request(Entry& entry, const std::function<codegen::RegionSpec()>& build) {
  if (entry.sightings.fetch_add(1) < 1) return false;
  if (entry.queued.exchange(true)) return true;
  auto spec = std::make_shared<codegen::RegionSpec>(build());
  background().submit([this, &entry, spec] {
    try {
      compile(entry, [&] { return *spec; });
    } catch (const std::exception&) {
      // The unfused commands keep running; a compile that someone waits for will raise the same error.
    }
  });
  return true;
}

std::shared_ptr<const codegen::RegionSpec> KernelStore::spec(Entry& entry,
                                                             const std::function<codegen::RegionSpec()>& build) {
  std::lock_guard lock(entry.mutex);
  if (!entry.spec) entry.spec = std::make_shared<codegen::RegionSpec>(build());
  return entry.spec;
}

void KernelStore::wait_for_background() {
  Background& work = background();
  std::unique_lock lock(work.mutex);
  work.idle.wait(lock, [&] { return work.stop || (work.work.empty() && !work.busy); });
}

size_t KernelStore::pending() {
  Background& work = background();
  std::lock_guard lock(work.mutex);
  return work.work.size() + (work.busy ? 1 : 0);
}

void KernelStore::shutdown() {
  Background& work = background();
  {
    std::lock_guard lock(work.mutex);
    work.stop = true;
    work.work.clear();
  }
  work.wake.notify_all();
  work.idle.notify_all();
  if (work.thread.joinable()) work.thread.join();
}

}  // namespace neuron::eager
