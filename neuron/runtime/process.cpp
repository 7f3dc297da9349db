#include "neuron/runtime/process.h"

#include <pthread.h>

#include <atomic>

#include "neuron/base/error.h"

namespace neuron::runtime {
namespace {

enum State : int { Unused, Used, ForkedChild };
std::atomic<int> state{Unused};

}  // namespace

void enter_runtime() {
  const int now = state.load(std::memory_order_relaxed);
  if (now == Used) [[likely]]
    return;
  if (now == ForkedChild) {
    fail(ErrorKind::Runtime,
         "Cannot re-initialize neuron in a forked process: the parent had already used the device. Start processes "
         "with the "
         "'spawn' method, for example torch.multiprocessing.set_start_method('spawn'), or fork before the first use");
  }
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    if (state.load() == Used) state.store(ForkedChild);
  });
  check_internal(registered == 0, "pthread_atfork failed with {}", registered);
  int expected = Unused;
  state.compare_exchange_strong(expected, Used);
}

bool in_forked_child() { return state.load(std::memory_order_relaxed) == ForkedChild; }

bool runtime_used() { return state.load(std::memory_order_relaxed) == Used; }

}  // namespace neuron::runtime
