#include "neuron/eager/planner.h"

#include <algorithm>

#include "neuron/base/error.h"
#include "neuron/eager/region_space.h"

namespace neuron::eager {

namespace {

constexpr int kMaxCommandsPerRegion = 64;
constexpr int kMaxOperandsPerRegion = 48;

bool is_column_sum(const PlannedCommand& planned) {
  return planned.canonical.reduction == codegen::Reduction::Outer && planned.command->reduced != 0;
}

}  // namespace

int32_t Planner::entry_of(const Operand& operand) {
  // Foreign memory shares one entry; its accesses are told apart by address alone.
  auto [it, added] = entry_index_.try_emplace(operand.block, static_cast<int32_t>(entry_count_));
  int32_t index = it->second;
  if (added) {
    if (entry_count_ == entries_.size()) entries_.emplace_back();
    ++entry_count_;
    BlockEntry& entry = entries_[index];
    entry.low = operand.low;
    entry.high = operand.low;
    entry.floor = 0;
    entry.generation = operand.generation;
    entry.accesses.clear();
    entry.writes.clear();
    entry.overlapping.clear();
  }
  BlockEntry& entry = entries_[index];
  if (entry.generation != operand.generation) {
    entry.generation = operand.generation;
    entry.writes.clear();
  }
  if (operand.low < entry.low || operand.high > entry.high) {
    entry.low = std::min(entry.low, operand.low);
    entry.high = std::max(entry.high, operand.high);
    find_overlapping_entries(index);
  }
  return index;
}

// Segments are split and merged between uses, so different blocks of a window can share addresses. Ranges are those of
// the recorded accesses: the blocks themselves may have changed since.
void Planner::find_overlapping_entries(int32_t index) {
  BlockEntry& entry = entries_[index];
  for (int32_t other = 0; other < static_cast<int32_t>(entry_count_); ++other) {
    BlockEntry& candidate = entries_[other];
    if (other == index || candidate.low >= entry.high || entry.low >= candidate.high) continue;
    if (std::find(entry.overlapping.begin(), entry.overlapping.end(), other) != entry.overlapping.end()) continue;
    entry.overlapping.push_back(other);
    candidate.overlapping.push_back(index);
  }
}

// The accesses of each entry newest first. When the body returns false the access settles everything recorded before
// it, in the other entries as well; what they hold of later commands is still visited.
template <typename F>
void Planner::for_each_overlap(int32_t index, const Operand& operand, F&& body) {
  int32_t settled = -1;
  auto scan = [&](BlockEntry& entry) {
    for (size_t i = entry.accesses.size(); i-- > 0;) {
      Access& access = entry.accesses[i];
      if (access.command <= settled) return;
      if (access.low >= operand.high || operand.low >= access.high || body(access)) continue;
      settled = access.command;
      return;
    }
  };
  BlockEntry& entry = entries_[index];
  scan(entry);
  for (int32_t other : entry.overlapping) scan(entries_[other]);
}

Planner::Dependence Planner::dependences(Plan& plan, int32_t index) {
  PlannedCommand& planned = plan.commands[index];
  const Command& command = *planned.command;
  Dependence result{minimum_region_, -1};
  int operand_index = 0;
  for (const Operand& operand : std::span(command.operands, command.output_count + command.input_count)) {
    int i = operand_index++;
    if (operand.kind != codegen::OperandKind::Tensor || operand.low == operand.high) continue;
    bool writes = i < command.output_count;
    bool reads = !writes || command.reads_outputs;
    uint64_t layout = command.kind == CommandKind::Region ? planned.canonical.layouts[i] : 0;
    int32_t entry = entry_of(operand);
    result.region = std::max(result.region, entries_[entry].floor);
    for (int32_t other : entries_[entry].overlapping) result.region = std::max(result.region, entries_[other].floor);
    for_each_overlap(entry, operand, [&](Access& access) {
      if ((access.is_write || writes) && access.region >= result.region) {
        result.region = access.region;
        result.bound = true;
      }
      if (!access.is_write && reads && layout != 0 && access.layout == layout && !access.forwarded) {
        result.share = std::max(result.share, access.region);
      }
      bool covers = access.is_write && access.dense && access.low <= operand.low && access.high >= operand.high;
      return !covers;
    });
  }
  return result;
}

bool Planner::can_join(const Plan& plan, int32_t index, int32_t region_index) {
  const Region& region = plan.regions[region_index];
  const PlannedCommand& planned = plan.commands[index];
  const Command& command = *planned.command;
  refusal_ = NotFused::LibraryKernel;
  if (!region.fusible) return false;
  refusal_ = NotFused::RegionFull;
  if (static_cast<int>(region.commands.size()) >= kMaxCommandsPerRegion ||
      region.operands + command.input_count + command.output_count > kMaxOperandsPerRegion) {
    return false;
  }
  const bool both_reduce =
      region.reduction != codegen::Reduction::None && planned.canonical.reduction != codegen::Reduction::None;
  refusal_ = both_reduce ? NotFused::ReductionAxis : NotFused::DifferentSpace;
  if (!space_fits(region, planned.canonical)) return false;
  refusal_ = NotFused::Hazard;
  bool fits = true;
  int operand_index = 0;
  for (const Operand& operand : std::span(command.operands, command.output_count + command.input_count)) {
    int i = operand_index++;
    if (operand.kind != codegen::OperandKind::Tensor || operand.low == operand.high) continue;
    bool writes = i < command.output_count;
    uint64_t layout = planned.canonical.layouts[i];
    for_each_overlap(entry_of(operand), operand, [&](Access& access) {
      if (access.region == region_index) {
        bool same = access.layout == layout && access.dtype == operand.dtype;
        if (access.is_write) {
          // Read after write: the newest value of exactly these elements. Write after write: the last one is stored.
          if (!same) fits = false;
          // A column sum cannot be used again inside its own region.
          if (!writes && is_column_sum(plan.commands[access.command])) {
            fits = false;
            refusal_ = NotFused::ColumnReduction;
          }
        } else if (writes && !access.forwarded && !same) {
          fits = false;
        }
      }
      bool covers = access.is_write && access.dense && access.low <= operand.low && access.high >= operand.high;
      return fits && !covers;
    });
    if (!fits) return false;
  }
  return true;
}

void Planner::record_accesses(Plan& plan, int32_t index, bool fused_command) {
  PlannedCommand& planned = plan.commands[index];
  const Command& command = *planned.command;
  Region& region = plan.regions[planned.region];
  planned.sources.resize(command.input_count);
  planned.stored.resize(command.output_count, true);
  auto layout_of = [&](int i) { return fused_command ? planned.canonical.layouts[i] : 0; };

  // Inputs first: an in-place command reads what was there before.
  for (int i = 0; i < command.input_count; ++i) {
    const Operand& operand = command.inputs()[i];
    if (operand.kind != codegen::OperandKind::Tensor || operand.low == operand.high) continue;
    int32_t entry = entry_of(operand);
    uint64_t layout = layout_of(command.output_count + i);
    bool forwarded = false, known = false;
    for_each_overlap(entry, operand, [&](Access& access) {
      if (access.is_write) {
        if (access.region == planned.region && fused_command) {
          planned.sources[i] = {access.command, access.operand};
          forwarded = true;
          return false;
        }
        plan.commands[access.command].stored[access.operand] = true;
        needed_writes_.insert(pack(access.command, access.operand));
        bool covers = access.dense && access.low <= operand.low && access.high >= operand.high;
        return !covers;
      }
      known = known || (access.region == planned.region && access.layout == layout && layout != 0 &&
                        access.low == operand.low && access.high == operand.high && !access.forwarded);
      return true;
    });
    if (!known) {
      entries_[entry].accesses.push_back(
          {operand.low, operand.high, layout, index, i, planned.region, 0, operand.dtype, false, false, forwarded});
    }
  }
  for (int i = 0; i < command.output_count; ++i) {
    const Operand& operand = command.outputs()[i];
    if (operand.low == operand.high) continue;
    int32_t entry = entry_of(operand);
    uint64_t layout = layout_of(i);
    bool dense = operand.is_dense();
    for_each_overlap(entry, operand, [&](Access& access) {
      if (access.region == planned.region && fused_command && access.layout == layout) {
        if (!access.is_write && !access.forwarded) region.has_alias = true;
      } else if (command.reads_outputs && access.is_write) {
        needed_writes_.insert(pack(access.command, access.operand));
      }
      return true;
    });
    // Earlier accesses that this write replaces: the same elements written before in this region (only the last value
    // is stored), and everything inside its range in earlier regions.
    int32_t floor = 0;
    std::erase_if(entries_[entry].accesses, [&](const Access& access) {
      if (access.region == planned.region) {
        bool superseded = fused_command && access.is_write && access.layout == layout && access.command != index;
        if (superseded) {
          plan.commands[access.command].stored[access.operand] = false;
          floor = std::max(floor, access.covered_floor);
        }
        return superseded;
      }
      bool covered = dense && !command.reads_outputs && access.low >= operand.low && access.high <= operand.high;
      if (covered) floor = std::max({floor, access.region, access.covered_floor});
      return covered;
    });
    entries_[entry].accesses.push_back(
        {operand.low, operand.high, layout, index, i, planned.region, floor, operand.dtype, true, dense, false});
    entries_[entry].writes.emplace_back(index, i);
  }
}

// The block's contents are gone: writes that no other region reads need not happen, and then constrain nobody.
void Planner::apply_death(Plan& plan, const Death& death) {
  auto it = entry_index_.find(death.block);
  if (it == entry_index_.end()) return;
  BlockEntry& entry = entries_[it->second];
  if (entry.generation != death.generation || death.block->exported_generation == death.generation) return;
  bool all_dropped = true;
  for (auto [command, output] : entry.writes) {
    const PlannedCommand& planned = plan.commands[command];
    bool needed = planned.command->kind != CommandKind::Region || needed_writes_.contains(pack(command, output));
    if (needed) {
      all_dropped = false;
    } else {
      plan.commands[command].stored[output] = false;
    }
  }
  if (all_dropped) {
    std::erase_if(entry.accesses, [&](const Access& access) {
      // Not into an earlier region: one with a single command stores even what nobody reads, and the reads that the
      // dropped write covered are no longer in the list.
      if (access.is_write) entry.floor = std::max({entry.floor, access.covered_floor, access.region});
      return access.is_write || access.forwarded;
    });
  }
  entry.writes.clear();
}

bool Planner::try_join(Plan& plan, int32_t index, int32_t region_index) {
  refusal_ = NotFused::NothingBefore;
  if (region_index >= static_cast<int32_t>(plan.regions.size()) || region_index < minimum_region_) return false;
  PlannedCommand& planned = plan.commands[index];
  const Command& command = *planned.command;
  Region& region = plan.regions[region_index];
  bool rows = region.reduction == codegen::Reduction::Inner && region.reduced_size > 1 &&
              planned.canonical.reduction == codegen::Reduction::None && planned.canonical.space.rank < kMaxRank &&
              planned.canonical.numel != region.numel && planned.canonical.numel * region.reduced_size == region.numel;
  if (rows) {
    CanonicalCommand original = planned.canonical;
    extend_rows(command, region.reduced_size, planned.canonical);
    if (!can_join(plan, index, region_index)) {
      planned.canonical = std::move(original);
      return false;
    }
  } else if (!can_join(plan, index, region_index)) {
    return false;
  }
  planned.region = region_index;
  region.commands.push_back(index);
  region.operands += command.input_count + command.output_count;
  join_space(region, planned.canonical);
  record_accesses(plan, index, true);
  return true;
}

// Items of a list stay with what was done to the same tensor before: a kernel then goes through each tensor once.
// What has nothing in common with a region gains nothing there, but single elements (step counters) are not worth a
// kernel each.
bool Planner::join_any(Plan& plan, int32_t index, const Dependence& dependence) {
  const PlannedCommand& planned = plan.commands[index];
  const Command& command = *planned.command;
  refusal_ = NotFused::NothingBefore;
  if (command.chain >= 0) {
    const int32_t region = plan.commands[command.chain].region;
    if (region >= dependence.region && try_join(plan, index, region)) return true;
  }
  const bool single = planned.canonical.numel <= 1, in_list = command.chain != Command::kNotInList;
  const bool related = dependence.bound || single || (!in_list && dependence.share == dependence.region);
  if (related && try_join(plan, index, dependence.region)) return true;
  return dependence.share > dependence.region && try_join(plan, index, dependence.share);
}

void Planner::place(Plan& plan, int32_t index, bool fusion) {
  PlannedCommand& planned = plan.commands[index];
  const Command& command = *planned.command;
  bool region_command = command.kind == CommandKind::Region;
  Dependence dependence = dependences(plan, index);
  if (region_command && fusion && join_any(plan, index, dependence)) return;
  planned.region = static_cast<int32_t>(plan.regions.size());
  Region& region = plan.regions.emplace_back();
  region.commands.push_back(index);
  region.operands = command.input_count + command.output_count;
  region.fusible = region_command;
  region.alone = fusion ? refusal_ : NotFused::FusionOff;
  if (region_command) start_space(region, planned.canonical);
  record_accesses(plan, index, region_command);
  // A callback that says what it touches is ordered by that, like any command.
  const bool barrier = command.kind == CommandKind::Callback && command.output_count + command.input_count == 0;
  if (barrier) minimum_region_ = static_cast<int32_t>(plan.regions.size());
}

void Planner::plan(const Window& window, bool fusion, Plan& plan) {
  entry_index_.clear();
  entry_count_ = 0;
  minimum_region_ = 0;
  needed_writes_.clear();
  plan.commands.clear();
  plan.commands.resize(window.commands.size());
  plan.regions.clear();
  size_t death = 0;
  for (size_t i = 0; i <= window.commands.size(); ++i) {
    while (death < window.deaths.size() && window.deaths[death].position <= i)
      apply_death(plan, window.deaths[death++]);
    if (i == window.commands.size()) break;
    PlannedCommand& planned = plan.commands[i];
    planned.command = &window.commands[i];
    if (planned.command->kind == CommandKind::Region) {
      const char* reason = nullptr;
      bool simple = canonicalise(*planned.command, planned.canonical, &reason);
      check_internal(simple, "{}: {}", planned.command->name(), reason ? reason : "");
    }
    place(plan, static_cast<int32_t>(i), fusion);
  }
}

}  // namespace neuron::eager
