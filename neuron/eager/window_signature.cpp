#include "neuron/eager/window_signature.h"

#include <algorithm>

#include "neuron/base/hash.h"

namespace neuron::eager {

namespace {

size_t position_of(const void* key, uint64_t generation) {
  return ((reinterpret_cast<uintptr_t>(key) >> 4) + generation * 0x632be59bd9b4e019ull) * 0x9e3779b97f4a7c15ull >> 20;
}

}  // namespace

uint32_t SignatureBuilder::find(const void* key, uint64_t generation) const {
  for (size_t at = position_of(key, generation);; ++at) {
    const Slot& slot = slots_[at & (slots_.size() - 1)];
    if (slot.epoch != epoch_) return kUnseen;
    if (seen_[slot.seen].key == key && seen_[slot.seen].generation == generation) return slot.seen;
  }
}

void SignatureBuilder::insert_slot(uint32_t index) {
  size_t at = position_of(seen_[index].key, seen_[index].generation);
  while (slots_[at & (slots_.size() - 1)].epoch == epoch_) ++at;
  slots_[at & (slots_.size() - 1)] = {epoch_, index};
}

uint32_t SignatureBuilder::touch(const Operand& operand) {
  // Foreign memory is known by where it begins: an address no Block object has.
  const bool foreign = operand.block == nullptr;
  const void* key = foreign ? static_cast<const void*>(operand.low) : operand.block;
  const uint32_t known = find(key, operand.generation);
  if (known != kUnseen) return known;
  if (seen_.size() * 2 >= slots_.size()) {
    slots_.assign(slots_.size() * 2, {});
    for (uint32_t i = 0; i < seen_.size(); ++i) insert_slot(i);
  }
  const auto index = static_cast<uint32_t>(seen_.size());
  seen_.push_back({key, operand.generation, foreign, {}});
  insert_slot(index);
  return index;
}

uint64_t SignatureBuilder::place_of(Seen& seen, const Operand& operand) {
  auto& ends = seen.ends;
  if (ends.size() == 2 && operand.data == operand.low && operand.low == ends[0] && operand.high == ends[1]) return 0;
  uint64_t place = 1;
  for (char* end : {operand.data, operand.low, operand.high}) {
    char** found = std::lower_bound(ends.begin(), ends.end(), end);
    const auto position = static_cast<uint64_t>(found - ends.begin());
    const bool known = found != ends.end() && *found == end;
    place = place << 20 | position << 1 | (known ? 1 : 0);
    if (!known) ends.insert(position, end);
  }
  return place;
}

void SignatureBuilder::add_overlaps(Mixer& mixer, bool all) {
  auto before = [&](uint32_t a, uint32_t b) {
    const char *x = seen_[a].ends.front(), *y = seen_[b].ends.front();
    return x != y ? x < y : a < b;
  };
  if (order_.size() != seen_.size()) {
    order_.resize(seen_.size());
    for (uint32_t i = 0; i < seen_.size(); ++i) order_[i] = i;
  }
  // The window before was likely of the same memory.
  if (!std::is_sorted(order_.begin(), order_.end(), before)) std::sort(order_.begin(), order_.end(), before);
  for (size_t first = 0, end = 0; first < order_.size(); first = end) {
    char* reach = seen_[order_[first]].ends.back();
    bool counts = all;
    for (end = first; end < order_.size(); ++end) {
      const Seen& seen = seen_[order_[end]];
      if (end != first && seen.ends.front() >= reach) break;
      reach = std::max(reach, seen.ends.back());
      counts = counts || seen.foreign;
    }
    if (end == first + 1 || !counts) continue;
    group_ends_.clear();
    for (size_t i = first; i < end; ++i) {
      for (char* at : seen_[order_[i]].ends) group_ends_.emplace_back(at, order_[i]);
    }
    std::sort(group_ends_.begin(), group_ends_.end());
    char* last = nullptr;
    for (auto [at, index] : group_ends_) {
      mixer.add(uint64_t{index} << 1 | (at == last ? 1 : 0));
      last = at;
    }
  }
}

WindowSignature SignatureBuilder::memory() {
  Mixer mixer;
  add_overlaps(mixer, true);
  return {mixer.a, mixer.b};
}

WindowSignature SignatureBuilder::build(const Window& window) {
  ++epoch_;
  seen_.clear();
  Mixer mixer;
  mixer.add(window.other_streams ? 1 : 0);
  size_t death = 0;
  bool any_foreign = false;
  for (size_t i = 0; i <= window.commands.size(); ++i) {
    for (; death < window.deaths.size() && window.deaths[death].position <= i; ++death) {
      const Death& dead = window.deaths[death];
      // Only deaths of memory this window has touched matter.
      const uint32_t seen = find(dead.block, dead.generation);
      if (seen == kUnseen) continue;
      bool exported = dead.block->exported_generation == dead.generation;
      mixer.add(uint64_t{seen} << 32 | (exported ? 1 : 0));
      mixer.add(i);
    }
    if (i == window.commands.size()) break;
    const Command& command = window.commands[i];
    mixer.add(static_cast<uint64_t>(command.kind) +
              (reinterpret_cast<uint64_t>(command.op) ^ reinterpret_cast<uint64_t>(command.kernel)));
    mixer.add(uint64_t{command.rank} | uint64_t{command.output_count} << 8 | uint64_t{command.input_count} << 16 |
              uint64_t{command.attribute_count} << 32 | uint64_t{command.reads_outputs} << 40 |
              static_cast<uint64_t>(command.common) << 48 | static_cast<uint64_t>(command.threads) << 56);
    const bool region = command.kind == CommandKind::Region;
    if (region) {
      mixer.add(command.reduced);
      mixer.add(command.items);
      for (int d = 0; d < command.rank; ++d) mixer.add(static_cast<uint64_t>(command.sizes[d]));
      for (int a = 0; a < command.attribute_count; ++a) mixer.add(static_cast<uint64_t>(command.attributes[a]));
    }
    const int64_t* sizes = command.sizes;
    for (const Operand& operand : command.all_operands()) {
      mixer.add(static_cast<uint64_t>(operand.kind) | static_cast<uint64_t>(operand.dtype) << 8 |
                uint64_t{operand.rank} << 16 | uint64_t{operand.low == operand.high} << 24 |
                uint64_t{!region && operand.is_dense()} << 25);
      if (region && operand.strides != nullptr) {
        // Along a dimension of one element nothing is stepped.
        for (int d = 0; d < operand.rank; ++d) {
          mixer.add(operand.sizes[d] == 1 ? 0 : static_cast<uint64_t>(operand.strides[d]));
        }
      }
      if (region && operand.sizes != sizes) {
        // The items of a list share the sizes that are equal.
        if (command.items > 1) sizes = operand.sizes;
        for (int d = 0; d < operand.rank; ++d) mixer.add(static_cast<uint64_t>(operand.sizes[d]));
      }
      if (operand.kind != codegen::OperandKind::Tensor) continue;
      const uint32_t index = touch(operand);
      any_foreign = any_foreign || seen_[index].foreign;
      mixer.add(index);
      mixer.add(place_of(seen_[index], operand));
    }
  }
  if (any_foreign) add_overlaps(mixer, false);
  return {mixer.a, mixer.b};
}

}  // namespace neuron::eager
