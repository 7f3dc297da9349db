#include "neuron/runtime/device.h"

#include <atomic>
#include <memory>
#include <mutex>

#include "neuron/base/error.h"
#include "neuron/base/log.h"
#include "neuron/base/options.h"
#include "neuron/base/processor.h"
#include "neuron/runtime/drivers/host/host_driver.h"
#include "neuron/runtime/drivers/null/null_driver.h"
#include "neuron/runtime/process.h"

namespace neuron::runtime {

const char* status_name(Status status) {
  switch (status) {
#define STATUS(id, code, name) \
  case Status::id:             \
    return name;
#include "neuron/runtime/status.def"
#undef STATUS
  }
  return "NRT_UNKNOWN";
}

void check_status(Status status, const std::string& what) {
  if (status == Status::Success) [[likely]]
    return;
  const ErrorKind kind = status == Status::Resource ? ErrorKind::OutOfMemory : ErrorKind::Runtime;
  fail(kind, "{}: {} ({})", what, status_name(status), static_cast<int>(status));
}

Tensor* TensorSet::find(const std::string& name) const {
  for (const auto& [key, tensor] : tensors_) {
    if (key == name) return tensor;
  }
  return nullptr;
}

Driver& driver() {
  // Never destroyed: deleters of tensors may run after static destruction.
  static Driver* instance = (option_text(Option::Device) == "null" ? make_null_driver() : make_host_driver()).release();
  return *instance;
}

std::string unavailable_reason() { return unsupported_processor(processor_features()); }

int core_count() { return unavailable_reason().empty() ? driver().visible_core_count() : 0; }

Driver& device() {
  static std::atomic<bool> initialized{false};
  enter_runtime();
  if (initialized.load(std::memory_order_acquire)) [[likely]]
    return driver();
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (initialized.load()) return driver();
  if (const std::string reason = unavailable_reason(); !reason.empty()) fail(ErrorKind::Runtime, "{}", reason);
  check_environment();
  check_status(driver().init(), "cannot initialise the device");
  for (const OptionNotice& notice : option_notices()) log(LogLevel::Warning, "{}", notice.text);
  initialized.store(true, std::memory_order_release);
  return driver();
}

}  // namespace neuron::runtime
