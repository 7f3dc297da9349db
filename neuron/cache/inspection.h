// What lies in a cache directory and in a pack, for people: nothing is changed, and nothing is created.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neuron/cache/cache.h"

namespace neuron::cache {

struct DirectoryReport {
  std::string path;  // empty: no directory is used
  bool exists = false;
  bool writable = false;  // a first write would succeed, as far as permissions tell
  std::string obstacle;   // why it is not: "Permission denied"
  uint64_t entries = 0, bytes = 0;
  uint64_t read = 0;                       // entries that were read and checked; the others were counted
  uint64_t other_builds = 0;               // read entries of another build: never used, evicted in time
  uint64_t temporary = 0;                  // being written, or left by a process that was killed
  uint64_t damaged = 0;                    // read entries that fail their checks
  std::vector<std::string> damaged_files;  // the first few
  int64_t limit = 0;                       // bytes; the least recently used go beyond it
  int64_t free_bytes = -1;                 // of the file system; -1 when it cannot be told
};

struct PackReport {
  std::string path;
  std::string state;  // "good", "missing", or why it is not used
  uint64_t entries = 0;
};

// Reads the entries it meets first, at most so many: their names are hashes, so these are a fair sample.
DirectoryReport inspect_directory(const Settings& settings, uint64_t most_read = 4096);
std::vector<PackReport> inspect_packs(const Settings& settings);

}  // namespace neuron::cache
