#include "neuron/runtime/allocator.h"

#include <sys/mman.h>

#include <atomic>
#include <map>
#include <mutex>

#include "neuron/base/error.h"
#include "neuron/runtime/process.h"

namespace neuron::runtime {
namespace {

std::mutex mutex;
std::map<uintptr_t, Block*> blocks;  // by address, live and free
std::multimap<std::pair<uint64_t, size_t>, Block*> idle;
std::atomic<uint64_t> generations{0};

}  // namespace

Block* allocate(int core, size_t bytes, uint64_t stream) {
  enter_runtime();
  const size_t size = (bytes + 511) / 512 * 512;
  std::lock_guard lock(mutex);
  Block* block;
  if (auto found = idle.find({stream, size}); found != idle.end()) {
    block = found->second;
    idle.erase(found);
  } else {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) fail(ErrorKind::OutOfMemory, "Neuron out of memory. Tried to allocate {} bytes", bytes);
    block = new Block;
    block->address = memory;
    block->size = size;
    blocks[reinterpret_cast<uintptr_t>(memory)] = block;
  }
  block->requested = bytes;
  block->core = core;
  block->stream = stream;
  block->generation = ++generations;
  block->error_sequence = 0;
  return block;
}

void free(Block* block) {
  if (in_forked_child()) return;
  std::lock_guard lock(mutex);
  idle.emplace(std::pair(block->stream, block->size), block);
}

void record_stream(Block*, uint64_t) {}

Block* find_block(const void* address) {
  std::lock_guard lock(mutex);
  auto next = blocks.upper_bound(reinterpret_cast<uintptr_t>(address));
  if (next == blocks.begin()) return nullptr;
  Block* block = std::prev(next)->second;
  return static_cast<const char*>(address) < static_cast<char*>(block->address) + block->size ? block : nullptr;
}

MemoryStatistics memory_statistics(int) { return {}; }
void reset_peak_statistics(int) {}
void reset_accumulated_statistics(int) {}
std::pair<size_t, size_t> memory_info(int) { return {size_t{24} << 30, size_t{24} << 30}; }
void empty_cache(int) {}
void set_memory_limit(int, size_t) {}
void set_pressure_handler(std::function<void(int)>) {}
std::vector<SegmentInfo> memory_snapshot(int) { return {}; }

}  // namespace neuron::runtime
