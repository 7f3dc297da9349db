#include "neuron/eager/prepared_window.h"

#include <algorithm>

namespace neuron::eager {

const PreparedWindow* PreparedWindows::find(const WindowSignature& signature, const Window& window,
                                            SignatureBuilder& signatures, bool& again) {
  auto [it, added] = slots_.try_emplace(signature);
  Slot& slot = it->second;
  slot.used = ++clock_;
  again = !added;
  for (const auto& variant : slot.variants) {
    if (variant == nullptr) break;
    const bool fits =
        variant->one_layout ? variant->memory == signatures.memory() : keeps_values_apart(variant->hazards, window);
    if (fits) return variant.get();
  }
  if (added && slots_.size() > kCapacity) evict();
  return nullptr;
}

void PreparedWindows::store(const WindowSignature& signature, std::unique_ptr<PreparedWindow> window) {
  Slot& slot = slots_[signature];
  slot.used = ++clock_;
  slot.variants[slot.next++ % kVariants] = std::move(window);
}

void PreparedWindows::evict() {
  std::vector<uint64_t> uses;
  for (const auto& [signature, slot] : slots_) uses.push_back(slot.used);
  std::nth_element(uses.begin(), uses.begin() + uses.size() / 2, uses.end());
  uint64_t middle = uses[uses.size() / 2];
  std::erase_if(slots_, [&](const auto& entry) { return entry.second.used < middle; });
}

}  // namespace neuron::eager
