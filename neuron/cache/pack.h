// A pack: many entries in one read-only file that is mapped, shipped with the package so that first uses compile
// nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "neuron/cache/entry.h"

namespace neuron::cache {

class Pack {
 public:
  // Null, with one log line, when the file is damaged, of another format or of another build; null when there is none.
  static std::unique_ptr<Pack> open(const std::string& path, std::string_view build);
  // The same without the log line: `reason` says why it is null, and stays empty when there is no file.
  static std::unique_ptr<Pack> open(const std::string& path, std::string_view build, std::string& reason);

  // Any thread. The bytes are those of the mapping, which the blob keeps alive.
  std::optional<Blob> find(std::string_view key) const;
  size_t size() const { return count_; }

 private:
  struct IndexEntry;
  Pack() = default;

  std::shared_ptr<const void> mapping_;
  std::string_view text_;
  const IndexEntry* index_ = nullptr;
  size_t count_ = 0;
  std::string path_, build_;
};

// Writes the entries (key, bytes) of a build, replacing the file at once. Throws Error(Runtime) when the file cannot be
// written. Of equal keys the last counts.
void write_pack(const std::string& path, std::string_view build,
                std::span<const std::pair<std::string, std::string>> entries);

}  // namespace neuron::cache
