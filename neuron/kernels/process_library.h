// Functions of libraries that are already in the process, above all the BLAS that torch brings. Nothing is linked or
// loaded.
#pragma once

namespace neuron::kernels {

// Looks in the global scope, then in libtorch_cpu.so if that is loaded. Null when there is none.
void* find_process_symbol(const char* name);

// Limits MKL to the calling thread while it lives. Constructible only where process_threads_can_be_limited().
class OneProcessThread {
 public:
  OneProcessThread();
  ~OneProcessThread();
  OneProcessThread(const OneProcessThread&) = delete;
  OneProcessThread& operator=(const OneProcessThread&) = delete;

 private:
  int former_;
};
bool process_threads_can_be_limited();

}  // namespace neuron::kernels
