// Guarded memory: a debugging mode in which device memory is inaccessible except while device work runs, so that host
// code that dereferences a device pointer faults where it does so.
#pragma once

#include <cstddef>

namespace neuron::runtime {

// TORCH_NEURONX_GUARDED at first; may be changed while no device work runs.
bool guarded();
void set_guarded(bool on);

// Makes device memory accessible while any such object exists, in any thread. Costs one load when the mode is off.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

 private:
  bool counted_;
};

// For drivers: device memory that has been mapped, readable and writable, or will be unmapped.
void guard_memory(void* address, size_t size);
void unguard_memory(void* address);

}  // namespace neuron::runtime
