#include "torch_neuronx/csrc/register/host_allocator.h"

#include <ATen/core/CachingHostAllocator.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "neuron/eager/recorder.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/errors.h"
#include "torch_neuronx/csrc/register/stream.h"

namespace torch_neuronx {
namespace {

namespace eager = neuron::eager;
constexpr size_t kPage = 4096;

// Address ranges handed out, to answer is_pinned() for any pointer into them.
class PinnedRanges {
 public:
  void add(const void* address, size_t size) {
    const std::lock_guard lock(mutex_);
    ranges_[reinterpret_cast<uintptr_t>(address)] = size;
  }
  void remove(const void* address) {
    const std::lock_guard lock(mutex_);
    ranges_.erase(reinterpret_cast<uintptr_t>(address));
  }
  bool contains(const void* address) {
    const auto value = reinterpret_cast<uintptr_t>(address);
    const std::lock_guard lock(mutex_);
    auto after = ranges_.upper_bound(value);
    if (after == ranges_.begin()) return false;
    --after;
    return value < after->first + after->second;
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, size_t> ranges_;
};

// Leaked: tensors may outlive static destruction.
PinnedRanges& ranges() {
  static auto* instance = new PinnedRanges;
  return *instance;
}

using PinnedBlock = at::HostBlock<c10::Stream>;

struct PinnedAllocatorImpl final
    : at::CachingHostAllocatorImpl<c10::Stream, std::shared_ptr<eager::Event>, PinnedBlock> {
 private:
  void allocate_host_memory(size_t size, void** address) override {
    *address = nullptr;
    const size_t rounded = (size + kPage - 1) / kPage * kPage;
    TORCH_CHECK_WITH(OutOfMemoryError, ::posix_memalign(address, kPage, rounded) == 0, "cannot allocate ", rounded,
                     " bytes of pinned host memory");
    ranges().add(*address, rounded);
  }
  void free_block(PinnedBlock* block) override {
    ranges().remove(block->ptr_);
    std::free(block->ptr_);
  }
  void record_stream(std::optional<std::vector<std::shared_ptr<eager::Event>>>& events, c10::Stream stream) override {
    if (!device_alive()) return;
    translate_errors([&] {
      std::shared_ptr<eager::Event> event = eager::create_event(false);
      eager::record_event(stream_of(stream), event);
      if (!events) events.emplace();
      events->push_back(std::move(event));
    });
  }
  bool query_event(std::shared_ptr<eager::Event>& event) override {
    return translate_errors([&] { return eager::query_event(*event); });
  }
  c10::Stream get_current_stream() const override { return current_c10_stream(current_device()); }
  bool stream_is_capturing(c10::Stream) const override { return false; }
};

void release_pinned(void* block);
struct PinnedAllocator final : at::CachingHostAllocatorInterface<PinnedAllocatorImpl, release_pinned> {};
PinnedAllocator& pinned_allocator() {
  static auto* instance = new PinnedAllocator;
  return *instance;
}
void release_pinned(void* block) {
  if (device_alive()) pinned_allocator().free(block);
}

[[maybe_unused]] const at::HostAllocatorRegistry<kDeviceType> registered(&pinned_allocator());

}  // namespace

bool is_pinned(const void* address) { return ranges().contains(address); }

}  // namespace torch_neuronx
