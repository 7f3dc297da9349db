#include "neuron/runtime/allocator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/runtime/core_allocator.h"
#include "neuron/runtime/process.h"
#include "neuron/runtime/size_classes.h"

namespace {

using namespace neuron::runtime;
using neuron::Error;

constexpr size_t MiB = size_t{1} << 20;

int run_child(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    int result = 9;
    try {
      result = body();
    } catch (const std::exception& error) {
      std::printf("exception: %s\n", error.what());
    }
    std::fflush(nullptr);
    _exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Each test has the allocators of a process to itself.
void in_child(const std::function<void()>& body) {
  EXPECT_EQ(run_child([&] {
              body();
              return ::testing::Test::HasFailure() ? 1 : 0;
            }),
            0);
}

TEST(SizeClasses, RoundedByAtMostAnEighth) {
  EXPECT_EQ(block_size(1), 256u);
  EXPECT_EQ(block_size(256), 256u);
  EXPECT_EQ(block_size(257), 512u);
  EXPECT_EQ(block_size(4096), 4096u);
  EXPECT_EQ(block_size(4097), 4608u);
  EXPECT_EQ(block_size(8192), 8192u);
  EXPECT_EQ(block_size(MiB), MiB);
  EXPECT_EQ(block_size(MiB + 1), MiB + MiB / 8);
  EXPECT_EQ(block_size(16 * MiB + 1), 16 * MiB + 256);
  for (size_t bytes = 1; bytes < 40 * MiB; bytes += 1 + bytes / 37) {
    const size_t size = block_size(bytes);
    EXPECT_GE(size, bytes);
    EXPECT_EQ(size % kGranule, 0u);
    EXPECT_LE(size, std::max(bytes + kGranule - 1, bytes + bytes / 8)) << bytes;
    EXPECT_EQ(block_size(size), size) << bytes;
    EXPECT_GE(segment_size(size), size);
  }
}

TEST(Allocator, BlocksAreAlignedAndCounted) {
  in_child([&] {
    Block* block = allocate(1, 1000, 7);
    EXPECT_EQ(block->size, 1024u);
    EXPECT_EQ(block->requested, 1000u);
    EXPECT_EQ(block->core, 1);
    EXPECT_EQ(block->stream, 7u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->address) % 256, 0u);
    std::memset(block->address, 1, 1000);
    MemoryStatistics stats = memory_statistics(1);
    for (int kind : {0, 1}) {
      EXPECT_EQ(stats.allocation[kind].current, 1);
      EXPECT_EQ(stats.allocated_bytes[kind].current, 1024);
      EXPECT_EQ(stats.requested_bytes[kind].current, 1000);
      EXPECT_EQ(stats.active_bytes[kind].peak, 1024);
      EXPECT_EQ(stats.segment[kind].current, 1);
      EXPECT_EQ(stats.reserved_bytes[kind].current, static_cast<int64_t>(2 * MiB));
      EXPECT_EQ(stats.inactive_split[kind].current, 1);
      EXPECT_EQ(stats.inactive_split_bytes[kind].current, static_cast<int64_t>(2 * MiB - 1024));
    }
    EXPECT_EQ(stats.allocation[2].current, 0);
    EXPECT_EQ(stats.num_device_alloc, 1);
    EXPECT_EQ(memory_statistics(0).allocation[0].current, 0);
    neuron::runtime::free(block);
    stats = memory_statistics(1);
    EXPECT_EQ(stats.allocation[0].current, 0);
    EXPECT_EQ(stats.allocation[0].freed, 1);
    EXPECT_EQ(stats.allocation[0].peak, 1);
    EXPECT_EQ(stats.allocated_bytes[0].current, 0);
    EXPECT_EQ(stats.inactive_split[0].current, 0);
    EXPECT_EQ(stats.reserved_bytes[0].current, static_cast<int64_t>(2 * MiB));
    reset_peak_statistics(1);
    EXPECT_EQ(memory_statistics(1).allocation[0].peak, 0);
    reset_accumulated_statistics(1);
    EXPECT_EQ(memory_statistics(1).allocation[0].allocated, 0);
    EXPECT_EQ(memory_statistics(1).num_device_alloc, 0);
    empty_cache(1);
    EXPECT_EQ(memory_statistics(1).reserved_bytes[0].current, 0);
    EXPECT_EQ(memory_statistics(1).num_device_free, 1);
  });
}

TEST(Allocator, ReusesAtOnceWithinTheStreamOnly) {
  in_child([&] {
    Block* first = allocate(0, 5000, 0);
    void* address = first->address;
    const uint64_t generation = first->generation;
    neuron::runtime::free(first);
    Block* other = allocate(0, 5000, 1);
    EXPECT_NE(other->address, address);
    Block* again = allocate(0, 5000, 0);
    EXPECT_EQ(again->address, address);
    EXPECT_GT(again->generation, generation);
    again->dead_generation = again->generation.load();
    neuron::runtime::free(again);
    const Block* third = allocate(0, 5000, 0);
    EXPECT_NE(third->dead_generation, third->generation);
  });
}

TEST(Allocator, PoolsAndSegments) {
  in_child([&] {
    allocate(0, 1 * MiB - 1, 0);  // rounds to 1 MiB: large
    EXPECT_EQ(memory_statistics(0).segment[2].current, 1);
    EXPECT_EQ(memory_statistics(0).reserved_bytes[2].current, static_cast<int64_t>(20 * MiB));
    allocate(0, 900000, 0);
    EXPECT_EQ(memory_statistics(0).segment[1].current, 1);
    Block* own = allocate(0, 33 * MiB + MiB / 2, 0);
    EXPECT_EQ(own->size, 34 * MiB);  // less than 1 MiB of the segment would be left over
    EXPECT_EQ(memory_statistics(0).reserved_bytes[0].current, static_cast<int64_t>((20 + 2 + 34) * MiB));
    neuron::runtime::free(own);
    // The free segment is divided for smaller requests and joined again.
    Block* part = allocate(0, 20 * MiB, 0);
    EXPECT_EQ(part->address, own->address);
    EXPECT_EQ(part->size, 20 * MiB);
    neuron::runtime::free(part);
    EXPECT_EQ(allocate(0, 34 * MiB, 0)->address, own->address);
  });
}

// Steps of a loop that take the same small blocks get the same addresses, whatever larger blocks do meanwhile.
TEST(Allocator, TheSmallestBlocksKeepTheirPlaces) {
  in_child([&] {
    std::vector<void*> places[4];
    std::vector<Block*> kept;
    for (int step = 0; step < 4; ++step) {
      std::vector<Block*> blocks;
      for (int i = 0; i < 8; ++i) {
        blocks.push_back(allocate(0, 256 + 1024 * i, 0));
        places[step].push_back(blocks.back()->address);
        Block* grown = allocate(0, 20000 + 4096 * step + 256 * i, 0);
        if (kept.size() >= 8) {
          neuron::runtime::free(kept.front());
          kept.erase(kept.begin());
        }
        kept.push_back(grown);
      }
      for (Block* block : blocks) neuron::runtime::free(block);
      EXPECT_EQ(places[step], places[0]);
    }
    EXPECT_EQ(memory_statistics(0).segment[1].current, 2);
    EXPECT_EQ(memory_statistics(0).segment[2].current, 0);
  });
}

TEST(Allocator, NeighboursAreJoinedInEveryOrder) {
  in_child([&] {
    std::vector<int> order{0, 1, 2, 3};
    do {
      std::vector<Block*> blocks;
      for (int i = 0; i < 4; ++i) blocks.push_back(allocate(0, 512 << 10, 0));
      EXPECT_EQ(memory_statistics(0).segment[1].current, 1);
      for (int i : order) neuron::runtime::free(blocks[i]);
      const auto segments = memory_snapshot(0);
      EXPECT_EQ(segments.size(), 1u);
      EXPECT_EQ(segments[0].blocks.size(), 1u);
      EXPECT_EQ(segments[0].blocks[0].size, 2 * MiB);
      EXPECT_EQ(memory_statistics(0).inactive_split_bytes[0].current, 0);
    } while (std::next_permutation(order.begin(), order.end()));
  });
}

TEST(Allocator, FindsTheBlockOfAnAddress) {
  in_child([&] {
    int local = 0;
    EXPECT_EQ(find_block(&local), nullptr);
    std::vector<Block*> blocks;
    for (size_t bytes : {256, 700, 4096, 100000, 3000000, 3000000, 50000000}) blocks.push_back(allocate(2, bytes, 0));
    for (Block* block : blocks) {
      char* address = static_cast<char*>(block->address);
      EXPECT_EQ(find_block(address), block);
      EXPECT_EQ(find_block(address + block->size / 2), block);
      EXPECT_EQ(find_block(address + block->size - 1), block);
      EXPECT_NE(find_block(address + block->size), block);
    }
    EXPECT_EQ(find_block(nullptr), nullptr);
    EXPECT_EQ(find_block(&local), nullptr);
    neuron::runtime::free(blocks[2]);
    EXPECT_EQ(find_block(blocks[2]->address), nullptr);
  });
}

TEST(Allocator, SnapshotCoversEverySegment) {
  in_child([&] {
    Block* live = allocate(0, 1000, 3);
    Block* gone = allocate(0, 3 * MiB, 3);
    neuron::runtime::free(gone);
    auto segments = memory_snapshot(0);
    std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
    EXPECT_EQ(segments.size(), 2u);
    if (segments.size() != 2) return;
    EXPECT_FALSE(segments[0].large);
    EXPECT_TRUE(segments[1].large);
    EXPECT_EQ(segments[0].stream, 3u);
    EXPECT_EQ(segments[0].blocks.size(), 2u);
    EXPECT_EQ(segments[0].blocks[0].address, live->address);
    EXPECT_EQ(segments[0].blocks[0].requested, 1000u);
    EXPECT_TRUE(segments[0].blocks[0].allocated);
    EXPECT_FALSE(segments[0].blocks[1].allocated);
    EXPECT_EQ(segments[1].blocks.size(), 1u);
    EXPECT_EQ(segments[1].blocks[0].size, 20 * MiB);
  });
}

TEST(Allocator, OutOfMemoryAsksReleasesRetriesAndExplains) {
  in_child([&] {
    set_memory_limit(0, 64 * MiB);
    EXPECT_EQ(memory_info(0), (std::pair<size_t, size_t>(64 * MiB, 64 * MiB)));
    Block* kept = allocate(0, 30 * MiB, 0);
    Block* cached = allocate(0, 30 * MiB, 0);
    EXPECT_EQ(memory_info(0).first, 4 * MiB);
    neuron::runtime::free(cached);
    // The cached segment is too small: it is given back, and the retry succeeds.
    Block* larger = allocate(0, 34 * MiB, 0);
    EXPECT_EQ(larger->size, 34 * MiB);
    EXPECT_EQ(memory_statistics(0).num_alloc_retries, 1);
    EXPECT_EQ(memory_statistics(0).num_ooms, 0);
    std::string message;
    try {
      allocate(0, 100 * MiB, 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), neuron::ErrorKind::OutOfMemory);
      message = error.what();
    }
    const std::string start =
        "Neuron out of memory. Tried to allocate 100.00 MiB. Device neuron:0 has a total capacity of 64.00 MiB of "
        "which "
        "0 bytes is free. Of the allocated memory 64.00 MiB is in 2 live blocks, and 0 bytes is reserved but "
        "unallocated "
        "(largest piece 0 bytes).\nNeuron OOM: requested_size=104857600 total_hbm=67108864\nLargest live blocks:\n";
    EXPECT_EQ(message.substr(0, start.size()), start);
    EXPECT_NE(message.find("34.00 MiB"), std::string::npos);
    EXPECT_LT(message.find("34.00 MiB", start.size()), message.find("30.00 MiB", start.size()));
    EXPECT_EQ(memory_statistics(0).num_ooms, 1);
    EXPECT_EQ(memory_statistics(0).num_alloc_retries, 2);
    // The handler can make room.
    int asked = -1;
    set_pressure_handler([&](int core) {
      asked = core;
      if (kept != nullptr) neuron::runtime::free(kept);
      kept = nullptr;
    });
    allocate(0, 20 * MiB, 0);
    EXPECT_EQ(asked, 0);
    set_pressure_handler(nullptr);
  });
}

