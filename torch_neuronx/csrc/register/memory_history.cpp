#include "torch_neuronx/csrc/register/memory_history.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>

#include "neuron/runtime/allocator.h"

namespace torch_neuronx {
namespace {

std::atomic<size_t> limit{0};
std::mutex mutex;
std::deque<MemoryEvent> events;

int64_t now_microseconds() {
  using std::chrono::duration_cast, std::chrono::microseconds, std::chrono::system_clock;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

void append(const MemoryEvent& event) {
  const std::lock_guard lock(mutex);
  events.push_back(event);
  while (events.size() > limit.load()) events.pop_front();
}

bool recording() { return limit.load(std::memory_order_relaxed) != 0; }

void note(std::string_view action, const neuron::runtime::Block& block) {
  append(
      {action, block.core, reinterpret_cast<uintptr_t>(block.address), block.size, block.stream, now_microseconds()});
}

}  // namespace

void set_memory_history(size_t new_limit) {
  const std::lock_guard lock(mutex);
  limit.store(new_limit);
  if (new_limit == 0) events.clear();
}

std::vector<MemoryEvent> memory_history() {
  const std::lock_guard lock(mutex);
  return {events.begin(), events.end()};
}

void note_allocation(const neuron::runtime::Block& block) {
  if (recording()) [[unlikely]]
    note("alloc", block);
}

void note_release(const neuron::runtime::Block& block) {
  if (!recording()) [[likely]]
    return;
  note("free_requested", block);
  note("free_completed", block);
}

void note_out_of_memory(int core, size_t requested) {
  // For "oom" the viewer expects the free bytes in place of the address.
  if (recording()) append({"oom", core, neuron::runtime::memory_info(core).first, requested, 0, now_microseconds()});
}

}  // namespace torch_neuronx
