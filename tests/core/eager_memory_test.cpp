// The allocator and the streams together: memory that recorded work may still touch is neither reused nor given back
// early.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "neuron/base/error.h"
#include "neuron/eager/recorder.h"
#include "neuron/runtime/allocator.h"

namespace {

using namespace neuron;

constexpr size_t MiB = size_t{1} << 20;

void write_later(eager::Stream& stream, runtime::Block* block, std::atomic<int>& writes) {
  eager::record_callback(stream, [block, address = block->address, &writes] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::memset(address, 1, 4096);
    ++writes;
  });
}

TEST(EagerMemory, PressureFinishesRecordedWorkBeforeSegmentsGo) {
  runtime::set_memory_limit(0, 64 * MiB);
  eager::Stream& stream = eager::default_stream(0);
  std::atomic<int> writes{0};
  for (int round = 1; round <= 3; ++round) {
    runtime::Block* block = runtime::allocate(0, 30 * MiB, eager::stream_id(stream));
    write_later(stream, block, writes);
    runtime::free(block);
    // The cached segment is too small and must go first; the callback above still writes to it.
    runtime::Block* larger = runtime::allocate(0, 50 * MiB, eager::stream_id(stream));
    EXPECT_EQ(writes, round);
    runtime::free(larger);
    eager::synchronize(stream, eager::FlushReason::Explicit);
    runtime::empty_cache(0);
    EXPECT_EQ(runtime::memory_statistics(0).reserved_bytes[0].current, 0);
  }
  EXPECT_EQ(runtime::memory_statistics(0).num_alloc_retries, 3);
}

TEST(EagerMemory, EmptyCacheLeavesWhatIsStillInUse) {
  eager::Stream& stream = eager::default_stream(1);
  std::atomic<int> writes{0};
  runtime::Block* block = runtime::allocate(1, 30 * MiB, eager::stream_id(stream));
  write_later(stream, block, writes);
  runtime::free(block);
  runtime::empty_cache(1);
  EXPECT_EQ(runtime::memory_statistics(1).segment[0].current, 1);
  eager::synchronize(stream, eager::FlushReason::Explicit);
  EXPECT_EQ(writes, 1);
  runtime::empty_cache(1);
  EXPECT_EQ(runtime::memory_statistics(1).segment[0].current, 0);
}

TEST(EagerMemory, AnotherStreamHoldsRecordedMemory) {
  eager::Stream& owner = eager::default_stream(2);
  eager::Stream& user = eager::create_stream(2, 0);
  std::atomic<int> writes{0};
  runtime::Block* block = runtime::allocate(2, 5000, eager::stream_id(owner));
  void* address = block->address;
  write_later(user, block, writes);
  runtime::record_stream(block, eager::stream_id(user));
  runtime::free(block);
  EXPECT_NE(runtime::allocate(2, 5000, eager::stream_id(owner))->address, address);
  eager::synchronize(user, eager::FlushReason::Explicit);
  EXPECT_EQ(writes, 1);
  EXPECT_EQ(runtime::allocate(2, 5000, eager::stream_id(owner))->address, address);
}

}  // namespace