TEST(Allocator, AbsurdSizesAreOutOfMemory) {
  in_child([&] {
    for (size_t bytes : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 47, size_t{1} << 46}) {
      try {
        allocate(0, bytes, 0);
        ADD_FAILURE() << bytes;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), neuron::ErrorKind::OutOfMemory);
      }
    }
    try {
      allocate(4, 1, 0);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "no core 4: this process has the cores 0 to 3");
    }
  });
}

TEST(Allocator, NearTheLimitSegmentsAreSmaller) {
  in_child([&] {
    set_memory_limit(0, 6 * MiB);
    Block* block = allocate(0, 3 * MiB, 0);
    EXPECT_EQ(memory_statistics(0).reserved_bytes[0].current, static_cast<int64_t>(4 * MiB));
    neuron::runtime::free(block);
  });
}

TEST(Allocator, TheTableHasTenRows) {
  in_child([&] {
    set_memory_limit(0, 40 * MiB);
    for (int i = 0; i < 15; ++i) allocate(0, MiB, 0);
    try {
      allocate(0, 30 * MiB, 0);
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3 + 10);
    }
  });
}

class Clock final : public StreamClock {
 public:
  uint64_t recorded(uint64_t stream) override { return now[stream]; }
  bool passed(uint64_t stream, uint64_t position) override { return done[stream] >= position; }
  std::map<uint64_t, uint64_t> now, done;
};

