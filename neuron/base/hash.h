// 64-bit hashing of plain data, for signatures and cache keys (xxHash, XXH3).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace neuron {

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0);

inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

// Order-dependent mixing of one word into a running hash; cheap enough for the recording path.
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) {
  uint64_t x = (seed ^ value) * 0x9e3779b97f4a7c15ull;
  return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull + value;
}

}  // namespace neuron
