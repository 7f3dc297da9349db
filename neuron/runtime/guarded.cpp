#include "neuron/runtime/guarded.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "neuron/base/error.h"
#include "neuron/base/options.h"
#include "neuron/runtime/process.h"

namespace neuron::runtime {
namespace {

constexpr int kUnread = -1;
std::atomic<int> mode{kUnread};

struct Guard {
  std::mutex mutex;
  std::map<void*, size_t> memory;
  int accesses = 0;

  void protect_all(int protection) {
    for (auto [address, size] : memory) protect(address, size, protection);
  }
  static void protect(void* address, size_t size, int protection) {
    const int result = mprotect(address, size, protection);
    check_internal(result == 0, "mprotect of {} bytes of device memory failed: {}", size, std::strerror(errno));
  }
};

Guard& guard() {
  static auto* instance = new Guard;
  return *instance;
}

}  // namespace

bool guarded() {
  int current = mode.load(std::memory_order_relaxed);
  if (current == kUnread) [[unlikely]] {
    const int from_environment = option_flag(Option::Guarded) ? 1 : 0;
    mode.compare_exchange_strong(current, from_environment);
    current = mode.load();
  }
  return current == 1;
}

void set_guarded(bool on) {
  Guard& all = guard();
  std::lock_guard lock(all.mutex);
  if (guarded() == on) return;
  mode.store(on ? 1 : 0);
  if (all.accesses == 0) all.protect_all(on ? PROT_NONE : PROT_READ | PROT_WRITE);
}

DeviceAccess::DeviceAccess() : counted_(guarded()) {
  if (!counted_) [[likely]]
    return;
  Guard& all = guard();
  std::lock_guard lock(all.mutex);
  if (all.accesses++ == 0) all.protect_all(PROT_READ | PROT_WRITE);
}

DeviceAccess::~DeviceAccess() {
  if (!counted_ || in_forked_child()) return;
  Guard& all = guard();
  std::lock_guard lock(all.mutex);
  if (--all.accesses == 0 && guarded()) all.protect_all(PROT_NONE);
}

void guard_memory(void* address, size_t size) {
  Guard& all = guard();
  std::lock_guard lock(all.mutex);
  all.memory[address] = size;
  if (guarded() && all.accesses == 0) Guard::protect(address, size, PROT_NONE);
}

void unguard_memory(void* address) {
  Guard& all = guard();
  std::lock_guard lock(all.mutex);
  all.memory.erase(address);
}

}  // namespace neuron::runtime