TEST(Allocator, RecordStreamHoldsTheMemoryBack) {
  in_child([&] {
    static Clock clock;
    set_stream_clock(&clock);
    clock.now[1] = 5;
    clock.done[1] = 4;
    Block* block = allocate(0, 5000, 0);
    void* address = block->address;
    record_stream(block, 0);  // its own stream: nothing to wait for
    record_stream(block, 1);
    record_stream(block, 1);
    neuron::runtime::free(block);
    EXPECT_EQ(memory_statistics(0).allocation[0].current, 0);
    EXPECT_EQ(memory_statistics(0).active[0].current, 1);
    EXPECT_TRUE(memory_snapshot(0)[0].blocks[0].held);
    EXPECT_EQ(find_block(address), nullptr);
    EXPECT_NE(allocate(0, 5000, 0)->address, address);
    clock.done[1] = 5;
    EXPECT_EQ(allocate(0, 5000, 0)->address, address);
    EXPECT_EQ(memory_statistics(0).active[0].current, 2);
    // A use of an earlier owner is forgotten.
    neuron::runtime::free(find_block(address));
    clock.now[1] = 9;
    EXPECT_EQ(allocate(0, 5000, 0)->address, address);
    set_stream_clock(nullptr);
  });
}

TEST(Allocator, WithoutAClockHeldMemoryComesBackWhenTheCallerSynchronised) {
  in_child([&] {
    Block* block = allocate(0, 5000, 0);
    record_stream(block, 1);
    neuron::runtime::free(block);
    empty_cache(0);
    EXPECT_EQ(memory_statistics(0).reserved_bytes[0].current, 0);
    EXPECT_EQ(memory_statistics(0).active[0].current, 0);
  });
}

