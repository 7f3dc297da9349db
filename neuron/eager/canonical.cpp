#include "neuron/eager/canonical.h"

#include <cstdlib>

#include "neuron/base/hash.h"

namespace neuron::eager {

namespace {

constexpr int kMaxRecordedRank = 64;

bool mergeable(const Command& command, int outer, int inner, int64_t inner_size) {
  int count = command.output_count + command.input_count;
  for (int i = 0; i < count; ++i) {
    const Operand& operand = command.operands[i];
    if (operand.kind == codegen::OperandKind::Scalar) continue;
    if (operand.strides[outer] != operand.strides[inner] * inner_size) return false;
  }
  return true;
}

// True when dimension a should be outside dimension b: larger stride of the first operand that tells them apart.
bool outside(const Command& command, int a, int b) {
  int count = command.output_count + command.input_count;
  for (int i = 0; i < count; ++i) {
    const Operand& operand = command.operands[i];
    if (operand.kind != codegen::OperandKind::Tensor) continue;
    int64_t x = std::llabs(operand.strides[a]), y = std::llabs(operand.strides[b]);
    if (x != y && x != 0 && y != 0) return x > y;
  }
  return a < b;
}

// A run of recorded dimensions that became one: its total size and the recorded dimension whose stride it has.
struct Group {
  int64_t size;
  int stride_from;
};

void sort_dimensions(const Command& command, int* dims, int count) {
  for (int i = 1; i < count; ++i) {
    for (int j = i; j > 0 && outside(command, dims[j], dims[j - 1]); --j) std::swap(dims[j], dims[j - 1]);
  }
}

int merge_dimensions(const Command& command, const int* dims, int count, Group* groups) {
  int merged = 0;
  for (int i = 0; i < count; ++i) {
    int64_t size = command.sizes[dims[i]];
    if (merged > 0 && mergeable(command, groups[merged - 1].stride_from, dims[i], size)) {
      groups[merged - 1] = {groups[merged - 1].size * size, dims[i]};
    } else {
      groups[merged++] = {size, dims[i]};
    }
  }
  return merged;
}

uint64_t layout_hash(const Operand& operand, const Space& space, const int64_t* strides) {
  uint64_t hash = hash_combine(reinterpret_cast<uint64_t>(operand.data), static_cast<uint64_t>(operand.dtype));
  int64_t size = 1, stride = 0;
  for (int d = 0; d < space.rank; ++d) {
    if (space.sizes[d] == 1) continue;
    if (size != 1 && stride == strides[d] * space.sizes[d]) {
      size *= space.sizes[d];
    } else {
      if (size != 1)
        hash = hash_combine(hash_combine(hash, static_cast<uint64_t>(size)), static_cast<uint64_t>(stride));
      size = space.sizes[d];
    }
    stride = strides[d];
  }
  return hash_combine(hash_combine(hash, static_cast<uint64_t>(size)), static_cast<uint64_t>(size == 1 ? 0 : stride));
}

}  // namespace

void extend_rows(const Command& command, int64_t size, CanonicalCommand& canonical) {
  canonical.extended = true;
  canonical.numel *= size;
  canonical.space.sizes[canonical.space.rank++] = size;
  int operands = command.output_count + command.input_count;
  for (int i = 0; i < operands; ++i) {
    int64_t* strides = canonical.strides.data() + i * kMaxRank;
    strides[canonical.space.rank - 1] = 0;
    const Operand& operand = command.operands[i];
    if (operand.kind == codegen::OperandKind::Tensor)
      canonical.layouts[i] = layout_hash(operand, canonical.space, strides);
  }
}

bool canonicalise(const Command& command, CanonicalCommand& result, const char** reason) {
  int kept[kMaxRecordedRank], reduced[kMaxRecordedRank];
  int kept_count = 0, reduced_count = 0;
  int last_reduced = -1, empty = -1;
  for (int d = 0; d < command.rank; ++d) {
    bool is_reduced = (command.reduced >> d) & 1;
    if (is_reduced) last_reduced = d;
    if (command.sizes[d] == 1) continue;
    if (is_reduced) {
      reduced[reduced_count++] = d;
      if (command.sizes[d] == 0) empty = d;
    } else {
      kept[kept_count++] = d;
    }
  }
  if (empty >= 0) {  // whatever the others are, nothing is reduced
    reduced[0] = empty;
    reduced_count = 1;
  }
  bool kept_inside = kept_count > 0 && kept[kept_count - 1] > last_reduced;
  sort_dimensions(command, kept, kept_count);

  Group groups[kMaxRecordedRank];
  int count = merge_dimensions(command, kept, kept_count, groups);
  if (count + 1 > kMaxRank) {
    *reason = "too many dimensions that cannot be merged";
    return false;
  }

  int reduced_position = -1;
  if (command.reduced != 0) {
    Group reduced_group[kMaxRecordedRank];
    int reduced_groups = merge_dimensions(command, reduced, reduced_count, reduced_group);
    if (reduced_groups > 1) {
      *reason = "reduced dimensions cannot be merged";
      return false;
    }
    if (reduced_groups == 0) reduced_group[0] = {1, -1};
    bool outer = command.op->kind == lowering::IterationKind::Reduce && kept_inside;
    result.reduction = outer ? codegen::Reduction::Outer : codegen::Reduction::Inner;
    reduced_position = outer ? count - 1 : count;
    for (int i = count; i > reduced_position; --i) groups[i] = groups[i - 1];
    groups[reduced_position] = reduced_group[0];
    ++count;
  } else {
    result.reduction = codegen::Reduction::None;
  }
  if (count == 0) groups[count++] = {1, -1};

  result.space.rank = count;
  result.numel = 1;
  for (int i = 0; i < count; ++i) {
    result.space.sizes[i] = groups[i].size;
    result.numel *= groups[i].size;
  }
  int operands = command.output_count + command.input_count;
  result.strides.resize(operands * kMaxRank);
  result.layouts.resize(operands);
  for (int i = 0; i < operands; ++i) {
    const Operand& operand = command.operands[i];
    int64_t* strides = result.strides.data() + i * kMaxRank;
    if (operand.kind == codegen::OperandKind::Scalar) {
      std::fill(strides, strides + kMaxRank, 0);
      result.layouts[i] = 0;
      continue;
    }
    for (int d = 0; d < count; ++d) strides[d] = groups[d].stride_from < 0 ? 0 : operand.strides[groups[d].stride_from];
    result.layouts[i] = operand.kind == codegen::OperandKind::Tensor ? layout_hash(operand, result.space, strides) : 0;
  }
  return true;
}

}  // namespace neuron::eager
