// The store of compiled programs: content-addressed, in memory, in packs shipped with the package, and on disk. A key
// is everything the bytes depend on (graph, dtypes, layouts, target, flags); the build of the package is added here.
//
// Any thread, several processes on one directory. Nothing fails because of the disk.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "neuron/base/function_ref.h"
#include "neuron/cache/disk_store.h"
#include "neuron/cache/entry.h"
#include "neuron/cache/pack.h"

namespace neuron::cache {

struct Settings {
  std::string directory;  // empty: memory and packs only
  int64_t disk_limit = int64_t{1} << 30;
  size_t memory_limit = size_t{64} << 20;
  std::string build;
  std::vector<std::string> packs;  // files, consulted in this order before the directory; missing ones do not matter
};

struct Statistics {
  uint64_t memory_hits = 0, pack_hits = 0, disk_hits = 0, misses = 0, created = 0;
  uint64_t damaged = 0, evicted = 0;  // on disk
};

class Cache {
 public:
  explicit Cache(Settings settings);

  std::optional<Blob> find(std::string_view key);
  void put(std::string_view key, std::string bytes);

  // The bytes of the key, made by create() when they are nowhere. Threads that ask for one key at a time wait for one
  // create(); its exception reaches them all and leaves nothing behind. create() must not ask for the same key. No lock
  // is held while it runs.
  Blob get_or_create(std::string_view key, FunctionRef<std::string()> create);

  Statistics statistics() const;
  void clear_memory();

 private:
  struct Kept {
    std::string key;
    Blob blob;
  };
  struct Flight;

  std::optional<Blob> find_in_memory(const std::string& key);
  std::optional<Blob> find_stored(const std::string& key);
  void keep(const std::string& key, const Blob& blob);

  const Settings settings_;
  std::vector<std::unique_ptr<Pack>> packs_;
  std::unique_ptr<DiskStore> disk_;
  mutable std::mutex mutex_;  // guards what follows
  std::list<Kept> kept_;      // most recently used first
  std::unordered_map<std::string_view, std::list<Kept>::iterator> by_key_;
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;
  size_t kept_bytes_ = 0;
  Statistics statistics_;
};

// The settings of the environment (TORCH_NEURONX_CACHE_DIR and its relatives), with the pack beside the library.
Settings environment_settings();

// The cache of this process, opened with them on the first call. Never destroyed.
Cache& process_cache();

}  // namespace neuron::cache
