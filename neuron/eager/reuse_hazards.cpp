#include "neuron/eager/reuse_hazards.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <unordered_map>

namespace neuron::eager {

namespace {

// A window runs from its plan in some tens of microseconds; looking at more pairs would cost as much.
constexpr size_t kMostHazards = 4096;

struct Access {
  int32_t command;
  int32_t operand;
  bool writes;
  const Operand* memory;
  uint32_t death;  // commands recorded before its memory was free, kAlive when it was not within the window
};

constexpr uint32_t kAlive = std::numeric_limits<uint32_t>::max();

class Deaths {
 public:
  explicit Deaths(const Window& window) : unknown_(window.other_streams) {
    for (const Death& death : window.deaths) positions_[death.block].push_back(&death);
  }

  uint32_t of(const Operand& operand) const {
    if (unknown_) return 0;
    const auto found = positions_.find(operand.block);
    if (found == positions_.end()) return kAlive;
    for (const Death* death : found->second) {
      if (death->generation == operand.generation) return death->position;
    }
    return kAlive;
  }

 private:
  bool unknown_;
  std::unordered_map<const runtime::Block*, std::vector<const Death*>> positions_;
};

bool is_dropped(const Plan& plan, const Region& region) {
  if (!region.fusible) return false;
  return std::none_of(region.commands.begin(), region.commands.end(), [&](int32_t index) {
    const auto& stored = plan.commands[index].stored;
    return std::find(stored.begin(), stored.end(), true) != stored.end();
  });
}

// What a command reads from memory and writes to it when its region runs.
void add_accesses(const Plan& plan, int32_t index, const Deaths& deaths, std::vector<Access>& accesses) {
  const PlannedCommand& planned = plan.commands[index];
  const Command& command = *planned.command;
  const Region& region = plan.regions[planned.region];
  const bool alone = region.commands.size() == 1;
  for (int i = 0; i < command.output_count + command.input_count; ++i) {
    const Operand& operand = command.operands[i];
    if (operand.kind != codegen::OperandKind::Tensor || operand.block == nullptr || operand.low == operand.high)
      continue;
    const bool output = i < command.output_count;
    const bool happens = alone || (output ? planned.stored[i] : planned.sources[i - command.output_count].command < 0);
    if (happens) accesses.push_back({index, i, output, &operand, deaths.of(operand)});
  }
}

bool overlap(const Operand& a, const Operand& b) { return a.low < b.high && b.low < a.high; }

bool same_elements(const Operand& a, const Operand& b) {
  return a.data == b.data && a.low == b.low && a.high == b.high;
}

}  // namespace

bool find_reuse_hazards(const Plan& plan, const Window& window, std::vector<ReuseHazard>& hazards) {
  hazards.clear();
  const Deaths deaths(window);
  std::vector<Access> accesses;  // of all commands before, in order, to memory that others may take within the window
  std::vector<Access> own;
  int32_t newest = -1;  // newest region that has accesses
  for (int32_t index = 0; index < static_cast<int32_t>(plan.commands.size()); ++index) {
    const int32_t region = plan.commands[index].region;
    if (is_dropped(plan, plan.regions[region])) continue;
    own.clear();
    add_accesses(plan, index, deaths, own);
    // In order of regions behind everything so far: nothing can come between.
    if (region <= newest) {
      for (const Access& later : own) {
        for (const Access& earlier : accesses) {
          if (plan.commands[earlier.command].region < region || !(earlier.writes || later.writes)) continue;
          if (static_cast<uint32_t>(index) < earlier.death) continue;
          const Operand &a = *earlier.memory, &b = *later.memory;
          // Of one value the plan knows by itself.
          if (a.block == b.block && a.generation == b.generation) continue;
          if (hazards.size() == kMostHazards) return false;
          hazards.push_back({earlier.command, later.command, earlier.operand, later.operand, overlap(a, b)});
        }
      }
    }
    newest = std::max(newest, region);
    std::ranges::copy_if(own, std::back_inserter(accesses),
                         [](const Access& access) { return access.death != kAlive; });
  }
  return true;
}

bool keeps_values_apart(const std::vector<ReuseHazard>& hazards, const Window& window) {
  return std::all_of(hazards.begin(), hazards.end(), [&](const ReuseHazard& hazard) {
    const Operand& a = window.commands[hazard.earlier].operands[hazard.earlier_operand];
    const Operand& b = window.commands[hazard.later].operands[hazard.later_operand];
    return !overlap(a, b) || (hazard.may_coincide && same_elements(a, b));
  });
}

}  // namespace neuron::eager
