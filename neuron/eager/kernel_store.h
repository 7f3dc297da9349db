// Compiled regions by key: in memory, on disk, and being compiled. Callers: executor threads. A kernel is compiled
// once; compile() blocks, request() hands the work to a background thread that starts on its first use.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "neuron/codegen/region.h"

namespace neuron::eager {

class KernelStore {
 public:
  static KernelStore& instance();

  // What is known about a key. Entries live for the whole process; `executable` is set once.
  struct Entry;

  Entry& entry(const std::string& key);
  // Null until compiled.
  static const codegen::Executable* ready(const Entry& entry);
  // Null unless compiled or stored by an earlier process; looks on disk once.
  const codegen::Executable* load(Entry& entry);
  // Compiles now (or waits for a compile under way) from the graph that `build` gives.
  const codegen::Executable& compile(Entry& entry, const std::function<codegen::RegionSpec()>& build);
  // Counts one more sighting of a region; from the second on its compile runs in the background. False: only counted.
  bool request(Entry& entry, const std::function<codegen::RegionSpec()>& build);
  // The graph of an entry, for the interpreter: kept only while interpreting.
  std::shared_ptr<const codegen::RegionSpec> spec(Entry& entry, const std::function<codegen::RegionSpec()>& build);

  // For writing a pack: remembers the graphs of what is compiled from now on (everything is, stored or not), then gives
  // key and bytes of each for any instruction set, whether or not this processor can run it.
  void keep_specs();
  std::vector<std::pair<std::string, std::string>> stored_kernels(codegen::HostTarget target);

  void wait_for_background();
  // Compiles that are waiting or under way in the background.
  size_t pending();
  void shutdown();
};

}  // namespace neuron::eager
