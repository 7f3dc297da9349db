#include "neuron/runtime/drivers/host/host_driver.h"

#include <algorithm>
#include <cstring>

#include "neuron/base/options.h"
#include "neuron/runtime/drivers/local_driver.h"
#include "neuron/runtime/platform.h"

namespace neuron::runtime {
namespace {

class HostDriver final : public LocalDriver {
 public:
  const char* name() const override { return "host"; }
  bool computes() const override { return true; }
  Version version() const override { return {2, 31, 0, 0, "embedded host device"}; }

 protected:
  // A tenth of the machine is left to the program itself: device memory must not be what brings the machine down.
  size_t total_limit() const override {
    if (const int64_t asked = option_integer(Option::MemoryLimit); asked >= 0) return SIZE_MAX;
    return machine_memory() / 10 * 9;
  }
  size_t core_limit() const override {
    if (const int64_t asked = option_integer(Option::MemoryLimit); asked >= 0) return static_cast<size_t>(asked);
    return std::min(presented_core_memory(), total_limit());
  }
  void move_bytes(void* target, const void* source, size_t size) const override { std::memmove(target, source, size); }
  void read_bytes(void* target, const void* source, size_t size) const override { std::memmove(target, source, size); }
  void fill_bytes(void* target, uint8_t value, size_t size) const override { std::memset(target, value, size); }
  Status check_image(const ProgramImage& image) const override {
    return image.code ? Status::Success : Status::UnsupportedProgramVersion;
  }
  Status run(const ProgramImage& image, std::span<void* const> inputs, std::span<void* const> outputs) const override {
    try {
      return image.code(inputs, outputs);
    } catch (...) {
      // No exception crosses the device interface.
      return Status::ExecutionError;
    }
  }
};

}  // namespace

std::unique_ptr<Driver> make_host_driver() { return std::make_unique<HostDriver>(); }

}  // namespace neuron::runtime
