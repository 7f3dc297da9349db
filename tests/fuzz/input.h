// What a fuzz target is fed: bytes, read as choices. At the end of the bytes every choice is 0, so that each prefix of
// an input is an input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "neuron/base/error.h"

namespace neuron::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }
  uint8_t byte() {
    if (rest_.empty()) return 0;
    const uint8_t result = rest_.front();
    rest_ = rest_.subspan(1);
    return result;
  }
  uint64_t word(int bytes) {
    uint64_t result = 0;
    for (int i = 0; i < bytes; ++i) result = result << 8 | byte();
    return result;
  }
  // 0 … count - 1.
  size_t pick(size_t count) { return count <= 1 ? 0 : (count <= 256 ? byte() : word(2)) % count; }
  // True in one of `in` cases, and never at the end of the bytes.
  bool chance(int in) { return !rest_.empty() && byte() % in == static_cast<uint8_t>(in - 1); }
  std::string text(size_t count) {
    std::string result;
    for (size_t i = 0; i < count && !rest_.empty(); ++i) result += static_cast<char>(byte());
    return result;
  }
  std::string_view remaining() const { return {reinterpret_cast<const char*>(rest_.data()), rest_.size()}; }

 private:
  std::span<const uint8_t> rest_;
};

// Ends the process as a sanitizer's finding does.
template <typename... Arguments>
[[noreturn]] void finding(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  std::fprintf(stderr, "FINDING: %s\n", fmt::format(text, std::forward<Arguments>(arguments)...).c_str());
  std::abort();
}

}  // namespace neuron::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
