#include "neuron/base/log.h"

#include <unistd.h>

#include <exception>
#include <string>

#include "neuron/base/options.h"

namespace neuron {
namespace internal {

std::atomic<int> log_level_value{kLogLevelUnread};

int read_log_level() noexcept {
  int level = 0;
  try {
    level = static_cast<int>(option_integer(Option::LogLevel));
  } catch (const std::exception&) {
    // A bad value is reported when the environment is checked; a message must not fail.
  }
  int unread = kLogLevelUnread;
  log_level_value.compare_exchange_strong(unread, level);
  return log_level_value.load();
}

void write_log(LogLevel level, std::string_view message) noexcept {
  static constexpr const char* kNames[] = {"warning", "info", "detail", "debug"};
  try {
    const std::string line = fmt::format("torch_neuronx {}: {}\n", kNames[static_cast<int>(level)], message);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  } catch (const std::exception&) {
    // No memory for a message: the work goes on without it.
  }
}

}  // namespace internal

void set_log_level(int level) { internal::log_level_value.store(level); }

}  // namespace neuron
