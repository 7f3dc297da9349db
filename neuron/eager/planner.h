// Planning a window: hazards between commands on exact address ranges, the writes nobody will read, and the regions.
//
// Regions run in the order of their index. A command joins region R only if everything it depends on (read after write,
// write after read, write after write) lies in regions <= R, and every dependence inside R connects the same element at
// the same address (equal layout hashes), so that it can be a value instead of memory. Which commands share a region is
// a function of the window's commands alone.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "neuron/eager/canonical.h"
#include "neuron/eager/profile.h"

namespace neuron::eager {

// Where an input of a region command comes from.
struct Source {
  int32_t command = -1;  // producing command of the same region, or -1: memory, scalar or index
  int32_t output = -1;
};

struct PlannedCommand {
  const Command* command = nullptr;
  int32_t region = -1;
  CanonicalCommand canonical;      // region commands only
  SmallVector<Source, 4> sources;  // one per input
  // Per output: must it be written to memory?
  SmallVector<bool, 4> stored;
};

struct Region {
  SmallVector<int32_t, 8> commands;
  bool fusible = false;
  bool has_alias = false;                    // an output is also an input at the same address
  NotFused alone = NotFused::NothingBefore;  // why its first command joined no earlier region
  codegen::Reduction reduction = codegen::Reduction::None;
  int64_t numel = 0;
  int operands = 0;
  // Suffix products at which the merged spaces have a dimension boundary, ascending, without 1 and numel.
  SmallVector<int64_t, kMaxRank> boundaries;
  // Inner: reduced size. Outer: reduced size and the size of the kept dimension inside it.
  int64_t reduced_size = 0, inner_size = 0;
};

struct Plan {
  std::vector<PlannedCommand> commands;
  std::vector<Region> regions;
};

class Planner {
 public:
  // Replaces `plan`. `fusion` off: a region per command.
  void plan(const Window& window, bool fusion, Plan& plan);

 private:
  struct Access {
    char *low, *high;
    uint64_t layout;
    int32_t command, operand;  // operand: output index for a write, input index for a read
    int32_t region;
    int32_t covered_floor;  // newest region of the accesses that this write replaced in the list
    DType dtype;
    bool is_write;
    bool dense;      // the range has no holes
    bool forwarded;  // a read that took the value of an earlier command, not memory
  };
  struct BlockEntry {
    uint64_t generation;
    char *low, *high;
    int32_t floor;  // smallest region for any later access
    std::vector<Access> accesses;
    std::vector<std::pair<int32_t, int32_t>> writes;  // (command, output) of this generation
    std::vector<int32_t> overlapping;                 // entries of other blocks on the same addresses
  };
  struct Dependence {
    int32_t region = 0;  // smallest region the command may be in
    int32_t share = -1;  // newest region that reads one of its inputs from memory in the same layout
    bool bound = false;  // by a command of that region, not by a barrier before it
  };

  int32_t entry_of(const Operand& operand);
  void find_overlapping_entries(int32_t index);
  template <typename F>
  void for_each_overlap(int32_t entry, const Operand& operand, F&& body);
  Dependence dependences(Plan& plan, int32_t index);
  bool try_join(Plan& plan, int32_t index, int32_t region);
  bool join_any(Plan& plan, int32_t index, const Dependence& dependence);
  bool can_join(const Plan& plan, int32_t index, int32_t region);
  void record_accesses(Plan& plan, int32_t index, bool fused_command);
  void apply_death(Plan& plan, const Death& death);
  void place(Plan& plan, int32_t index, bool fusion);

  static uint64_t pack(int32_t command, int32_t output) {
    return static_cast<uint64_t>(command) << 32 | static_cast<uint32_t>(output);
  }

  // Writes that another region reads from memory.
  std::unordered_set<uint64_t> needed_writes_;
  std::vector<BlockEntry> entries_;
  size_t entry_count_ = 0;
  std::unordered_map<const void*, int32_t> entry_index_;
  int32_t minimum_region_ = 0;
  NotFused refusal_ = NotFused::NothingBefore;  // of the last can_join()
};

}  // namespace neuron::eager
