// Which devices there are, which one is current, and in which state the process is.
//
// Queries never initialise anything. "Use" begins with the first allocation, stream or recorded operation: from then on
// a forked child must not touch the device (its threads are not there), and every entry says so with the same error.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace torch_neuronx {

inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;
// Upper bound of logical cores of one instance (trn2.48xlarge with one physical core per logical core).
inline constexpr int kMaximumDevices = 128;

// Logical cores this process may use; 0 when the device is not available. Never throws.
c10::DeviceIndex device_count() noexcept;
// False beside another accelerator (CUDA, XPU) unless TORCH_NEURONX_DEVICE=host asks for the embedded device.
bool is_available() noexcept;

// Why device_count() is 0; empty when it is not.
std::string unavailable_reason();

// "host" or "null": what executes the device.
std::string driver_name();

// The calling thread's current device.
c10::DeviceIndex current_device() noexcept;
// Throws c10::Error when there is no such device.
void check_device_index(c10::DeviceIndex index);
void set_device(c10::DeviceIndex index);
// Without a check, for destructors of guards.
void set_device_unchecked(c10::DeviceIndex index) noexcept;
// Index of `device`, the current one when it has none; checked.
c10::DeviceIndex resolve_index(c10::Device device);

// Marks the beginning of use; throws in a child forked after use and when there is no device. Cheap.
void use_device();
bool device_used() noexcept;
bool in_bad_fork() noexcept;
// False in a bad fork and after shutdown: deleters and hooks then do nothing.
bool device_alive() noexcept;
// Interpreter exit: finishes the work and stops the threads. Idempotent.
void shutdown_device();

}  // namespace torch_neuronx
