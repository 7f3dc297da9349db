#include "neuron/runtime/core_allocator.h"

#include <algorithm>
#include <atomic>

#include "neuron/base/error.h"

namespace neuron::runtime {
namespace {

constexpr int kSmall = 1;
constexpr size_t kBlocksPerChunk = 256;

std::atomic<uint64_t> last_generation{0};

void increase(Stat (&stat)[3], int kind, int64_t amount) {
  for (int index : {0, kind}) {
    Stat& one = stat[index];
    one.current += amount;
    one.allocated += amount;
    one.peak = std::max(one.peak, one.current);
  }
}

void decrease(Stat (&stat)[3], int kind, int64_t amount) {
  for (int index : {0, kind}) {
    stat[index].current -= amount;
    stat[index].freed += amount;
  }
}

bool is_part(const Block* block) { return links(block).previous != nullptr || links(block).next != nullptr; }

int64_t bytes_of(const Block* block) { return static_cast<int64_t>(block->size); }

}  // namespace

CoreAllocator::CoreAllocator(int core, size_t limit, SegmentConfig config)
    : core_(core), config_(config), limit_(limit) {}

StreamPool& CoreAllocator::pool_for(size_t size, uint64_t stream) {
  if (recent_pools_ == nullptr || recent_stream_ != stream) {
    auto& pools = pools_[stream];
    if (pools == nullptr) {
      pools = std::make_unique<StreamPools>();
      pools->tiny.stream = pools->small.stream = pools->large.stream = stream;
      pools->large.kind = 2;
    }
    recent_pools_ = pools.get();
    recent_stream_ = stream;
  }
  if (size <= kTinyLimit) return recent_pools_->tiny;
  return size < kSmallLimit ? recent_pools_->small : recent_pools_->large;
}

Block* CoreAllocator::allocate(size_t bytes, uint64_t stream) {
  const size_t size = block_size(bytes);
  std::lock_guard lock(mutex_);
  if (!held_.empty()) release_held(false);
  StreamPool& pool = pool_for(size, stream);
  Block* block = take_cached(pool, size);
  if (block == nullptr) block = take_segment(pool, size);
  return block == nullptr ? nullptr : hand_out(block, size, bytes);
}

Block* CoreAllocator::take_cached(StreamPool& pool, size_t size) {
  Block* block = pool.free.find(size, [&](const Block* candidate) {
    if (candidate->size < config_.max_split_size) return true;
    // An undivided block is for requests of about its size only.
    return size >= config_.max_split_size && candidate->size - size <= config_.max_non_split_rounding;
  });
  if (block == nullptr) return nullptr;
  pool.free.remove(block);
  if (is_part(block)) {
    decrease(statistics_.inactive_split, pool.kind, 1);
    decrease(statistics_.inactive_split_bytes, pool.kind, bytes_of(block));
  }
  return block;
}

Block* CoreAllocator::take_segment(StreamPool& pool, size_t size) {
  Segment* segment = map_segment(pool, segment_size(size));
  // Near the limit a segment for this request alone may still fit.
  const size_t least = round_up(size, kSegmentRounding);
  if (segment == nullptr && least < segment_size(size)) segment = map_segment(pool, least);
  return segment == nullptr ? nullptr : segment->first;
}

Segment* CoreAllocator::map_segment(StreamPool& pool, size_t size) {
  if (reserved_ > limit_ || size > limit_ - reserved_) return nullptr;
  Tensor* tensor = nullptr;
  const Status status = device().tensor_allocate(Placement::Device, core_, size, "segment", &tensor);
  if (status == Status::Resource) return nullptr;
  check_status(status, fmt::format("cannot take a segment of {} bytes on core {}", size, core_));
  auto fresh = std::make_unique<Segment>();
  Segment* segment = fresh.get();
  segment->address = static_cast<char*>(device().tensor_address(tensor));
  segment->size = size;
  segment->tensor = tensor;
  segment->pool = &pool;
  if (pool.kind == kSmall) segment->starts = std::make_unique<Block*[]>(size / kGranule);
  segment->first = new_block(segment, segment->address, size);
  note_start(segment->first, true);
  segments_.emplace(reinterpret_cast<uintptr_t>(segment->address), std::move(fresh));
  reserved_ += size;
  ++statistics_.num_device_alloc;
  increase(statistics_.segment, pool.kind, 1);
  increase(statistics_.reserved_bytes, pool.kind, static_cast<int64_t>(size));
  return segment;
}

bool CoreAllocator::may_split(const StreamPool& pool, size_t block_size, size_t size) const {
  if (pool.kind == kSmall) return block_size > size;
  // A piece the large pool could not hand out again is left with the block.
  return block_size < config_.max_split_size && block_size - size >= kSmallLimit;
}

Block* CoreAllocator::hand_out(Block* block, size_t size, size_t requested) {
  StreamPool& pool = *links(block).segment->pool;
  if (may_split(pool, block->size, size)) split(block, size);
  links(block).state = BlockState::Live;
  block->requested.store(requested, std::memory_order_relaxed);
  block->generation.store(last_generation.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_release);
  increase(statistics_.allocation, pool.kind, 1);
  increase(statistics_.active, pool.kind, 1);
  increase(statistics_.allocated_bytes, pool.kind, bytes_of(block));
  increase(statistics_.active_bytes, pool.kind, bytes_of(block));
  increase(statistics_.requested_bytes, pool.kind, static_cast<int64_t>(requested));
  return block;
}

// Cuts a block that is in no list after `size` bytes; the rest becomes a free block.
void CoreAllocator::split(Block* block, size_t size) {
  BlockLinks& own = links(block);
  StreamPool& pool = *own.segment->pool;
  Block* rest = new_block(own.segment, static_cast<char*>(block->address) + size, block->size - size);
  BlockLinks& other = links(rest);
  other.previous = block;
  other.next = own.next;
  other.freed_at = own.freed_at;
  other.state = BlockState::Free;
  if (own.next != nullptr) links(own.next).previous = rest;
  own.next = rest;
  block->size = size;
  note_start(rest, true);
  pool.free.insert(rest);
  increase(statistics_.inactive_split, pool.kind, 1);
  increase(statistics_.inactive_split_bytes, pool.kind, bytes_of(rest));
}

void CoreAllocator::free(Block* block) {
  std::lock_guard lock(mutex_);
  BlockLinks& own = links(block);
  check_internal(own.state == BlockState::Live, "a block of {} bytes at {} is freed twice", block->size,
                 block->address);
  const int kind = own.segment->pool->kind;
  decrease(statistics_.allocation, kind, 1);
  decrease(statistics_.allocated_bytes, kind, bytes_of(block));
  decrease(statistics_.requested_bytes, kind, static_cast<int64_t>(block->requested.load(std::memory_order_relaxed)));
  StreamClock* clock = stream_clock();
  if (clock != nullptr) own.freed_at = clock->recorded(block->stream);
  if (own.uses != nullptr) {
    for (auto& [stream, position] : own.uses->positions) position = clock != nullptr ? clock->recorded(stream) : 0;
    own.state = BlockState::Held;
    held_.push_back(block);
    return;
  }
  put_free(block);
}

// Returns a live or held block to its list, joined with free neighbours.
void CoreAllocator::put_free(Block* block) {
  BlockLinks* own = &links(block);
  StreamPool& pool = *own->segment->pool;
  decrease(statistics_.active, pool.kind, 1);
  decrease(statistics_.active_bytes, pool.kind, bytes_of(block));
  own->state = BlockState::Free;
  for (Block* neighbour : {own->previous, own->next}) {
    if (neighbour == nullptr || links(neighbour).state != BlockState::Free) continue;
    pool.free.remove(neighbour);
    decrease(statistics_.inactive_split, pool.kind, 1);
    decrease(statistics_.inactive_split_bytes, pool.kind, bytes_of(neighbour));
  }
  if (own->next != nullptr && links(own->next).state == BlockState::Free) absorb_next(block);
  if (own->previous != nullptr && links(own->previous).state == BlockState::Free) {
    block = own->previous;
    absorb_next(block);
  }
  pool.free.insert(block);
  if (is_part(block)) {
    increase(statistics_.inactive_split, pool.kind, 1);
    increase(statistics_.inactive_split_bytes, pool.kind, bytes_of(block));
  }
}

void CoreAllocator::absorb_next(Block* block) {
  BlockLinks& own = links(block);
  Block* next = own.next;
  note_start(next, false);
  block->size += next->size;
  own.freed_at = std::max(own.freed_at, links(next).freed_at);
  own.next = links(next).next;
  if (own.next != nullptr) links(own.next).previous = block;
  retire_block(next);
}

void CoreAllocator::record_stream(Block* block, uint64_t stream) {
  std::lock_guard lock(mutex_);
  BlockLinks& own = links(block);
  if (stream == block->stream || own.state != BlockState::Live) return;
  if (own.uses == nullptr) own.uses = new StreamUses;
  auto& positions = own.uses->positions;
  auto same = [&](const auto& use) { return use.first == stream; };
  if (std::none_of(positions.begin(), positions.end(), same)) positions.emplace_back(stream, 0);
}

// Puts held blocks into their lists: those whose streams have passed, or all after the caller has synchronised.
void CoreAllocator::release_held(bool all) {
  StreamClock* clock = stream_clock();
  std::erase_if(held_, [&](Block* block) {
    BlockLinks& own = links(block);
    if (clock == nullptr && !all) return false;
    if (clock != nullptr) {
      for (auto [stream, position] : own.uses->positions) {
        if (!clock->passed(stream, position)) return false;
      }
    }
    delete own.uses;
    own.uses = nullptr;
    put_free(block);
    return true;
  });
}

void CoreAllocator::release_cached() {
  std::lock_guard lock(mutex_);
  release_held(true);
  StreamClock* clock = stream_clock();
  for (auto it = segments_.begin(); it != segments_.end();) {
    Segment* segment = (it++)->second.get();  // releasing removes it from the map
    const BlockLinks& first = links(segment->first);
    if (first.state != BlockState::Free || first.next != nullptr) continue;
    if (clock != nullptr && !clock->passed(segment->pool->stream, first.freed_at)) continue;
    release_segment(segment);
  }
}

void CoreAllocator::release_segment(Segment* segment) {
  const int kind = segment->pool->kind;
  segment->pool->free.remove(segment->first);
  retire_block(segment->first);
  check_status(device().tensor_free(segment->tensor), "cannot give a segment back");
  reserved_ -= segment->size;
  ++statistics_.num_device_free;
  decrease(statistics_.segment, kind, 1);
  decrease(statistics_.reserved_bytes, kind, static_cast<int64_t>(segment->size));
  segments_.erase(reinterpret_cast<uintptr_t>(segment->address));
}

// Block objects are never given back to the heap: a stale pointer sees another generation, not foreign memory.
Block* CoreAllocator::new_block(Segment* segment, char* address, size_t size) {
  if (spare_blocks_.empty()) {
    Block* chunk = block_chunks_.emplace_back(std::make_unique<Block[]>(kBlocksPerChunk)).get();
    for (size_t i = kBlocksPerChunk; i-- > 0;) {
      new (chunk[i].allocator_state) BlockLinks;
      spare_blocks_.push_back(&chunk[i]);
    }
  }
  Block* block = spare_blocks_.back();
  spare_blocks_.pop_back();
  block->address = address;
  block->size = size;
  block->core = core_;
  block->stream = segment->pool->stream;
  BlockLinks& own = links(block);
  own = BlockLinks{};
  own.segment = segment;
  own.state = BlockState::Free;
  return block;
}

void CoreAllocator::retire_block(Block* block) {
  block->generation.store(0, std::memory_order_relaxed);  // of no allocation: a captured graph must not use it
  links(block).state = BlockState::Spare;
  spare_blocks_.push_back(block);
}

void CoreAllocator::note_start(Block* block, bool begins) {
  Segment& segment = *links(block).segment;
  if (!segment.starts) return;
  segment.starts[(static_cast<char*>(block->address) - segment.address) / kGranule] = begins ? block : nullptr;
}

Block* CoreAllocator::find(const void* address) {
  std::lock_guard lock(mutex_);
  auto it = segments_.upper_bound(reinterpret_cast<uintptr_t>(address));
  if (it == segments_.begin()) return nullptr;
  Segment& segment = *std::prev(it)->second;
  const size_t offset = static_cast<size_t>(static_cast<const char*>(address) - segment.address);
  if (offset >= segment.size) return nullptr;
  Block* block = segment.first;
  if (segment.starts) {
    size_t granule = offset / kGranule;
    while (segment.starts[granule] == nullptr) --granule;
    block = segment.starts[granule];
  } else {
    while (static_cast<const char*>(address) >= static_cast<char*>(block->address) + block->size) {
      block = links(block).next;
    }
  }
  return links(block).state == BlockState::Live ? block : nullptr;
}

void CoreAllocator::count_retry() {
  std::lock_guard lock(mutex_);
  ++statistics_.num_alloc_retries;
  ++statistics_.num_sync_all_streams;
}

MemoryStatistics CoreAllocator::statistics() {
  std::lock_guard lock(mutex_);
  return statistics_;
}

std::pair<size_t, size_t> CoreAllocator::free_and_total() {
  std::lock_guard lock(mutex_);
  return {limit_ > reserved_ ? limit_ - reserved_ : 0, limit_};
}

void CoreAllocator::set_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
}

}  // namespace neuron::runtime
