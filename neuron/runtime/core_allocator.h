// The allocator of one logical core. Everything happens under one lock that is held for tens of nanoseconds, except
// when a segment comes from or goes to the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "neuron/runtime/allocator.h"
#include "neuron/runtime/block_links.h"
#include "neuron/runtime/device.h"
#include "neuron/runtime/free_lists.h"
#include "neuron/runtime/size_classes.h"

namespace neuron::runtime {

// TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG.
struct SegmentConfig {
  size_t max_split_size = SIZE_MAX;          // cached blocks from this size on are not divided
  size_t max_non_split_rounding = SIZE_MAX;  // how much larger than the request such a block may be
};
SegmentConfig parse_segment_config(const std::string& text);

// Free blocks of one stream; `kind` is the index into the statistics.
struct StreamPool {
  uint64_t stream = 0;
  int kind = 1;
  FreeLists free;
};

struct Segment {
  char* address = nullptr;
  size_t size = 0;
  Tensor* tensor = nullptr;
  StreamPool* pool = nullptr;
  Block* first = nullptr;
  std::unique_ptr<Block*[]> starts;  // small pool: by granule, the block that begins there
};

// Positions of other streams that a freed block waits for.
struct StreamUses {
  std::vector<std::pair<uint64_t, uint64_t>> positions;  // stream, position
};

class CoreAllocator {
 public:
  CoreAllocator(int core, size_t limit, SegmentConfig config);

  // Null when neither the cache nor the driver has room.
  Block* allocate(size_t bytes, uint64_t stream);
  void free(Block* block);
  void record_stream(Block* block, uint64_t stream);
  Block* find(const void* address);

  // Gives back segments without live blocks whose stream has passed its last use; all of them when there is no clock.
  void release_cached();

  void count_retry();
  // Counts a failure and describes it.
  std::string out_of_memory(size_t bytes);

  MemoryStatistics statistics();
  void reset_peak();
  void reset_accumulated();
  std::pair<size_t, size_t> free_and_total();
  void set_limit(size_t bytes);
  std::vector<SegmentInfo> snapshot();

 private:
  struct StreamPools {
    // The smallest blocks do not lie among larger ones: where those of a loop's step come from is then the same in each
    // step though other sizes grow, and so are the hazards between its commands.
    StreamPool tiny, small, large;
  };

  StreamPool& pool_for(size_t size, uint64_t stream);
  Block* take_cached(StreamPool& pool, size_t size);
  Block* take_segment(StreamPool& pool, size_t size);
  Segment* map_segment(StreamPool& pool, size_t size);
  Block* hand_out(Block* block, size_t size, size_t requested);
  void split(Block* block, size_t size);
  void put_free(Block* block);
  void absorb_next(Block* block);
  void release_held(bool all);
  void release_segment(Segment* segment);
  Block* new_block(Segment* segment, char* address, size_t size);
  void retire_block(Block* block);
  void note_start(Block* block, bool begins);
  bool may_split(const StreamPool& pool, size_t block_size, size_t size) const;

  const int core_;
  const SegmentConfig config_;
  std::mutex mutex_;
  size_t limit_;
  size_t reserved_ = 0;
  std::map<uint64_t, std::unique_ptr<StreamPools>> pools_;
  StreamPools* recent_pools_ = nullptr;  // of the stream of the last request
  uint64_t recent_stream_ = 0;
  std::map<uintptr_t, std::unique_ptr<Segment>> segments_;
  std::vector<std::unique_ptr<Block[]>> block_chunks_;
  std::vector<Block*> spare_blocks_;
  std::vector<Block*> held_;
  MemoryStatistics statistics_;
};

// The clock in use, or null.
StreamClock* stream_clock();

}  // namespace neuron::runtime