TEST(Allocator, SegmentsInUseByUnfinishedCommandsStay) {
  in_child([&] {
    static Clock clock;
    set_stream_clock(&clock);
    clock.now[0] = 3;
    Block* block = allocate(0, 5000, 0);
    neuron::runtime::free(block);
    empty_cache(0);
    EXPECT_EQ(memory_statistics(0).segment[0].current, 1);
    clock.done[0] = 3;
    empty_cache(0);
    EXPECT_EQ(memory_statistics(0).segment[0].current, 0);
    set_stream_clock(nullptr);
  });
}

TEST(Allocator, SegmentConfig) {
  EXPECT_EQ(parse_segment_config("").max_split_size, SIZE_MAX);
  const SegmentConfig config = parse_segment_config("kMaxSplitSizeBytes=268435456,kMaxNonSplitRoundingBytes=67108864");
  EXPECT_EQ(config.max_split_size, 256 * MiB);
  EXPECT_EQ(config.max_non_split_rounding, 64 * MiB);
  auto message = [](const char* text) -> std::string {
    try {
      parse_segment_config(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(
      message("max_split=1"),
      "TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG=max_split=1 is not a valid setting: allowed are, separated by commas, "
      "kMaxSplitSizeBytes=<bytes>, kMaxNonSplitRoundingBytes=<bytes>; got max_split=1");
  EXPECT_EQ(
      message("kMaxSplitSizeBytes=5"),
      "TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG=kMaxSplitSizeBytes=5 is not a valid setting: kMaxSplitSizeBytes is at "
      "least 20971520, the size of a segment");
  EXPECT_NE(message("kMaxSplitSizeBytes"), "");
  in_child([&] {
    CoreAllocator allocator(0, size_t{1} << 30,
                            parse_segment_config("kMaxSplitSizeBytes=32MiB,kMaxNonSplitRoundingBytes=4MiB"));
    Block* large = allocator.allocate(64 * MiB, 0);
    void* address = large->address;
    allocator.free(large);
    Block* small = allocator.allocate(8 * MiB, 0);
    EXPECT_NE(small->address, address);  // not divided
    Block* less = allocator.allocate(40 * MiB, 0);
    EXPECT_NE(less->address, address);  // too much would be wasted
    Block* close = allocator.allocate(61 * MiB, 0);
    EXPECT_EQ(close->address, address);
    EXPECT_EQ(close->size, 64 * MiB);
  });
}

TEST(Allocator, ForkedChild) {
  in_child([&] {
    Block* block = allocate(0, 1000, 0);
    EXPECT_EQ(run_child([&] {
                record_stream(block, 1);
                neuron::runtime::free(block);
                neuron::runtime::free(block);  // does nothing, twice
                if (find_block(block->address) != nullptr) return 2;
                if (memory_statistics(0).allocation[0].current != 0 || !memory_snapshot(0).empty()) return 3;
                empty_cache(0);
                try {
                  allocate(0, 1, 0);
                } catch (const Error& error) {
                  return error.kind() == neuron::ErrorKind::Runtime ? 0 : 4;
                }
                return 5;
              }),
              0);
    EXPECT_EQ(memory_statistics(0).allocation[0].current, 1);
  });
}

TEST(Allocator, QueriesDoNotUseTheDevice) {
  in_child([&] {
    memory_statistics(0);
    memory_snapshot(0);
    find_block(nullptr);
    empty_cache(0);
    EXPECT_FALSE(runtime_used());
  });
}

// Sums over the snapshot must agree with the statistics, whatever happened before.
void check_consistency(int core) {
  const MemoryStatistics stats = memory_statistics(core);
  int64_t live = 0, live_bytes = 0, reserved = 0, split = 0, split_bytes = 0, requested = 0;
  for (const SegmentInfo& segment : memory_snapshot(core)) {
    size_t end = reinterpret_cast<uintptr_t>(segment.address);
    bool previous_free = false;
    for (const auto& block : segment.blocks) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block.address), end);
      end += block.size;
      const bool is_free = !block.allocated && !block.held;
      EXPECT_FALSE(is_free && previous_free) << "free neighbours were not joined";
      previous_free = is_free;
      if (block.allocated) {
        ++live;
        live_bytes += static_cast<int64_t>(block.size);
        requested += static_cast<int64_t>(block.requested);
      } else if (is_free && segment.blocks.size() > 1) {
        ++split;
        split_bytes += static_cast<int64_t>(block.size);
      }
    }
    EXPECT_EQ(end, reinterpret_cast<uintptr_t>(segment.address) + segment.size);
    reserved += static_cast<int64_t>(segment.size);
  }
  EXPECT_EQ(stats.allocation[0].current, live);
  EXPECT_EQ(stats.allocated_bytes[0].current, live_bytes);
  EXPECT_EQ(stats.requested_bytes[0].current, requested);
  EXPECT_EQ(stats.reserved_bytes[0].current, reserved);
  EXPECT_EQ(stats.inactive_split[0].current, split);
  EXPECT_EQ(stats.inactive_split_bytes[0].current, split_bytes);
  for (int i : {0, 1, 2}) EXPECT_GE(stats.reserved_bytes[i].current, stats.allocated_bytes[i].current);
}

