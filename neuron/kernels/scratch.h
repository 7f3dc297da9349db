// Memory a kernel needs while it runs, kept per thread between calls: 64-byte aligned, grown when needed, never
// cleared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace neuron::kernels {

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::free(memory_); }

  template <typename T>
  T* get(int64_t count) {
    size_t bytes = (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    if (bytes > size_) {
      std::free(memory_);
      memory_ = std::aligned_alloc(64, bytes);
      size_ = memory_ ? bytes : 0;
      if (memory_ == nullptr) throw std::bad_alloc();
    }
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace neuron::kernels
