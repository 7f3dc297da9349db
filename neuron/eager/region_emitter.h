// From a planned region to what the code generator takes: the kernel's key, its arguments, and (on a miss) its graph.
#pragma once

#include <string>
#include <vector>

#include "neuron/codegen/region.h"
#include "neuron/eager/planner.h"

namespace neuron::eager {

// A command of the region with the addresses to use instead of the recorded ones (scratch memory), null where
// unchanged.
struct RegionCommand {
  const PlannedCommand* planned;
  const Source* sources;        // by input; `command` is an index into the region's command list
  char* const* data = nullptr;  // by operand, or null
};

class RegionEmitter {
 public:
  // Binds sizes, pointers, strides and scalars, and computes the key. `commands` in recorded order; `stored` by command
  // and output as planned. The arguments are valid until the next call.
  void bind(std::span<const RegionCommand> commands, const Space& space, codegen::Reduction reduction, bool single);

  // Equal keys, same kernel.
  const std::string& key() const { return key_; }
  codegen::RegionArguments arguments(int threads) const {
    return {sizes_.data(), pointers_.data(), strides_.data(), scalars_.data(), threads};
  }
  // Which operand of which command (index into `commands`) each pointer belongs to: inputs, then outputs.
  struct Reference {
    int32_t command;
    int32_t operand;
  };
  void append_references(std::vector<Reference>& references) const;
  std::span<const int64_t> sizes() const { return sizes_; }
  std::span<const int64_t> strides() const { return strides_; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  // The graph and signature for the bound region. Slow path.
  codegen::RegionSpec build_spec(std::span<const RegionCommand> commands) const;

 private:
  struct External {
    const Operand* operand;
    Reference reference;
    char* data;
    uint64_t layout;
    int64_t strides[kMaxRank];
  };
  struct Stored {
    int32_t command, output;
  };
  struct InputReference {
    int32_t external;  // or -1 and the producer
    int32_t command, output;
  };

  void collect(std::span<const RegionCommand> commands, const Space& space, bool single);
  void collapse(const Space& space);
  void append_key(std::span<const RegionCommand> commands);

  codegen::Reduction reduction_ = codegen::Reduction::None;
  int rank_ = 0;
  int64_t collapsed_[kMaxRank] = {};
  std::vector<External> inputs_;
  std::vector<External> outputs_;
  std::vector<Stored> stored_;
  std::vector<InputReference> references_;
  std::vector<int64_t> sizes_, strides_;
  std::vector<void*> pointers_;
  std::vector<uint64_t> scalars_;
  std::string key_;
};

}  // namespace neuron::eager