TEST(Allocator, RandomUseKeepsTheBooksAndTheData) {
  in_child([&] {
    set_memory_limit(0, 256 * MiB);
    std::mt19937_64 random(1);
    struct Owned {
      Block* block;
      uint32_t mark;
    };
    std::vector<Owned> owned;
    uint32_t next_mark = 1;
    auto word = [](const Owned& one, bool last) -> uint32_t& {
      char* address = static_cast<char*>(one.block->address);
      return *reinterpret_cast<uint32_t*>(last ? address + one.block->requested / 4 * 4 - 4 : address);
    };
    for (int step = 0; step < 10000; ++step) {
      if (owned.empty() || random() % 100 < 52) {
        const size_t bytes = 4 + static_cast<size_t>(std::exp2(static_cast<double>(random() % 2400) / 100.0));
        try {
          Owned one{allocate(0, bytes, random() % 3), next_mark++};
          word(one, false) = word(one, true) = one.mark;
          owned.push_back(one);
        } catch (const Error&) {
          while (owned.size() > 10) {
            neuron::runtime::free(owned.back().block);
            owned.pop_back();
          }
        }
      } else {
        std::swap(owned[random() % owned.size()], owned.back());
        const Owned one = owned.back();
        owned.pop_back();
        if (word(one, true) != one.mark || find_block(one.block->address) != one.block) {
          ADD_FAILURE() << "block overwritten at step " << step;
          return;
        }
        neuron::runtime::free(one.block);
      }
      if (step % 1000 == 0) check_consistency(0);
      if (step % 4000 == 0) empty_cache(0);
    }
    for (const Owned& one : owned) neuron::runtime::free(one.block);
    check_consistency(0);
    empty_cache(0);
    EXPECT_EQ(memory_statistics(0).reserved_bytes[0].current, 0);
  });
}

