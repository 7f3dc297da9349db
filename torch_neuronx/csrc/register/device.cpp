#include "torch_neuronx/csrc/register/device.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include "neuron/eager/recorder.h"
#include "neuron/runtime/process.h"
#include "torch_neuronx/csrc/register/errors.h"

namespace torch_neuronx {
namespace {

std::atomic<bool> shut_down{false};
thread_local c10::DeviceIndex current_index = 0;

// Number of cores in a list like "0-3" or "0,2,4-5"; -1 when it cannot be read.
int count_cores(std::string_view list) {
  int count = 0;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string part(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    char* end = nullptr;
    const long first = std::strtol(part.c_str(), &end, 10);
    long last = first;
    if (end == part.c_str()) return -1;
    if (*end == '-') {
      const char* second = end + 1;
      last = std::strtol(second, &end, 10);
      if (end == second) return -1;
    }
    if (*end != '\0' || last < first || first < 0) return -1;
    count += static_cast<int>(last - first + 1);
  }
  return count;
}

int configured_device_count() {
  // A trn2.3xlarge: one chip of four logical cores.
  int count = 4;
  if (const char* visible = std::getenv("NEURON_RT_VISIBLE_CORES"); visible && *visible) {
    count = count_cores(visible);
  } else if (const char* number = std::getenv("NEURON_RT_NUM_CORES"); number && *number) {
    count = std::atoi(number);
  }
  if (count < 0) {
    TORCH_WARN("NEURON_RT_VISIBLE_CORES is not a list of cores like \"0-3\" or \"0,2\"; using 4 cores");
    count = 4;
  }
  return std::min(count, kMaximumDevices - 1);
}

bool asked_for_explicitly() {
  const char* device = std::getenv("TORCH_NEURONX_DEVICE");
  return device && *device;
}

}  // namespace

bool is_available() noexcept {
  static const bool available = asked_for_explicitly() || !(c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA) ||
                                                            c10::impl::hasDeviceGuardImpl(c10::DeviceType::XPU));
  return available;
}

c10::DeviceIndex device_count() noexcept {
  if (!is_available()) return 0;
  static const int count = configured_device_count();
  return static_cast<c10::DeviceIndex>(count);
}

const char* driver_name() noexcept {
  const char* device = std::getenv("TORCH_NEURONX_DEVICE");
  return device && *device ? device : "host";
}

c10::DeviceIndex current_device() noexcept { return current_index; }

void check_device_index(c10::DeviceIndex index) {
  const int count = device_count();
  TORCH_CHECK(count > 0,
              "no neuron device is available: another accelerator is present; set TORCH_NEURONX_DEVICE=host to use the "
              "embedded device");
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
  if (neuron::runtime::runtime_used() && !shut_down.load(std::memory_order_relaxed)) [[likely]] return;
  TORCH_CHECK(!shut_down.load(), "neuron has been shut down: the interpreter is exiting");
  check_device_index(current_index);
  translate_errors([] { neuron::runtime::enter_runtime(); });
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
