// What the allocator of a core tells about itself: resets of the statistics, the snapshot, the out-of-memory text.
#include <algorithm>
#include <functional>

#include "neuron/base/error.h"
#include "neuron/base/options.h"
#include "neuron/runtime/core_allocator.h"

namespace neuron::runtime {
namespace {

constexpr size_t kLargestBlocks = 10;

template <typename Visit>
void for_each_stat(MemoryStatistics& all, Visit visit) {
  for (auto* stats : {&all.allocation, &all.segment, &all.active, &all.inactive_split, &all.allocated_bytes,
                      &all.reserved_bytes, &all.active_bytes, &all.inactive_split_bytes, &all.requested_bytes}) {
    for (Stat& stat : *stats) visit(stat);
  }
}

std::string readable(size_t bytes) {
  const double amount = static_cast<double>(bytes);
  if (bytes < size_t{1} << 10) return fmt::format("{} bytes", bytes);
  if (bytes < size_t{1} << 20) return fmt::format("{:.2f} KiB", amount / (size_t{1} << 10));
  if (bytes < size_t{1} << 30) return fmt::format("{:.2f} MiB", amount / (size_t{1} << 20));
  return fmt::format("{:.2f} GiB", amount / (size_t{1} << 30));
}

}  // namespace

void CoreAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  for_each_stat(statistics_, [](Stat& stat) { stat.peak = stat.current; });
}

void CoreAllocator::reset_accumulated() {
  std::lock_guard lock(mutex_);
  for_each_stat(statistics_, [](Stat& stat) { stat.allocated = stat.freed = 0; });
  statistics_.num_alloc_retries = statistics_.num_ooms = statistics_.num_sync_all_streams = 0;
  statistics_.num_device_alloc = statistics_.num_device_free = 0;
}

std::vector<SegmentInfo> CoreAllocator::snapshot() {
  std::lock_guard lock(mutex_);
  std::vector<SegmentInfo> segments;
  for (const auto& [address, segment] : segments_) {
    SegmentInfo& info = segments.emplace_back();
    info = {segment->address, segment->size, segment->pool->kind == 2, segment->pool->stream, {}};
    for (const Block* block = segment->first; block != nullptr; block = links(block).next) {
      const BlockState state = links(block).state;
      const size_t requested = state == BlockState::Free ? 0 : block->requested.load();
      info.blocks.push_back(
          {block->address, block->size, requested, state == BlockState::Live, state == BlockState::Held});
    }
  }
  return segments;
}

std::string CoreAllocator::out_of_memory(size_t bytes) {
  std::lock_guard lock(mutex_);
  ++statistics_.num_ooms;
  std::vector<const Block*> live;
  size_t largest_free = 0;
  for (const auto& [address, segment] : segments_) {
    for (const Block* block = segment->first; block != nullptr; block = links(block).next) {
      if (links(block).state == BlockState::Live) live.push_back(block);
      if (links(block).state == BlockState::Free) largest_free = std::max(largest_free, block->size);
    }
  }
  const size_t allocated = static_cast<size_t>(statistics_.allocated_bytes[0].current);
  std::string text = fmt::format(
      "Neuron out of memory. Tried to allocate {}. Device neuron:{} has a total capacity of {} of which {} is free. Of "
      "the "
      "allocated memory {} is in {} live blocks, and {} is reserved but unallocated (largest piece {}).",
      readable(bytes), core_, readable(limit_), readable(limit_ > reserved_ ? limit_ - reserved_ : 0),
      readable(allocated), live.size(), readable(reserved_ - std::min(allocated, reserved_)), readable(largest_free));
  if (reserved_ - std::min(allocated, reserved_) >= bytes) {
    text +=
        " The reserved memory is fragmented: TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG=kMaxSplitSizeBytes=<bytes> keeps "
        "large segments whole.";
  }
  text += fmt::format("\nNeuron OOM: requested_size={} total_hbm={}", bytes, limit_);
  if (live.empty()) return text;
  const size_t shown = std::min(kLargestBlocks, live.size());
  std::partial_sort(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(shown), live.end(),
                    [](const Block* a, const Block* b) {
                      return a->size != b->size ? a->size > b->size : a->generation.load() < b->generation.load();
                    });
  text += fmt::format("\nLargest live blocks:\n  {:>12} {:>16} {:>8} {:>12}  {}", "size", "requested", "stream",
                      "allocation", "address");
  for (size_t i = 0; i < shown; ++i) {
    const Block* block = live[i];
    text += fmt::format("\n  {:>12} {:>16} {:>8} {:>12}  {}", readable(block->size), block->requested.load(),
                        block->stream, block->generation.load(), block->address);
  }
  return text;
}

SegmentConfig parse_segment_config(const std::string& text) {
  constexpr const char* kName = "TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG";
  SegmentConfig config;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    const size_t equals = std::min(item.find('='), item.size());
    const std::string key = item.substr(0, equals);
    const std::string value = item.substr(std::min(equals + 1, item.size()));
    const bool split_size = key == "kMaxSplitSizeBytes";
    if (!split_size && key != "kMaxNonSplitRoundingBytes") {
      fail(ErrorKind::Value,
           "{}={} is not a valid setting: allowed are, separated by commas, kMaxSplitSizeBytes=<bytes>, "
           "kMaxNonSplitRoundingBytes=<bytes>; got {}",
           kName, text, item);
    }
    const size_t bytes = static_cast<size_t>(parse_bytes(value, fmt::format("{}: {}", kName, key)));
    if (split_size && bytes < kLargeSegment) {
      fail(ErrorKind::Value, "{}={} is not a valid setting: kMaxSplitSizeBytes is at least {}, the size of a segment",
           kName, text, kLargeSegment);
    }
    (split_size ? config.max_split_size : config.max_non_split_rounding) = bytes;
    begin = end + 1;
  }
  return config;
}

}  // namespace neuron::runtime
