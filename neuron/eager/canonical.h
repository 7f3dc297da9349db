// The iteration space of one recorded command in its simplest form: no dimension of size 1, dimensions in memory order
// of the output, neighbours merged wherever every operand allows it. Two commands with the same number of points can
// then be compared and fused whatever shapes the user wrote.
#pragma once

#include "neuron/eager/command.h"

namespace neuron::eager {

inline constexpr int kMaxRank = 16;

struct Space {
  int rank = 0;
  int64_t sizes[kMaxRank] = {};

  int64_t numel() const {
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= sizes[d];
    return count;
  }
};

struct CanonicalCommand {
  Space space;
  codegen::Reduction reduction = codegen::Reduction::None;
  int64_t numel = 1;
  bool extended = false;  // by extend_rows()
  // [operand][kMaxRank], strides over `space`, outputs first.
  SmallVector<int64_t, kMaxRank * 3> strides;
  // Identity of the mapping from the linear position to an address, per operand: equal hashes, same element everywhere.
  SmallVector<uint64_t, 6> layouts;

  const int64_t* operand_strides(int operand) const { return strides.data() + operand * kMaxRank; }
};

// Adds an innermost dimension of `size` points along which nothing varies: the form in which a command over the rows of
// a reducing region takes part in it.
void extend_rows(const Command& command, int64_t size, CanonicalCommand& canonical);

// False when the command has more dimensions than kMaxRank even after merging, or reduced dimensions that cannot be
// merged; `reason` then says which.
bool canonicalise(const Command& command, CanonicalCommand& result, const char** reason);

}  // namespace neuron::eager
