// A window with each item of its list commands as a command of its own: what the planner sees. Commands that ran from a
// prepared plan are found in the recorded window again by their place.
#pragma once

#include <vector>

#include "neuron/eager/command.h"

namespace neuron::eager {

class Expansion {
 public:
  // A recorded command and, of a list command, the item.
  struct Place {
    int32_t command;
    int32_t item;
    friend bool operator==(const Place&, const Place&) = default;
  };

  // The window itself when it has no lists. The result is valid as long as `window`, until the next call.
  const Window& expand(const Window& window);
  // Of command `index` of the expanded window.
  Place place(int32_t index) const { return places_.empty() ? Place{index, 0} : places_[index]; }
  // From an operand of a command of the expanded window to the recorded command, and the operand among those of all
  // items.
  void locate(int32_t& command, int32_t& operand, const Window& window) const {
    const Place found = place(command);
    command = found.command;
    operand += found.item * static_cast<int32_t>(window.commands[found.command].operand_count());
  }

 private:
  void set_chains(int32_t first, uint32_t items);

  Window expanded_;
  std::vector<Place> places_;
  int32_t list_ = -1;        // first item of the list command before
  uint32_t list_items_ = 0;  // of that list
};

}  // namespace neuron::eager
