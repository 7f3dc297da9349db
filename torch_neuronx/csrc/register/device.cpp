#include "torch_neuronx/csrc/register/device.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "neuron/base/options.h"
#include "neuron/eager/recorder.h"
#include "neuron/runtime/device.h"
#include "neuron/runtime/process.h"
#include "torch_neuronx/csrc/register/dispatch_keys.h"
#include "torch_neuronx/csrc/register/errors.h"

namespace torch_neuronx {
namespace {

std::atomic<bool> shut_down{false};
thread_local c10::DeviceIndex current_index = 0;

// What the runtime says of its cores; a bad environment is reported when the device is used.
int visible_cores() noexcept {
  try {
    return std::min(neuron::runtime::core_count(), kMaximumDevices - 1);
  } catch (const std::exception&) {
    return 1;
  }
}

// A value that is not allowed counts as asked for: the first use then says what is.
bool is_asked_for() noexcept {
  try {
    return neuron::option_is_set(neuron::Option::Device);
  } catch (const std::exception&) {
    return true;
  }
}

}  // namespace

bool is_available() noexcept {
  static const bool available = is_asked_for() || !(c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA) ||
                                                    c10::impl::hasDeviceGuardImpl(c10::DeviceType::XPU));
  return available;
}

std::string unavailable_reason() {
  return is_available() ? neuron::runtime::unavailable_reason()
                        : "another accelerator is present; set TORCH_NEURONX_DEVICE=host to use the embedded device";
}

c10::DeviceIndex device_count() noexcept {
  if (!is_available()) return 0;
  static const int count = visible_cores();
  return static_cast<c10::DeviceIndex>(count);
}

std::string driver_name() {
  return translate_errors([] { return std::string(neuron::runtime::driver().name()); });
}

c10::DeviceIndex current_device() noexcept { return current_index; }

void check_device_index(c10::DeviceIndex index) {
  const int count = device_count();
  TORCH_CHECK(count > 0, "no neuron device is available: ", unavailable_reason());
  TORCH_CHECK(index >= 0 && index < count, "invalid device index ", static_cast<int>(index), " for neuron: there ",
              count == 1 ? "is 1 device" : "are ", count == 1 ? "" : std::to_string(count) + " devices",
              ", valid indices are 0 to ", count - 1);
}

void set_device(c10::DeviceIndex index) {
  check_device_index(index);
  current_index = index;
}

void set_device_unchecked(c10::DeviceIndex index) noexcept { current_index = index; }

c10::DeviceIndex resolve_index(c10::Device device) {
  TORCH_CHECK(device.type() == kDeviceType, "expected a neuron device, got ", device);
  const c10::DeviceIndex index = device.has_index() ? device.index() : current_index;
  check_device_index(index);
  return index;
}

void use_device() {
  if (neuron::runtime::runtime_used() && !shut_down.load(std::memory_order_relaxed)) [[likely]]
    return;
  TORCH_CHECK(!shut_down.load(), "neuron has been shut down: the interpreter is exiting");
  check_device_index(current_index);
  refuse_other_layouts();
  translate_errors([] { neuron::runtime::device(); });
}

bool device_used() noexcept { return neuron::runtime::runtime_used() && !shut_down.load(std::memory_order_relaxed); }
bool in_bad_fork() noexcept { return neuron::runtime::in_forked_child(); }
bool device_alive() noexcept {
  return !shut_down.load(std::memory_order_relaxed) && !neuron::runtime::in_forked_child();
}

void shutdown_device() {
  if (device_used() && !shut_down.exchange(true)) neuron::eager::shutdown();
}

}  // namespace torch_neuronx
