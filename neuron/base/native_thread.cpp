#include "neuron/base/native_thread.h"

#include <immintrin.h>
#include <pthread.h>

#include <cfenv>
#include <csignal>
#include <ctime>

namespace neuron {

std::thread start_thread(const std::string& name, std::function<void()> body) {
  // The new thread inherits the mask, so that no signal can reach it before it could block them itself.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  struct Restore {
    sigset_t* mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, mask, nullptr); }
  } restore{&previous};
  return std::thread([name = name.substr(0, 15), body = std::move(body)] {
    pthread_setname_np(pthread_self(), name.c_str());
    std::fesetenv(FE_DFL_ENV);
    body();
  });
}

void cpu_relax() { _mm_pause(); }

int64_t monotonic_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace neuron
