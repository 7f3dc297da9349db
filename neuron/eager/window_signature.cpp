#include "neuron/eager/window_signature.h"

#include <algorithm>

#include "neuron/base/hash.h"

namespace neuron::eager {

namespace {

size_t position_of(const void* key) { return ((reinterpret_cast<uintptr_t>(key) >> 4) * 0x9e3779b97f4a7c15ull) >> 20; }

}  // namespace

SignatureBuilder::Seen* SignatureBuilder::find(const void* key) {
  for (size_t at = position_of(key);; ++at) {
    Slot& slot = slots_[at & (slots_.size() - 1)];
    if (slot.epoch != epoch_) return nullptr;
    if (seen_[slot.seen].key == key) return &seen_[slot.seen];
  }
}

void SignatureBuilder::insert_slot(uint32_t index) {
  size_t at = position_of(seen_[index].key);
  while (slots_[at & (slots_.size() - 1)].epoch == epoch_) ++at;
  slots_[at & (slots_.size() - 1)] = {epoch_, index};
}

SignatureBuilder::Seen& SignatureBuilder::touch(const Operand& operand) {
  // Foreign memory is known by where it begins: an address no Block object has.
  const void* key = operand.block != nullptr ? static_cast<const void*>(operand.block) : operand.low;
  Seen* seen = find(key);
  if (seen == nullptr) {
    if (seen_.size() * 2 >= slots_.size()) {
      slots_.assign(slots_.size() * 2, {});
      for (uint32_t i = 0; i < seen_.size(); ++i) insert_slot(i);
    }
    auto index = static_cast<uint32_t>(seen_.size());
    seen_.push_back({key, operand.generation, index, 0, operand.data, operand.low, operand.high});
    insert_slot(index);
    return seen_.back();
  }
  if (seen->generation != operand.generation) {
    seen->generation = operand.generation;
    ++seen->reuse;
  }
  seen->low = std::min(seen->low, operand.low);
  seen->high = std::max(seen->high, operand.high);
  return *seen;
}

void SignatureBuilder::add_overlaps(Mixer& mixer) {
  order_.clear();
  for (uint32_t i = 0; i < seen_.size(); ++i) order_.push_back(i);
  std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return seen_[a].low < seen_[b].low; });
  char* reach = nullptr;        // end of the current cluster
  const Seen* first = nullptr;  // of the current cluster
  for (uint32_t index : order_) {
    const Seen& seen = seen_[index];
    if (first != nullptr && seen.low < reach) {
      mixer.add(uint64_t{first->index} << 32 | seen.index);
      mixer.add(static_cast<uint64_t>(seen.base - first->base));
    } else {
      first = &seen;
    }
    reach = std::max(reach, seen.high);
  }
}

WindowSignature SignatureBuilder::build(const Window& window) {
  ++epoch_;
  seen_.clear();
  Mixer mixer;
  size_t death = 0;
  for (size_t i = 0; i <= window.commands.size(); ++i) {
    for (; death < window.deaths.size() && window.deaths[death].position <= i; ++death) {
      const Death& dead = window.deaths[death];
      // Only deaths of memory this window has touched matter.
      const Seen* seen = find(dead.block);
      if (seen == nullptr || seen->generation != dead.generation) continue;
      bool exported = dead.block->exported_generation == dead.generation;
      mixer.add(uint64_t{seen->index} << 32 | seen->reuse << 1 | (exported ? 1 : 0));
      mixer.add(i);
    }
    if (i == window.commands.size()) break;
    const Command& command = window.commands[i];
    mixer.add(static_cast<uint64_t>(command.kind) +
              (reinterpret_cast<uint64_t>(command.op) ^ reinterpret_cast<uint64_t>(command.kernel)));
    mixer.add(uint64_t{command.rank} | uint64_t{command.output_count} << 8 | uint64_t{command.input_count} << 16 |
              uint64_t{command.attribute_count} << 32 | uint64_t{command.reads_outputs} << 40 |
              static_cast<uint64_t>(command.common) << 48 | static_cast<uint64_t>(command.threads) << 56);
    mixer.add(command.reduced);
    for (int d = 0; d < command.rank; ++d) mixer.add(static_cast<uint64_t>(command.sizes[d]));
    for (int a = 0; a < command.attribute_count; ++a) mixer.add(static_cast<uint64_t>(command.attributes[a]));
    for (const Operand& operand : std::span(command.operands, command.output_count + command.input_count)) {
      mixer.add(static_cast<uint64_t>(operand.kind) | static_cast<uint64_t>(operand.dtype) << 8 |
                uint64_t{operand.rank} << 16);
      if (operand.strides != nullptr) {
        for (int d = 0; d < operand.rank; ++d) mixer.add(static_cast<uint64_t>(operand.strides[d]));
      }
      if (operand.sizes != command.sizes) {
        for (int d = 0; d < operand.rank; ++d) mixer.add(static_cast<uint64_t>(operand.sizes[d]));
      }
      if (operand.kind != codegen::OperandKind::Tensor) continue;
      const Seen& seen = touch(operand);
      mixer.add(uint64_t{seen.index} << 32 | seen.reuse);
      mixer.add(static_cast<uint64_t>(operand.data - seen.base));
    }
  }
  add_overlaps(mixer);
  return {mixer.a, mixer.b};
}

}  // namespace neuron::eager
