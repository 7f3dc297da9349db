// Entries as files of one directory that processes share. A file appears complete, by renaming: a reader never sees one
// being written, and a process that dies while writing leaves a temporary file that a later clean-up removes. No call
// fails because of the disk: what cannot be read is a miss, what cannot be written stays unwritten, and the first such
// event is logged.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "neuron/cache/entry.h"

namespace neuron::cache {

// What a file in one of the directory's folders is, by its name.
bool is_entry_name(std::string_view name);
bool is_temporary_name(std::string_view name);

class DiskStore {
 public:
  // Nothing is created before the first write.
  DiskStore(std::string directory, int64_t limit_bytes, std::string build);

  // Any thread.
  std::optional<Blob> find(std::string_view key);
  void put(std::string_view key, std::string_view bytes);

  uint64_t damaged_entries() const { return damaged_.load(std::memory_order_relaxed); }
  uint64_t evicted_entries() const { return evicted_.load(std::memory_order_relaxed); }

 private:
  std::string path_of(std::string_view key) const;
  bool write_file(const std::string& path, std::string_view text);
  void report_failure(const char* what, const std::string& path, int error);
  void enforce_limit();

  const std::string directory_;
  const int64_t limit_;
  const std::string build_;
  std::atomic<bool> writable_{true}, failure_reported_{false};
  std::atomic<uint64_t> damaged_{0}, evicted_{0};
  std::mutex size_mutex_;
  bool scanned_ = false;  // guarded by size_mutex_, as the rest
  int64_t estimated_size_ = 0;
  int64_t unscanned_ = 0;  // written since the last look at the directory
};

}  // namespace neuron::cache
