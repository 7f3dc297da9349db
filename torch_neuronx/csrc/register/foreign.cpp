// Tells the C interface for foreign kernels which device, stream and number of threads the calling thread has.
#include <ATen/Parallel.h>
#include <c10/core/StorageImpl.h>

#include "neuron/eager/foreign.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/storage.h"
#include "torch_neuronx/csrc/register/stream.h"

namespace torch_neuronx {
namespace {

int current_core() { return current_device(); }

neuron::eager::Stream& stream_of_core(int core) {
  check_device_index(static_cast<c10::DeviceIndex>(core));
  return uncaptured_stream_of(current_c10_stream(static_cast<c10::DeviceIndex>(core)));
}

void note_write(void* storage) {
  auto* written = static_cast<c10::StorageImpl*>(storage);
  if (block_of(*written) != nullptr) arm_storage(*written);
}

constexpr neuron::eager::ForeignCaller kCaller{current_core, stream_of_core, at::get_num_threads, note_write};

[[maybe_unused]] const bool registered = [] {
  neuron::eager::set_foreign_caller(&kCaller);
  return true;
}();

}  // namespace
}  // namespace torch_neuronx
