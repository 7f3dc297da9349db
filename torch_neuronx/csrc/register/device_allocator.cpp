// torch's allocator interface over the caching segment allocator of the core, the deleter of device memory, and the
// hook that runs when a device pointer becomes visible to foreign code.
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "neuron/eager/recorder.h"
#include "neuron/runtime/allocator.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/errors.h"
#include "torch_neuronx/csrc/register/memory_history.h"
#include "torch_neuronx/csrc/register/storage.h"
#include "torch_neuronx/csrc/register/stream.h"

namespace torch_neuronx {
namespace {

namespace eager = neuron::eager;
namespace runtime = neuron::runtime;

void report_to_profiler(const runtime::Block& block, int64_t bytes) {
  if (!c10::memoryProfilingEnabled()) [[likely]]
    return;
  const runtime::MemoryStatistics statistics = runtime::memory_statistics(block.core);
  c10::reportMemoryUsageToProfiler(block.address, bytes, static_cast<size_t>(statistics.allocated_bytes[0].current),
                                   static_cast<size_t>(statistics.reserved_bytes[0].current),
                                   c10::Device(kDeviceType, static_cast<c10::DeviceIndex>(block.core)));
}

void convert(c10::CachingAllocator::StatArray& target, const runtime::Stat (&source)[3]) {
  for (size_t i = 0; i < 3; ++i) {
    target[i].current = source[i].current;
    target[i].peak = source[i].peak;
    target[i].allocated = source[i].allocated;
    target[i].freed = source[i].freed;
  }
}

struct NeuronAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(kDeviceType, current_device());
    if (bytes == 0) {
      check_device_index(device.index());
      return {nullptr, device};
    }
    return translate_errors([&]() -> c10::DataPtr {
      eager::Stream& stream = current_stream(device);
      runtime::Block* block = nullptr;
      try {
        block = runtime::allocate(device.index(), bytes, eager::stream_id(stream));
      } catch (const neuron::Error& error) {
        if (error.kind() == neuron::ErrorKind::OutOfMemory) note_out_of_memory(device.index(), bytes);
        throw;
      }
      note_allocation(*block);
      report_to_profiler(*block, static_cast<int64_t>(block->size));
      return {block->address, block, &release_block, device};
    });
  }
  // The context of our pointers is the block, not the address: the raw interface is not offered.
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    // Allocator::clone: both sides must be complete and visible.
    for (const void* address : {static_cast<const void*>(target), source}) {
      const runtime::Block* block = runtime::find_block(address);
      if (block == nullptr) continue;
      translate_errors([&] { eager::synchronize_core(block->core, eager::FlushReason::RawPointer); });
    }
    default_copy_data(target, source, bytes);
  }

  bool initialized() override { return device_used(); }
  void emptyCache(c10::MempoolId_t) override {
    if (!device_used()) return;
    translate_errors([] {
      for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
        eager::synchronize_core(index, eager::FlushReason::Synchronize);
        runtime::empty_cache(index);
      }
    });
  }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    if (data.get_deleter() != &release_block) return;
    translate_errors([&] {
      runtime::record_stream(static_cast<runtime::Block*>(data.get_context()), eager::stream_id(stream_of(stream)));
    });
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    check_device_index(index);
    const runtime::MemoryStatistics source = runtime::memory_statistics(index);
    c10::CachingDeviceAllocator::DeviceStats stats;
    convert(stats.allocation, source.allocation);
    convert(stats.segment, source.segment);
    convert(stats.active, source.active);
    convert(stats.inactive_split, source.inactive_split);
    convert(stats.allocated_bytes, source.allocated_bytes);
    convert(stats.reserved_bytes, source.reserved_bytes);
    convert(stats.active_bytes, source.active_bytes);
    convert(stats.inactive_split_bytes, source.inactive_split_bytes);
    convert(stats.requested_bytes, source.requested_bytes);
    stats.num_alloc_retries = source.num_alloc_retries;
    stats.num_ooms = source.num_ooms;
    stats.num_sync_all_streams = source.num_sync_all_streams;
    stats.num_device_alloc = source.num_device_alloc;
    stats.num_device_free = source.num_device_free;
    stats.max_split_size = -1;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    check_device_index(index);
    runtime::reset_accumulated_statistics(index);
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    check_device_index(index);
    runtime::reset_peak_statistics(index);
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    check_device_index(index);
    return runtime::memory_info(index);
  }
};

NeuronAllocator& allocator() {
  static auto* instance = new NeuronAllocator;  // leaked: storages may outlive static destruction
  return *instance;
}

[[maybe_unused]] const bool registered = [] {
  c10::SetAllocator(kDeviceType, &allocator());
  return true;
}();

}  // namespace

void release_block(void* context) {
  // After a fork or the end of the device nobody may touch the blocks: the memory goes with the process.
  if (!device_alive()) return;
  auto* block = static_cast<runtime::Block*>(context);
  note_release(*block);
  report_to_profiler(*block, -static_cast<int64_t>(block->size));
  eager::record_death(block);
  runtime::free(block);
}

void export_storage(c10::StorageImpl* storage) {
  runtime::Block* block = block_of(*storage);
  if (block == nullptr || !device_used()) return;
  translate_errors([&] {
    eager::Stream& current = current_stream(c10::Device(kDeviceType, static_cast<c10::DeviceIndex>(block->core)));
    // An address may be taken during a capture; what lies there is written by the replays.
    if (eager::capturing_graph(current) != nullptr) return eager::export_block(block);
    // Work on the block may be pending on the thread's stream and on the one it was allocated for.
    if (block->stream != eager::stream_id(current)) {
      eager::synchronize(eager::stream_by_id(block->stream), eager::FlushReason::RawPointer);
    }
    eager::synchronize_for_read(current, block, eager::FlushReason::RawPointer);
    eager::export_block(block);
  });
}

}  // namespace torch_neuronx
