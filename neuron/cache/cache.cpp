#include "neuron/cache/cache.h"

#include <condition_variable>
#include <exception>

namespace neuron::cache {

// One create() under way.
struct Cache::Flight {
  std::mutex mutex;
  std::condition_variable landed;
  bool done = false;
  Blob blob;
  std::exception_ptr error;

  void land(Blob result, std::exception_ptr failure) {
    std::lock_guard lock(mutex);
    done = true;
    blob = std::move(result);
    error = std::move(failure);
    landed.notify_all();
  }
  Blob wait() {
    std::unique_lock lock(mutex);
    landed.wait(lock, [&] { return done; });
    if (error) std::rethrow_exception(error);
    return blob;
  }
};

Cache::Cache(Settings settings) : settings_(std::move(settings)) {
  for (const std::string& path : settings_.packs) {
    if (auto pack = Pack::open(path, settings_.build)) packs_.push_back(std::move(pack));
  }
  if (!settings_.directory.empty()) {
    disk_ = std::make_unique<DiskStore>(settings_.directory, settings_.disk_limit, settings_.build);
  }
}

std::optional<Blob> Cache::find_in_memory(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  kept_.splice(kept_.begin(), kept_, found->second);
  ++statistics_.memory_hits;
  return found->second->blob;
}

std::optional<Blob> Cache::find_stored(const std::string& key) {
  for (const auto& pack : packs_) {
    if (auto blob = pack->find(key)) {
      std::lock_guard lock(mutex_);
      ++statistics_.pack_hits;
      return blob;  // mapped already: not kept a second time
    }
  }
  std::optional<Blob> blob = disk_ ? disk_->find(key) : std::nullopt;
  std::lock_guard lock(mutex_);
  if (blob) {
    ++statistics_.disk_hits;
    keep(key, *blob);
  } else {
    ++statistics_.misses;
  }
  return blob;
}

// Called with the lock held.
void Cache::keep(const std::string& key, const Blob& blob) {
  const size_t size = key.size() + blob.bytes.size();
  if (size > settings_.memory_limit) return;
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    const auto old = found->second;
    kept_bytes_ -= old->key.size() + old->blob.bytes.size();
    by_key_.erase(found);
    kept_.erase(old);
  }
  kept_.push_front({key, blob});
  by_key_.emplace(kept_.front().key, kept_.begin());
  kept_bytes_ += size;
  while (kept_bytes_ > settings_.memory_limit) {
    const Kept& last = kept_.back();
    kept_bytes_ -= last.key.size() + last.blob.bytes.size();
    by_key_.erase(last.key);
    kept_.pop_back();
  }
}

std::optional<Blob> Cache::find(std::string_view wanted) {
  const std::string key(wanted);
  {
    std::lock_guard lock(mutex_);
    if (auto blob = find_in_memory(key)) return blob;
  }
  return find_stored(key);
}

void Cache::put(std::string_view key, std::string bytes) {
  const Blob blob = make_blob(std::move(bytes));
  {
    std::lock_guard lock(mutex_);
    keep(std::string(key), blob);
  }
  if (disk_) disk_->put(key, blob.bytes);
}

Blob Cache::get_or_create(std::string_view wanted, FunctionRef<std::string()> create) {
  const std::string key(wanted);
  std::shared_ptr<Flight> flight;
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    if (auto blob = find_in_memory(key)) return *blob;
    auto& entry = flights_[key];
    first = entry == nullptr;
    if (first) entry = std::make_shared<Flight>();
    flight = entry;
  }
  if (!first) return flight->wait();

  Blob blob;
  std::exception_ptr error;
  try {
    if (auto stored = find_stored(key)) {
      blob = *stored;
    } else {
      blob = make_blob(create());
      {
        std::lock_guard lock(mutex_);
        ++statistics_.created;
        keep(key, blob);
      }
      if (disk_) disk_->put(key, blob.bytes);
    }
  } catch (...) {
    error = std::current_exception();
  }
  {
    std::lock_guard lock(mutex_);
    flights_.erase(key);
  }
  flight->land(blob, error);
  if (error) std::rethrow_exception(error);
  return blob;
}

Statistics Cache::statistics() const {
  std::lock_guard lock(mutex_);
  Statistics result = statistics_;
  if (disk_) {
    result.damaged = disk_->damaged_entries();
    result.evicted = disk_->evicted_entries();
  }
  return result;
}

void Cache::clear_memory() {
  std::lock_guard lock(mutex_);
  by_key_.clear();
  kept_.clear();
  kept_bytes_ = 0;
}

}  // namespace neuron::cache
