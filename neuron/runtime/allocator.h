// The caching segment allocator: takes large segments from the driver, hands out blocks, keeps freed blocks for reuse
// in the order of the stream they belong to. Thread-safe; never takes the GIL, never waits for one; free() is O(1).
//
// Requests below 1 MiB come from 2 MiB segments (small pool), others from segments of their own or of 20 MiB (large
// pool). A request below 16 MiB is rounded up to a size class: multiples of 256 bytes, from 4 KiB on eight classes to
// each power of two. In a forked child whose parent used the device allocate() raises, and everything else does nothing
// or finds nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "neuron/runtime/block.h"

namespace neuron::runtime {

struct Stat {
  int64_t current = 0, peak = 0, allocated = 0, freed = 0;
};

// Indexes 0 all, 1 small pool, 2 large pool: torch's StatType order.
struct MemoryStatistics {
  Stat allocation[3], segment[3], active[3], inactive_split[3];
  Stat allocated_bytes[3], reserved_bytes[3], active_bytes[3], inactive_split_bytes[3], requested_bytes[3];
  int64_t num_alloc_retries = 0, num_ooms = 0, num_sync_all_streams = 0, num_device_alloc = 0, num_device_free = 0;
};

// A block of at least `bytes` (> 0) on the core, for use in the order of `stream`. When the limit is reached: asks the
// pressure handler to flush and wait, releases cached segments, retries, then throws Error(OutOfMemory) whose text has
// requested, free and total sizes and a table of the largest live blocks.
Block* allocate(int core, size_t bytes, uint64_t stream);
// Returns the block to its stream's cache. The memory may be handed out at once to later commands of the same stream.
void free(Block* block);
// The block was used on another stream: its memory is not reused before that stream passed this point.
void record_stream(Block* block, uint64_t stream);
// The live block that contains the address, or null. Callable on any address.
Block* find_block(const void* address);

MemoryStatistics memory_statistics(int core);
void reset_peak_statistics(int core);
void reset_accumulated_statistics(int core);
// Free and total bytes of the simulated core.
std::pair<size_t, size_t> memory_info(int core);
// Gives unused segments back to the driver (after the work that may use them has finished: the caller synchronises).
void empty_cache(int core);
// Simulated limit per core in bytes.
void set_memory_limit(int core, size_t bytes);
// Called without locks when memory runs out, before the retry: the eager layer flushes and waits there.
void set_pressure_handler(std::function<void(int core)> handler);

struct SegmentInfo {
  void* address;
  size_t size;
  bool large;
  uint64_t stream;
  struct BlockInfo {
    void* address;
    size_t size, requested;
    bool allocated;
    bool held = false;  // freed, but another stream may still use it
  };
  std::vector<BlockInfo> blocks;
};
std::vector<SegmentInfo> memory_snapshot(int core);

// How far streams are: lets memory be reused, or given back, exactly when the commands that may touch it are done.
// Called with an allocator lock held, so it must not allocate device memory and should not lock. Without one, a block
// with record_stream() marks comes back only at empty_cache() or under memory pressure.
class StreamClock {
 public:
  virtual ~StreamClock() = default;
  // A position after everything recorded on the stream so far.
  virtual uint64_t recorded(uint64_t stream) = 0;
  // Whether all that was recorded before the position has finished.
  virtual bool passed(uint64_t stream, uint64_t position) = 0;
};
// The clock must live as long as the process; null removes it.
void set_stream_clock(StreamClock* clock);

}  // namespace neuron::runtime
