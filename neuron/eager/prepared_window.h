// A window whose planning is done: regions with their kernels, sizes and strides, and where the addresses come from. A
// later window of the same structure (window_signature.h) whose memory allows the order (reuse_hazards.h) runs from it
// at the cost of filling in addresses and numbers.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "neuron/codegen/region.h"
#include "neuron/eager/expansion.h"
#include "neuron/eager/profile.h"
#include "neuron/eager/region_emitter.h"
#include "neuron/eager/reuse_hazards.h"
#include "neuron/eager/window_signature.h"

namespace neuron::eager {

struct PreparedRegion {
  // Null: a library kernel or a callback; only `command` is meaningful.
  const codegen::Executable* executable = nullptr;
  int32_t command = 0;
  int32_t commands = 1;
  int32_t threads = 1;
  int32_t inputs = 0;
  std::vector<int64_t> sizes, strides;
  // `command`: index into the window; `operand`: among those of all its items.
  std::vector<RegionEmitter::Reference> references;
  std::vector<Expansion::Place> members;
};

struct PreparedWindow {
  bool fusing = false;
  std::vector<PreparedRegion> regions;
  uint64_t dropped = 0;
  uint32_t not_fused[kNotFusedCount] = {};
  std::vector<ReuseHazard> hazards;
  bool one_layout = false;  // too many hazards: for windows of the same use of memory only, `memory`
  WindowSignature memory;
};

// Bounded; the least recently used half goes when it is full. One per stream, used by one thread at a time.
class PreparedWindows {
 public:
  // What the window can run from. Null and `again` false at first sight of the signature, null and `again` true when it
  // came back. `signatures` has built the window's.
  const PreparedWindow* find(const WindowSignature& signature, const Window& window, SignatureBuilder& signatures,
                             bool& again);
  void store(const WindowSignature& signature, std::unique_ptr<PreparedWindow> window);

 private:
  static constexpr size_t kCapacity = 512;
  static constexpr size_t kVariants = 4;  // plans of one structure for different uses of memory
  struct Slot {
    std::array<std::unique_ptr<PreparedWindow>, kVariants> variants;
    size_t next = 0;
    uint64_t used = 0;
  };
  void evict();

  std::unordered_map<WindowSignature, Slot, WindowSignatureHash> slots_;
  uint64_t clock_ = 0;
};

}  // namespace neuron::eager
