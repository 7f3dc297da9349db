// The one exception type of the core. The torch layer turns `kind` into the Python class of the same name.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace neuron {

enum class ErrorKind {
  Runtime,         // RuntimeError: shapes, dtypes, states the user can mend
  Index,           // IndexError: an index out of range
  Type,            // TypeError
  Value,           // ValueError
  NotImplemented,  // NotImplementedError: a capability that does not exist here
  OutOfMemory,     // torch.OutOfMemoryError
  Internal,        // a broken invariant of ours: a bug report
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

// Throws ErrorKind::Internal when an invariant of ours is broken. Not for user mistakes.
template <typename... Args>
void check_internal(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]] {
    fail(ErrorKind::Internal, format, std::forward<Args>(args)...);
  }
}

}  // namespace neuron
