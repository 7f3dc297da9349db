// A plan that comes back in a window whose memory is reused otherwise.
//
// Which freed block a later tensor of the window takes is the allocator's affair, and changes from round to round. What
// a plan decides follows from values alone; only where commands change places, or share a region, must memory that
// two values take in turn be looked at: a write must not reach what the other command still reads or has written. That
// can only be memory whose first value died before the command of the second was recorded. Those pairs of operands are
// noted when the plan is kept, and looked at in each window that runs from it.
#pragma once

#include <cstdint>
#include <vector>

#include "neuron/eager/planner.h"

namespace neuron::eager {

struct ReuseHazard {
  int32_t earlier, later;                  // commands of the plan; once kept, of the recorded window
  int32_t earlier_operand, later_operand;  // then among those of all items of a list
  bool may_coincide;                       // the plan allows both to be the same elements
};

// `window` is what was planned, each item of a list a command of its own. False when there are more than are worth
// looking at; `hazards` is then of no use.
bool find_reuse_hazards(const Plan& plan, const Window& window, std::vector<ReuseHazard>& hazards);

// Whether the plan's order keeps the window's values apart.
bool keeps_values_apart(const std::vector<ReuseHazard>& hazards, const Window& window);

}  // namespace neuron::eager
