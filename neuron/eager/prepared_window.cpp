#include "neuron/eager/prepared_window.h"

#include <algorithm>

namespace neuron::eager {

const PreparedWindow* PreparedWindows::find(const WindowSignature& signature, bool& again) {
  auto [it, added] = slots_.try_emplace(signature);
  it->second.used = ++clock_;
  again = !added;
  const PreparedWindow* window = it->second.window.get();
  if (added && slots_.size() > kCapacity) evict();
  return window;
}

void PreparedWindows::store(const WindowSignature& signature, std::unique_ptr<PreparedWindow> window) {
  Slot& slot = slots_[signature];
  slot.used = ++clock_;
  slot.window = std::move(window);
}

void PreparedWindows::evict() {
  std::vector<uint64_t> uses;
  for (const auto& [signature, slot] : slots_) uses.push_back(slot.used);
  std::nth_element(uses.begin(), uses.begin() + uses.size() / 2, uses.end());
  uint64_t middle = uses[uses.size() / 2];
  std::erase_if(slots_, [&](const auto& entry) { return entry.second.used < middle; });
}

}  // namespace neuron::eager
