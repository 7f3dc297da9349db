#include "neuron/eager/expansion.h"

namespace neuron::eager {

namespace {

int64_t count_of(const Command& command) {
  int64_t count = 1;
  for (int d = 0; d < command.rank; ++d) count *= command.sizes[d];
  return count;
}

}  // namespace

const Window& Expansion::expand(const Window& window) {
  places_.clear();
  if (window.further_items == 0) return window;
  expanded_.reset();
  expanded_.other_streams = window.other_streams;
  list_ = -1;
  size_t death = 0;
  for (size_t c = 0; c <= window.commands.size(); ++c) {
    for (; death < window.deaths.size() && window.deaths[death].position <= c; ++death) {
      Death& moved = expanded_.deaths.emplace_back(window.deaths[death]);
      moved.position = static_cast<uint32_t>(expanded_.commands.size());
    }
    if (c == window.commands.size()) break;
    const Command& command = window.commands[c];
    const auto first = static_cast<int32_t>(expanded_.commands.size());
    for (uint32_t item = 0; item < command.items; ++item) {
      expanded_.commands.push_back(command.item(item));
      places_.push_back({static_cast<int32_t>(c), static_cast<int32_t>(item)});
    }
    if (command.items > 1) set_chains(first, command.items);
  }
  return expanded_;
}

// Lists of as many items are taken for lists of the same tensors, or of what was computed from them. Numbers per tensor
// (step counters) come between: those have another count of elements.
void Expansion::set_chains(int32_t first, uint32_t items) {
  for (int32_t item = 0; item < static_cast<int32_t>(items); ++item) {
    Command& command = expanded_.commands[first + item];
    command.chain = list_ >= 0 && list_items_ == items ? list_ + item : Command::kNoChain;
    const int64_t count = count_of(command);
    while (command.chain >= 0 && count_of(expanded_.commands[command.chain]) != count)
      command.chain = expanded_.commands[command.chain].chain;
  }
  list_ = first;
  list_items_ = items;
}

}  // namespace neuron::eager
