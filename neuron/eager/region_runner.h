// Executes one window: plans it, then runs its regions in order. One per stream, used by one thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "neuron/eager/kernel_store.h"
#include "neuron/eager/planner.h"
#include "neuron/eager/region_emitter.h"

namespace neuron::eager {

class Stream;

class RegionRunner {
 public:
  explicit RegionRunner(Stream& stream) : stream_(stream) {}
  void run(Window& window);

 private:
  void run_region(const Plan& plan, const Region& region);
  void run_fused(const Plan& plan, const Region& region);
  void run_single(const PlannedCommand& planned, char* const* data);
  void run_unfused(const Plan& plan, const Region& region);
  void run_kernel(const Command& command);
  void run_callback(const Command& command);
  void execute(std::span<const RegionCommand> commands, KernelStore::Entry& entry, int threads);
  KernelStore::Entry& find_entry();
  // Calls body; a failure becomes the stream's late error and poisons the command's outputs.
  template <typename F>
  void guarded(const Command& command, F&& body);

  Stream& stream_;
  Window* window_ = nullptr;
  Planner planner_;
  Plan plan_;
  RegionEmitter emitter_;
  std::vector<RegionCommand> commands_;
  std::vector<Source> sources_;
  std::vector<int32_t> local_index_;
  std::unordered_map<std::string, KernelStore::Entry*>
      entries_;  // the store's entries this stream has met, without its lock
};

}  // namespace neuron::eager
