// A 128-bit signature of a window's structure: operators, attributes, shapes, strides, which commands work on the same
// values, and where storages die; but neither addresses nor the values of numbers. Equal signatures plan alike, where
// the memory that values take in turn allows it (reuse_hazards.h).
//
// Of a library kernel a plan knows no more than the memory it touches, and of memory only how the ends of the ranges
// lie to each other. So shapes and attributes of library kernels are left out, and ends are told by their order: the
// caches of a model that generates grow with every token, and its windows stay the same.
#pragma once

#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "neuron/base/small_vector.h"
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
  // Of the window built last: which values lie in the same memory, and how.
  WindowSignature memory();

 private:
  // A value's memory: an allocation, or foreign memory that begins at an address.
  struct Seen {
    const void* key;
    uint64_t generation;
    bool foreign;
    // Where operands begin and end, ascending, each once. The block itself may meanwhile have been split or merged.
    SmallVector<char*, 4> ends;
  };
  uint32_t find(const void* key, uint64_t generation) const;  // index, or kUnseen
  uint32_t touch(const Operand& operand);
  void insert_slot(uint32_t index);
  // Where the operand lies among those seen before it in the same memory.
  static uint64_t place_of(Seen& seen, const Operand& operand);
  // How memory that overlaps lies to each other; groups without foreign memory only if asked for.
  void add_overlaps(Mixer& mixer, bool all);

  static constexpr uint32_t kUnseen = ~uint32_t{0};
  // Open addressing, power of two, cleared by epoch.
  struct Slot {
    uint32_t epoch = 0;
    uint32_t seen = 0;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(256);
  std::vector<Seen> seen_;
  std::vector<uint32_t> order_;
  std::vector<std::pair<char*, uint32_t>> group_ends_;
  uint32_t epoch_ = 0;
};

}  // namespace neuron::eager
