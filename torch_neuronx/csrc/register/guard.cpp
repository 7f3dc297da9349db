// The device guard: devices, streams and events as torch's own code sees them (autograd, futures, torch.Stream).
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <memory>

#include "neuron/eager/recorder.h"
#include "neuron/runtime/allocator.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/errors.h"
#include "torch_neuronx/csrc/register/storage.h"
#include "torch_neuronx/csrc/register/stream.h"

namespace torch_neuronx {
namespace {

namespace eager = neuron::eager;

// torch keeps an event as a void*: it points to one of these.
using EventHolder = std::shared_ptr<eager::Event>;
EventHolder& event_of(void* event) { return *static_cast<EventHolder*>(event); }

c10::DeviceCapability supported_types() {
  c10::DeviceCapability capability;
  uint64_t bits = 0;
  for (const c10::ScalarTypeIndex type :
       {c10::kIndex_Byte, c10::kIndex_Char, c10::kIndex_Short, c10::kIndex_Int, c10::kIndex_Long, c10::kIndex_Half,
        c10::kIndex_Float, c10::kIndex_Double, c10::kIndex_ComplexFloat, c10::kIndex_ComplexDouble, c10::kIndex_Bool,
        c10::kIndex_BFloat16, c10::kIndex_Float8_e5m2, c10::kIndex_Float8_e4m3fn, c10::kIndex_UInt16,
        c10::kIndex_UInt32, c10::kIndex_UInt64}) {
    bits |= 1ULL << type;
  }
  capability.capability_data.capability_bits = bits;
  return capability;
}

struct NeuronGuardImpl final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDeviceType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device previous = getDevice();
    setDevice(device);
    return previous;
  }
  c10::Device getDevice() const override { return {kDeviceType, current_device()}; }
  void setDevice(c10::Device device) const override {
    if (device.index() != current_device()) set_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override { set_device_unchecked(device.index()); }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return supported_types(); }

  c10::Stream getStream(c10::Device device) const override { return current_c10_stream(resolve_index(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override { return default_c10_stream(resolve_index(device)); }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return pooled_c10_stream(resolve_index(device), priority);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return pooled_c10_stream(resolve_index(device), high_priority ? -1 : 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return &uncaptured_stream_of(stream); }

  bool queryStream(const c10::Stream& stream) const override {
    return !device_used() || translate_errors([&] { return eager::query(stream_of(stream)); });
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    translate_errors([&] { eager::synchronize(stream_of(stream), eager::FlushReason::Synchronize); });
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    check_device_index(index);
    use_device();
    translate_errors([&] { eager::synchronize_core(index, eager::FlushReason::Synchronize); });
  }
  bool isStreamCapturing(const c10::Stream& stream) const override {
    return device_used() && eager::capturing_graph(uncaptured_stream_of(stream)) != nullptr;
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag flag) const override {
    translate_errors([&] {
      eager::Stream& target = stream_of(stream);
      if (*event == nullptr) *event = new EventHolder(eager::create_event(flag == c10::EventFlag::BACKEND_DEFAULT));
      eager::record_event(target, event_of(*event));
    });
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    translate_errors([&] { eager::wait_event(stream_of(stream), event_of(event)); });
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || translate_errors([&] { return eager::query_event(*event_of(event)); });
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) translate_errors([&] { eager::synchronize_event(*event_of(event)); });
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    // In a dead process state the queues an event refers to are gone: leave it.
    if (event != nullptr && device_alive()) delete static_cast<EventHolder*>(event);
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start != nullptr && end != nullptr, "Both events must be recorded before calculating elapsed time.");
    return translate_errors([&] { return eager::elapsed_milliseconds(*event_of(start), *event_of(end)); });
  }

  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    if (data.get_deleter() != &release_block) return;
    auto* block = static_cast<neuron::runtime::Block*>(data.get_context());
    translate_errors([&] { neuron::runtime::record_stream(block, eager::stream_id(stream_of(stream))); });
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, NeuronGuardImpl)

}  // namespace
}  // namespace torch_neuronx
