// Executes one window: plans it, then runs its regions in order. One per stream, used by one thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "neuron/eager/expansion.h"
#include "neuron/eager/kernel_store.h"
#include "neuron/eager/planner.h"
#include "neuron/eager/prepared_window.h"
#include "neuron/eager/region_emitter.h"

namespace neuron::eager {

class Stream;

class RegionRunner {
 public:
  explicit RegionRunner(Stream& stream) : stream_(stream) {}
  // Failures become late errors of the commands.
  void run(Window& window) noexcept;
  // A captured graph: plans a window and compiles its kernels without running it, and runs it from there.
  std::unique_ptr<PreparedWindow> prepare(Window& window, bool fusing);
  void run_prepared(const PreparedWindow& prepared, Window& window) noexcept {
    window_ = &window;
    replay(prepared, window);
  }

 private:
  void replay(const PreparedWindow& prepared, const Window& window);
  void replay_region(const PreparedRegion& region, const Window& window);
  bool any_blocked(const PreparedRegion& region, const Window& window) const;
  void replan_region(const PreparedWindow& prepared, const PreparedRegion& region, const Window& window);
  void run_region(const Plan& plan, const Region& region) noexcept;
  void run_commands(const Plan& plan, const Region& region);
  void prepare_region(const Plan& plan, const Region& region);
  // Binds the emitter to a region of several commands; returns the bound on its threads.
  int bind_fused(const Plan& plan, const Region& region);
  void bind_single(const RegionCommand& command);
  // Adds the region that the emitter has bound to the window being prepared.
  void prepare_bound(std::span<const int32_t> commands, KernelStore::Entry& entry, int threads);
  // Adds a command that is no region: a library kernel or a callback.
  void prepare_whole(int32_t command);
  void run_fused(const Plan& plan, const Region& region);
  void run_single(const PlannedCommand& planned, char* const* data, int32_t index);
  void run_unfused(const Plan& plan, const Region& region);
  void run_kernel(const Command& command);
  void run_callback(const Command& command);
  void profile_whole(const Command& command, const void* key, const std::function<void()>& body);
  void count_not_fused();
  void execute(std::span<const RegionCommand> commands, KernelStore::Entry& entry, int threads);
  KernelStore::Entry& find_entry();
  // Calls body, unless an input of the command has no value; a failure becomes the command's late error.
  template <typename F>
  void guarded(const Command& command, F&& body);
  // In a catch block: none of the commands has written anything. What a plan would keep of this window is not complete.
  template <typename Commands, typename F>
  void fail_all(const Commands& commands, F&& command_of);

  Stream& stream_;
  Window* window_ = nullptr;  // as recorded; the plan is of its expansion
  Expansion expansion_;
  Planner planner_;
  Plan plan_;
  const Window* planned_ = nullptr;  // what plan_ is of
  RegionEmitter emitter_;
  SignatureBuilder signatures_;
  PreparedWindows prepared_windows_;
  std::unique_ptr<PreparedWindow> preparing_;  // null: this window is not being prepared
  std::vector<void*> pointers_;
  std::vector<uint64_t> scalars_;
  std::vector<kernels::TensorView> output_views_, input_views_;
  std::vector<RegionCommand> commands_;
  std::vector<Source> sources_;
  std::vector<int32_t> local_index_;
  std::unordered_map<std::string, KernelStore::Entry*>
      entries_;  // the store's entries this stream has met, without its lock
};

}  // namespace neuron::eager
