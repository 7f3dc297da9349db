#include "neuron/runtime/drivers/null/null_driver.h"

#include <cstring>

#include "neuron/base/options.h"
#include "neuron/runtime/drivers/local_driver.h"
#include "neuron/runtime/platform.h"

namespace neuron::runtime {
namespace {

class NullDriver final : public LocalDriver {
 public:
  const char* name() const override { return "null"; }
  bool computes() const override { return false; }
  Version version() const override { return {2, 31, 0, 0, "null device"}; }

 protected:
  // Pages that nothing touches take no room: the presented size is the limit on any machine.
  size_t total_limit() const override { return SIZE_MAX; }
  size_t core_limit() const override {
    const int64_t asked = option_integer(Option::MemoryLimit);
    return asked >= 0 ? static_cast<size_t>(asked) : presented_core_memory();
  }
  void move_bytes(void*, const void*, size_t) const override {}
  void read_bytes(void* target, const void*, size_t size) const override { std::memset(target, 0, size); }
  void fill_bytes(void*, uint8_t, size_t) const override {}
  Status check_image(const ProgramImage&) const override { return Status::Success; }
  Status run(const ProgramImage&, std::span<void* const>, std::span<void* const>) const override {
    return Status::Success;
  }
};

}  // namespace

std::unique_ptr<Driver> make_null_driver() { return std::make_unique<NullDriver>(); }

}  // namespace neuron::runtime
