// Messages to standard error, one write a line. The level is TORCH_NEURONX_LOG_LEVEL; a message that is off costs one
// load.
#pragma once

#include <atomic>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace neuron {

// A message is written when its level is at most the current one: -1 silences even Warning.
enum class LogLevel : int { Warning = 0, Information = 1, Detail = 2, Debug = 3 };

namespace internal {
// kUnread until the first question.
inline constexpr int kLogLevelUnread = -100;
extern std::atomic<int> log_level_value;
int read_log_level() noexcept;
void write_log(LogLevel level, std::string_view message) noexcept;
}  // namespace internal

inline bool log_enabled(LogLevel level) {
  int current = internal::log_level_value.load(std::memory_order_relaxed);
  if (current == internal::kLogLevelUnread) [[unlikely]]
    current = internal::read_log_level();
  return static_cast<int>(level) <= current;
}

// Overrides the environment; -1 to 3.
void set_log_level(int level);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) internal::write_log(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace neuron
