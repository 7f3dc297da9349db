// What the eager layer did, in detail: why commands were not fused (always counted), and per kernel how often it ran,
// how long it took and what it moved (only while profiling is on: one load per kernel otherwise).
//
// Threads: any. Counting is done by executor threads; profile() may be called at any time and sees what has run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace neuron::eager {

struct Command;
struct Operand;
struct Window;

// Why a command that can be fused runs alone.
enum class NotFused : uint8_t {
  NothingBefore,    // first of its window, or behind a barrier, and nothing later joined it
  LibraryKernel,    // what it depends on is a library kernel (a matrix product, an index)
  DifferentSpace,   // another number of elements, or dimensions that do not divide each other
  ReductionAxis,    // both reduce, over different dimensions
  ColumnReduction,  // it reads the result of a reduction over outer dimensions
  Hazard,           // the same memory in another layout or dtype
  RegionFull,       // the region has as many commands or operands as a kernel takes
  FusionOff,        // immediate, blocking or deterministic mode
};
inline constexpr int kNotFusedCount = static_cast<int>(NotFused::FusionOff) + 1;
const char* not_fused_name(NotFused reason);

struct KernelProfile {
  std::string name;      // operators of a generated kernel ("add+mul x2"), or the library kernel's
  bool library = false;  // library kernels and foreign functions
  uint64_t runs = 0, commands = 0, nanoseconds = 0;
  uint64_t bytes = 0;          // read and written, each operand once
  uint64_t unfused_bytes = 0;  // what its commands would have moved one by one
};

struct Profile {
  uint64_t not_fused[kNotFusedCount] = {};
  uint64_t plan_misses = 0;       // windows that had to be planned
  uint64_t seen_once = 0;         // commands of regions that ran unfused because they had not come back yet
  uint64_t awaiting_compile = 0;  // commands of regions that ran unfused while their kernel was being compiled
  uint64_t pending_compiles = 0;  // now
  uint64_t needed_bytes = 0;      // while profiling: what the windows had to move, had each been one kernel
  std::vector<KernelProfile> kernels;
};
Profile profile();
void reset_profile();
void set_profiling(bool on);

extern std::atomic<bool> profiling_on;
inline bool profiling() { return profiling_on.load(std::memory_order_relaxed); }

// Counters of the executor threads.
struct ProfileCounters {
  std::atomic<uint64_t> not_fused[kNotFusedCount] = {};
  std::atomic<uint64_t> plan_misses{0}, seen_once{0}, awaiting_compile{0};
};
ProfileCounters& profile_counters();

// One kernel's work. `kernel` identifies it.
class KernelWork {
 public:
  void add_command(const Command& command);  // of a fused kernel, in order
  void add_operand(const Operand& operand);  // of the kernel itself
  // Runs `body` and books it.
  void run(const void* kernel, bool library, const std::function<void()>& body);

 private:
  std::vector<std::string> labels_;
  uint64_t bytes_ = 0, unfused_bytes_ = 0, commands_ = 0;
};

// Adds a window to needed_bytes.
void profile_window(const Window& window);

}  // namespace neuron::eager
