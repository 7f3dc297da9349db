#include "neuron/eager/poison.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "neuron/base/small_vector.h"
#include "neuron/eager/stream.h"

namespace neuron::eager {
namespace {

// An access in more pieces counts as one from its first byte to its last where it leaves poison, and takes none away.
constexpr int64_t kMostPieces = 4096;

// Calls body(low, high) for the contiguous pieces that a strided access consists of, and returns true; false, without
// a call, when there are more than kMostPieces.
template <typename F>
bool for_each_piece(const Operand& operand, F&& body) {
  struct Dimension {
    int64_t count, step;
  };
  const auto element = static_cast<int64_t>(dtype_size(operand.dtype));
  char* data = operand.data;
  SmallVector<Dimension, 16> dimensions;
  for (int d = 0; d < operand.rank; ++d) {
    const int64_t count = operand.sizes[d], step = operand.strides[d] * element;
    if (count <= 1 || step == 0) continue;
    if (step < 0) data += (count - 1) * step;
    dimensions.push_back({count, std::abs(step)});
  }
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return a.step < b.step; });
  int64_t length = element;
  size_t first = 0;
  for (; first < dimensions.size() && dimensions[first].step <= length; ++first)
    length += (dimensions[first].count - 1) * dimensions[first].step;
  int64_t pieces = 1;
  for (size_t d = first; d < dimensions.size(); ++d) {
    if (dimensions[d].count > kMostPieces / pieces) return false;
    pieces *= dimensions[d].count;
  }
  for (int64_t piece = 0; piece < pieces; ++piece) {
    char* low = data;
    int64_t rest = piece;
    for (size_t d = first; d < dimensions.size(); ++d) {
      low += rest % dimensions[d].count * dimensions[d].step;
      rest /= dimensions[d].count;
    }
    body(low, low + length);
  }
  return true;
}

bool touches_memory(const Operand& operand) {
  return operand.kind == codegen::OperandKind::Tensor && operand.block != nullptr && operand.low != operand.high;
}

// The first range that ends behind `low`.
template <typename Ranges>
auto first_behind(Ranges& ranges, char* low) {
  auto it = ranges.upper_bound(low);
  if (it != ranges.begin() && std::prev(it)->second.high > low) --it;
  return it;
}

template <typename Ranges>
Cause find_in(const Ranges& ranges, char* low, char* high) {
  const auto it = first_behind(ranges, low);
  return it != ranges.end() && it->first < high ? it->second.cause : nullptr;
}

template <typename Ranges>
void cut_out(Ranges& ranges, char* low, char* high) {
  auto it = first_behind(ranges, low);
  while (it != ranges.end() && it->first < high) {
    auto range = it->second;
    if (range.high > high) ranges.emplace(high, range);
    if (it->first < low) {
      it->second.high = low;
      ++it;
    } else {
      it = ranges.erase(it);
    }
    if (range.high >= high) break;
  }
}

bool is_dead(const runtime::Block& block, uint64_t generation) {
  return block.generation.load(std::memory_order_acquire) != generation ||
         block.dead_generation.load(std::memory_order_acquire) == generation;
}

}  // namespace

Poison& Poison::instance() {
  static auto* instance = new Poison();
  return *instance;
}

Cause Poison::find_operand(const Operand& operand) const {
  if (!touches_memory(operand)) return nullptr;
  const auto it = allocations_.find(operand.generation);
  if (it == allocations_.end()) return nullptr;
  const auto& ranges = it->second.ranges;
  Cause whole = find_in(ranges, operand.low, operand.high);
  if (whole == nullptr) return nullptr;  // the usual case: another part of the storage
  Cause found;
  const bool exact = for_each_piece(operand, [&](char* low, char* high) {
    if (found == nullptr) found = find_in(ranges, low, high);
  });
  return exact ? found : whole;
}

Cause Poison::blocking(const Command& command) const {
  if (!any()) return nullptr;
  std::lock_guard lock(mutex_);
  for (const Operand& input : command.inputs()) {
    if (Cause cause = find_operand(input)) return cause;
  }
  if (!command.reads_outputs) return nullptr;
  for (const Operand& output : command.outputs()) {
    if (Cause cause = find_operand(output)) return cause;
  }
  return nullptr;
}

Cause Poison::find(const TensorArgument& tensor) const {
  if (!any()) return nullptr;
  Operand operand{};
  operand.set_memory(tensor.block, tensor.data, tensor.dtype);
  operand.rank = static_cast<uint8_t>(tensor.sizes.size());
  operand.sizes = tensor.sizes.data();
  operand.strides = tensor.strides.data();
  operand.set_range();
  std::lock_guard lock(mutex_);
  return find_operand(operand);
}

Cause Poison::find(const runtime::Block& block) const {
  if (!any()) return nullptr;
  std::lock_guard lock(mutex_);
  const auto it = allocations_.find(block.generation.load(std::memory_order_acquire));
  return it == allocations_.end() ? nullptr : it->second.ranges.begin()->second.cause;
}

void Poison::add(const Command& command, const Cause& cause, const Stream* pool) {
  std::lock_guard lock(mutex_);
  for (const Operand& output : command.outputs()) {
    if (!touches_memory(output)) continue;
    Allocation& allocation = allocations_[output.generation];
    allocation.block = output.block;
    allocation.pool = pool;
    auto put = [&](char* low, char* high) {
      cut_out(allocation.ranges, low, high);
      allocation.ranges.emplace(low, Range{high, cause});
    };
    if (!for_each_piece(output, put)) put(output.low, output.high);
  }
  if (allocations_.size() >= next_collection_) {
    collect_locked();
    next_collection_ = std::max<size_t>(64, allocations_.size() * 2);
  }
  count_.store(allocations_.size(), std::memory_order_release);
}

void Poison::remove(const Command& command) {
  if (!any()) return;
  std::lock_guard lock(mutex_);
  for (const Operand& output : command.outputs()) {
    if (!touches_memory(output)) continue;
    const auto it = allocations_.find(output.generation);
    if (it == allocations_.end()) continue;
    for_each_piece(output, [&](char* low, char* high) { cut_out(it->second.ranges, low, high); });
    if (it->second.ranges.empty()) allocations_.erase(it);
  }
  count_.store(allocations_.size(), std::memory_order_release);
}

void Poison::collect() {
  if (!any()) return;
  std::lock_guard lock(mutex_);
  collect_locked();
  count_.store(allocations_.size(), std::memory_order_release);
}

void Poison::collect_locked() {
  for (auto it = allocations_.begin(); it != allocations_.end();) {
    it = is_forgotten(it->first, it->second) ? allocations_.erase(it) : std::next(it);
  }
}

bool Poison::is_forgotten(uint64_t generation, Allocation& allocation) {
  // The commands of a graph name what died in its capture as long as it can be replayed.
  if (allocation.pool != nullptr && allocation.pool->graph_memory_in_use()) return false;
  if (allocation.horizon.empty()) {
    if (!is_dead(*allocation.block, generation)) return false;
    for_each_stream([&](Stream& stream) { allocation.horizon.emplace_back(&stream, stream.position()); });
  }
  return std::all_of(allocation.horizon.begin(), allocation.horizon.end(),
                     [](const auto& entry) { return entry.first->queue().completed() >= entry.second; });
}

}  // namespace neuron::eager
