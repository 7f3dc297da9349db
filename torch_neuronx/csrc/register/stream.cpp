#include "torch_neuronx/csrc/register/stream.h"

#include <c10/util/Exception.h>

#include <array>
#include <mutex>
#include <vector>

#include "torch_neuronx/csrc/register/determinism.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/errors.h"
#include "torch_neuronx/csrc/register/storage.h"

namespace torch_neuronx {
namespace {

namespace eager = neuron::eager;

struct Current {
  eager::Stream* stream = nullptr;
  c10::StreamId id = 0;
};
thread_local std::array<Current, kMaximumDevices> current_streams;

constexpr size_t kPoolSize = 32;
struct Pool {
  std::vector<eager::Stream*> streams;
  size_t next = 0;
};
std::mutex pool_mutex;
std::array<std::array<Pool, 2>, kMaximumDevices> pools;

c10::Stream make_stream(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, index), id);
}

Current& current(c10::DeviceIndex index) {
  Current& slot = current_streams[index];
  if (slot.stream == nullptr) slot.stream = &eager::default_stream(index);
  return slot;
}

}  // namespace

eager::Stream& current_stream(c10::Device device) {
  use_device();
  observe_deterministic_mode();
  return eager::recording_stream(*current(device.has_index() ? device.index() : current_device()).stream);
}

eager::Stream& stream_of(const c10::Stream& stream) { return eager::recording_stream(uncaptured_stream_of(stream)); }

eager::Stream& uncaptured_stream_of(const c10::Stream& stream) {
  TORCH_CHECK(stream.device_type() == kDeviceType, "expected a stream of a neuron device, got ", stream);
  use_device();
  check_device_index(stream.device_index());
  return translate_errors([&]() -> eager::Stream& {
    return stream.id() == 0 ? eager::default_stream(stream.device_index())
                            : eager::stream_by_id(static_cast<uint64_t>(stream.id() - 1));
  });
}

c10::Stream current_c10_stream(c10::DeviceIndex index) {
  check_device_index(index);
  return make_stream(index, current_streams[index].id);
}

c10::Stream default_c10_stream(c10::DeviceIndex index) {
  check_device_index(index);
  return make_stream(index, 0);
}

c10::Stream pooled_c10_stream(c10::DeviceIndex index, int priority) {
  use_device();
  check_device_index(index);
  const std::lock_guard lock(pool_mutex);
  Pool& pool = pools[index][priority < 0 ? 1 : 0];
  if (pool.streams.size() < kPoolSize) {
    pool.streams.push_back(translate_errors([&] { return &eager::create_stream(index, priority); }));
    return make_stream(index, static_cast<c10::StreamId>(eager::stream_id(*pool.streams.back())) + 1);
  }
  eager::Stream* stream = pool.streams[pool.next++ % kPoolSize];
  return make_stream(index, static_cast<c10::StreamId>(eager::stream_id(*stream)) + 1);
}

c10::Stream exchange_stream(const c10::Stream& stream) {
  const c10::DeviceIndex index = stream.device_index();
  const c10::Stream previous = current_c10_stream(index);
  if (previous.id() == stream.id()) return previous;
  eager::Stream& next = uncaptured_stream_of(stream);
  Current& slot = current(index);
  translate_errors([&] { eager::flush(*slot.stream, eager::FlushReason::Explicit); });
  slot = {&next, stream.id()};
  return previous;
}

}  // namespace torch_neuronx
