#include "neuron/kernels/process_library.h"

#include <dlfcn.h>

#include <atomic>

namespace neuron::kernels {
namespace {

using SetThreads = int (*)(int);  // for the calling thread; returns the former number

// Torch may be imported after the core was first used: a failed look-up is repeated, a good one is kept.
SetThreads set_threads() {
  static std::atomic<SetThreads> found{nullptr};
  SetThreads known = found.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = reinterpret_cast<SetThreads>(find_process_symbol("MKL_Set_Num_Threads_Local"));
    found.store(known, std::memory_order_release);
  }
  return known;
}

}  // namespace

void* find_process_symbol(const char* name) {
  if (void* symbol = dlsym(RTLD_DEFAULT, name)) return symbol;
  // The handle is kept open: a symbol in use must not lose its library.
  void* torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  return torch == nullptr ? nullptr : dlsym(torch, name);
}

bool process_threads_can_be_limited() { return set_threads() != nullptr; }

OneProcessThread::OneProcessThread() : former_(set_threads()(1)) {}
OneProcessThread::~OneProcessThread() { set_threads()(former_); }

}  // namespace neuron::kernels
