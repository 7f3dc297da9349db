// A 128-bit signature of a window's structure: operators, attributes, shapes, strides, which memory is shared with
// which, and where storages die; but neither addresses nor the values of numbers. Equal signatures plan alike.
#pragma once

#include <unordered_map>
#include <vector>

#include "neuron/eager/command.h"

namespace neuron::eager {

struct WindowSignature {
  uint64_t low = 0, high = 0;
  friend bool operator==(const WindowSignature&, const WindowSignature&) = default;
};

struct WindowSignatureHash {
  size_t operator()(const WindowSignature& signature) const { return signature.low; }
};

// Two independently mixed accumulators; words are folded in order.
struct Mixer {
  uint64_t a = 0x243f6a8885a308d3ull, b = 0x13198a2e03707344ull;
  void add(uint64_t word) {
    a = (a ^ word) * 0x9e3779b97f4a7c15ull;
    a ^= a >> 32;
    b = (b + word) * 0xd6e8feb86659fd93ull;
    b ^= b >> 29;
  }
};

class SignatureBuilder {
 public:
  WindowSignature build(const Window& window);

 private:
  struct Seen {
    const void* key;  // the block, or where foreign memory begins
    uint64_t generation;
    uint32_t index, reuse;
    char* base;        // address of the first operand seen in it
    char *low, *high;  // addresses used; the block itself may meanwhile have been split or merged
  };
  Seen* find(const void* key);
  Seen& touch(const Operand& operand);
  void insert_slot(uint32_t index);
  // Blocks that share addresses because a segment was split or merged between their uses: how they lie to each other.
  void add_overlaps(Mixer& mixer);

  // Open addressing, power of two, cleared by epoch.
  struct Slot {
    uint32_t epoch = 0;
    uint32_t seen = 0;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(256);
  std::vector<Seen> seen_;
  std::vector<uint32_t> order_;
  uint32_t epoch_ = 0;
};

}  // namespace neuron::eager
