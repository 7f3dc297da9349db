#include "neuron/eager/profile.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>

#include "neuron/base/error.h"
#include "neuron/eager/command.h"
#include "neuron/eager/kernel_store.h"

namespace neuron::eager {

std::atomic<bool> profiling_on{false};

namespace {

struct Rows {
  std::mutex mutex;
  std::unordered_map<const void*, KernelProfile> kernels;
  uint64_t needed_bytes = 0;
};

Rows& rows() {
  static auto* instance = new Rows();
  return *instance;
}

// Elements that are touched, each once: a broadcast dimension repeats them.
uint64_t touched_bytes(const Operand& operand) {
  if (operand.kind != codegen::OperandKind::Tensor || operand.low == operand.high) return 0;
  uint64_t count = 1;
  for (int d = 0; d < operand.rank; ++d) {
    if (operand.strides[d] != 0) count *= static_cast<uint64_t>(operand.sizes[d]);
  }
  return count * dtype_size(operand.dtype);
}

// Disjoint address ranges.
class Ranges {
 public:
  // Adds [low, high); returns how many of its bytes were not there.
  uint64_t add(const char* low, const char* high) {
    auto added = static_cast<uint64_t>(high - low);
    auto it = ranges_.upper_bound(low);
    if (it != ranges_.begin() && std::prev(it)->second >= low) --it;
    while (it != ranges_.end() && it->first <= high) {
      const char *from = std::max(it->first, low), *to = std::min(it->second, high);
      if (from < to) added -= static_cast<uint64_t>(to - from);
      low = std::min(low, it->first);
      high = std::max(high, it->second);
      it = ranges_.erase(it);
    }
    ranges_.emplace(low, high);
    return added;
  }

 private:
  std::map<const char*, const char*> ranges_;
};

struct Memory {
  Ranges known;    // read or written by the window
  Ranges written;  // by the window
  uint64_t read_bytes = 0, written_bytes = 0;
  bool dead = false;
};

}  // namespace

const char* not_fused_name(NotFused reason) {
  static constexpr const char* names[] = {"nothing_before",   "library_kernel", "different_space", "reduction_axis",
                                          "column_reduction", "hazard",         "region_full",     "fusion_off"};
  static_assert(std::size(names) == kNotFusedCount);
  return names[static_cast<int>(reason)];
}

ProfileCounters& profile_counters() {
  static auto* instance = new ProfileCounters();
  return *instance;
}

void set_profiling(bool on) { profiling_on.store(on, std::memory_order_relaxed); }

Profile profile() {
  Profile result;
  const ProfileCounters& from = profile_counters();
  for (int i = 0; i < kNotFusedCount; ++i) result.not_fused[i] = from.not_fused[i];
  result.plan_misses = from.plan_misses;
  result.seen_once = from.seen_once;
  result.awaiting_compile = from.awaiting_compile;
  result.pending_compiles = KernelStore::instance().pending();
  Rows& all = rows();
  std::lock_guard lock(all.mutex);
  result.needed_bytes = all.needed_bytes;
  for (const auto& [key, row] : all.kernels) result.kernels.push_back(row);
  auto slower = [](const KernelProfile& a, const KernelProfile& b) {
    return a.nanoseconds != b.nanoseconds ? a.nanoseconds > b.nanoseconds : a.name < b.name;
  };
  std::sort(result.kernels.begin(), result.kernels.end(), slower);
  return result;
}

void reset_profile() {
  ProfileCounters& to = profile_counters();
  for (auto& count : to.not_fused) count = 0;
  to.plan_misses = 0;
  to.seen_once = 0;
  to.awaiting_compile = 0;
  Rows& all = rows();
  std::lock_guard lock(all.mutex);
  all.needed_bytes = 0;
  all.kernels.clear();
}

void KernelWork::add_command(const Command& command) {
  ++commands_;
  labels_.emplace_back(command.name());
  for (const Operand& operand : std::span(command.operands, command.output_count + command.input_count))
    unfused_bytes_ += touched_bytes(operand);
}

void KernelWork::add_operand(const Operand& operand) { bytes_ += touched_bytes(operand); }

void KernelWork::run(const void* kernel, bool library, const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  const auto elapsed = std::chrono::steady_clock::now() - start;
  Rows& all = rows();
  std::lock_guard lock(all.mutex);
  auto [it, added] = all.kernels.try_emplace(kernel);
  KernelProfile& row = it->second;
  if (added) {
    row.library = library;
    for (size_t i = 0; i < labels_.size();) {
      size_t end = i + 1;
      while (end < labels_.size() && labels_[end] == labels_[i]) ++end;
      row.name += (i == 0 ? "" : "+") + labels_[i] + (end - i > 1 ? fmt::format(" x{}", end - i) : "");
      i = end;
    }
  }
  ++row.runs;
  row.commands += commands_;
  row.nanoseconds += static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count());
  row.bytes += bytes_;
  row.unfused_bytes += unfused_bytes_;
}

void profile_window(const Window& window) {
  std::map<std::pair<const runtime::Block*, uint64_t>, Memory> memory;
  auto touch = [&](const Command& command) {
    for (const Operand& input : command.inputs()) {
      if (touched_bytes(input) == 0) continue;
      Memory& of = memory[{input.block, input.generation}];
      // A strided operand's gaps are not read; overlapping strided views count each.
      const uint64_t fresh = of.known.add(input.low, input.high);
      of.read_bytes += std::min(fresh, touched_bytes(input));
    }
    for (const Operand& output : command.outputs()) {
      if (touched_bytes(output) == 0) continue;
      Memory& of = memory[{output.block, output.generation}];
      of.known.add(output.low, output.high);
      const uint64_t fresh = of.written.add(output.low, output.high);
      of.written_bytes += std::min(fresh, touched_bytes(output));
    }
  };
  for (const Command& command : window.commands) {
    for (uint32_t item = 0; item < command.items; ++item) touch(command.item(item));
  }
  for (const Death& death : window.deaths) {
    auto it = memory.find({death.block, death.generation});
    if (it != memory.end()) it->second.dead = true;
  }
  uint64_t needed = 0;
  for (const auto& [block, of] : memory) needed += of.read_bytes + (of.dead ? 0 : of.written_bytes);
  Rows& all = rows();
  std::lock_guard lock(all.mutex);
  all.needed_bytes += needed;
}

}  // namespace neuron::eager
