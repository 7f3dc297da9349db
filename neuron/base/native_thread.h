// Threads of our own, as the core wants them: named, with every signal blocked (handlers belong to the threads of the
// program) and with the default floating-point environment (a new thread would inherit its creator's).
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace neuron {

// Starts a joinable thread. The name is cut to 15 characters. Throws std::system_error when the system has no more
// threads.
std::thread start_thread(const std::string& name, std::function<void()> body);

// Spins for about `microseconds` or until condition() holds; returns whether it holds.
template <typename Condition>
bool spin_until(int microseconds, Condition condition);

void cpu_relax();
int64_t monotonic_nanoseconds();

template <typename Condition>
bool spin_until(int microseconds, Condition condition) {
  if (condition()) return true;
  const int64_t deadline = monotonic_nanoseconds() + int64_t{1000} * microseconds;
  do {
    for (int i = 0; i < 16; ++i) {
      if (condition()) return true;
      cpu_relax();
    }
  } while (monotonic_nanoseconds() < deadline);
  return condition();
}

}  // namespace neuron
