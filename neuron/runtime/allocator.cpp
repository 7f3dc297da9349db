#include "neuron/runtime/allocator.h"

#include <array>
#include <atomic>
#include <mutex>

#include "neuron/base/error.h"
#include "neuron/base/options.h"
#include "neuron/runtime/core_allocator.h"
#include "neuron/runtime/process.h"

namespace neuron::runtime {
namespace {

constexpr int kMaxCores = 64;

// Allocators live until the process ends: deleters of tensors run after static destruction.
std::array<std::atomic<CoreAllocator*>, kMaxCores> allocators;
std::mutex creation_mutex;
std::atomic<StreamClock*> clock_in_use{nullptr};

std::mutex handler_mutex;
std::function<void(int)>& pressure_handler() {
  static auto* handler = new std::function<void(int)>;
  return *handler;
}

CoreAllocator* existing(int core) {
  if (core < 0 || core >= kMaxCores || in_forked_child()) return nullptr;
  return allocators[core].load(std::memory_order_acquire);
}

[[gnu::noinline]] CoreAllocator& create(int core) {
  const int count = device().visible_core_count();
  if (core < 0 || core >= count)
    fail(ErrorKind::Runtime, "no core {}: this process has the cores 0 to {}", core, count - 1);
  std::lock_guard lock(creation_mutex);
  CoreAllocator* allocator = allocators[core].load();
  if (allocator == nullptr) {
    MemoryUse use;
    check_status(device().memory_use(core, &use), "cannot ask for the memory of a core");
    allocator = new CoreAllocator(core, use.limit, parse_segment_config(option_text(Option::SegmentAllocatorConfig)));
    allocators[core].store(allocator, std::memory_order_release);
  }
  return *allocator;
}

CoreAllocator& allocator_of(int core) {
  if (core >= 0 && core < kMaxCores) [[likely]] {
    if (CoreAllocator* allocator = allocators[core].load(std::memory_order_acquire)) return *allocator;
  }
  return create(core);
}

void relieve(int core) {
  std::function<void(int)> handler;
  {
    std::lock_guard lock(handler_mutex);
    handler = pressure_handler();
  }
  if (handler) handler(core);
}

[[gnu::noinline]] Block* allocate_under_pressure(CoreAllocator& allocator, int core, size_t bytes, uint64_t stream) {
  if (bytes <= kLargestRequest) {
    allocator.count_retry();
    relieve(core);
    if (Block* block = allocator.allocate(bytes, stream)) return block;
    allocator.release_cached();
    if (Block* block = allocator.allocate(bytes, stream)) return block;
    // The cores of the embedded device share the machine's memory: the others' caches may hold what is missing.
    for (int other = 0; other < kMaxCores; ++other) {
      if (other == core || existing(other) == nullptr) continue;
      relieve(other);
      existing(other)->release_cached();
    }
    if (Block* block = allocator.allocate(bytes, stream)) return block;
  }
  throw Error(ErrorKind::OutOfMemory, allocator.out_of_memory(bytes));
}

}  // namespace

Block* allocate(int core, size_t bytes, uint64_t stream) {
  enter_runtime();
  CoreAllocator& allocator = allocator_of(core);
  check_internal(bytes > 0, "an allocation of 0 bytes");
  if (bytes <= kLargestRequest) [[likely]] {
    if (Block* block = allocator.allocate(bytes, stream)) [[likely]]
      return block;
  }
  return allocate_under_pressure(allocator, core, bytes, stream);
}

void free(Block* block) {
  if (block == nullptr || in_forked_child()) return;
  allocators[block->core].load(std::memory_order_acquire)->free(block);
}

void record_stream(Block* block, uint64_t stream) {
  if (block == nullptr || in_forked_child()) return;
  allocators[block->core].load(std::memory_order_acquire)->record_stream(block, stream);
}

Block* find_block(const void* address) {
  for (int core = 0; core < kMaxCores; ++core) {
    if (CoreAllocator* allocator = existing(core)) {
      if (Block* block = allocator->find(address)) return block;
    }
  }
  return nullptr;
}

MemoryStatistics memory_statistics(int core) {
  CoreAllocator* allocator = existing(core);
  return allocator != nullptr ? allocator->statistics() : MemoryStatistics{};
}

void reset_peak_statistics(int core) {
  if (CoreAllocator* allocator = existing(core)) allocator->reset_peak();
}

void reset_accumulated_statistics(int core) {
  if (CoreAllocator* allocator = existing(core)) allocator->reset_accumulated();
}

std::pair<size_t, size_t> memory_info(int core) {
  enter_runtime();
  return allocator_of(core).free_and_total();
}

void empty_cache(int core) {
  if (CoreAllocator* allocator = existing(core)) allocator->release_cached();
}

void set_memory_limit(int core, size_t bytes) {
  enter_runtime();
  allocator_of(core).set_limit(bytes);
}

void set_pressure_handler(std::function<void(int core)> handler) {
  std::lock_guard lock(handler_mutex);
  pressure_handler() = std::move(handler);
}

std::vector<SegmentInfo> memory_snapshot(int core) {
  CoreAllocator* allocator = existing(core);
  return allocator != nullptr ? allocator->snapshot() : std::vector<SegmentInfo>{};
}

void set_stream_clock(StreamClock* clock) { clock_in_use.store(clock, std::memory_order_release); }

StreamClock* stream_clock() { return clock_in_use.load(std::memory_order_acquire); }

}  // namespace neuron::runtime