// The child of a sanitised process may not start threads: this test runs in the process itself.
TEST(AllocatorThreads, ManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<Block*> owned;
      for (int step = 0; step < 2000; ++step) {
        if (owned.size() < 20 && random() % 2 == 0) {
          owned.push_back(allocate(t % 2, 1 + random() % 100000, static_cast<uint64_t>(t % 3)));
          *static_cast<int*>(owned.back()->address) = t;
        } else if (!owned.empty()) {
          EXPECT_EQ(*static_cast<int*>(owned.back()->address), t);
          EXPECT_EQ(find_block(owned.back()->address), owned.back());
          neuron::runtime::free(owned.back());
          owned.pop_back();
        }
        if (step % 500 == 0) memory_statistics(t % 2);
      }
      for (Block* block : owned) neuron::runtime::free(block);
    });
  }
  for (auto& thread : threads) thread.join();
  for (int core : {0, 1}) check_consistency(core);
}

TEST(AllocatorSpeed, AllocateAndFree) {
  for (size_t bytes : {size_t{1000}, 64 * MiB / 64, 3 * MiB, 40 * MiB}) {
    constexpr int kRounds = 20000;
    double best = 1e9;
    for (int repeat = 0; repeat < 5; ++repeat) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kRounds; ++i) neuron::runtime::free(allocate(3, bytes, 0));
      best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
    }
    std::printf("allocate + free of %zu bytes: %.0f ns\n", bytes, best / kRounds);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    EXPECT_LT(best / kRounds, 400);
#endif
  }
}

}  // namespace
