// The hooks torch's device-independent code calls: availability, generators, pinned memory, storage resizing.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "neuron/runtime/allocator.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/generator.h"
#include "torch_neuronx/csrc/register/host_allocator.h"
#include "torch_neuronx/csrc/register/resize.h"

namespace torch_neuronx {
namespace {

struct NeuronHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return is_available() && device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return device_used(); }
  void init() const override { use_device(); }

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex previous = current_device();
    set_device(index);
    return previous;
  }
  // A negative index means "leave it".
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? current_device() : exchangeDevice(index);
  }

  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return at::getHostAllocator(kDeviceType); }
  c10::Device getDeviceFromPtr(void* data) const override {
    const neuron::runtime::Block* block = neuron::runtime::find_block(data);
    TORCH_CHECK(block != nullptr, "the pointer ", data, " is not memory of a neuron device");
    return {kDeviceType, static_cast<c10::DeviceIndex>(block->core)};
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return make_generator(index); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage_bytes(*storage.unsafeGetStorageImpl(), bytes);
  }
};

[[maybe_unused]] const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new NeuronHooks);
  return true;
}();

}  // namespace
}  // namespace torch_neuronx
