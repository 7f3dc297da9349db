// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) for library kernels: the same
// numbers as the generated random operators (docs/numerics.md).
#pragma once

#include <array>
#include <cstdint>

namespace neuron::kernels {

inline std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter) {
  std::array<uint32_t, 4> words = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * words[0], product1 = uint64_t{0xCD9E8D57} * words[2];
    words = {static_cast<uint32_t>(product1 >> 32) ^ words[1] ^ key0, static_cast<uint32_t>(product1),
             static_cast<uint32_t>(product0 >> 32) ^ words[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return words;
}

inline uint64_t philox64(uint64_t seed, uint64_t counter) {
  const auto words = philox(seed, counter);
  return uint64_t{words[1]} << 32 | words[0];
}

// In [0, 1), multiples of 2^-53.
inline double philox_uniform(uint64_t seed, uint64_t counter) {
  return static_cast<double>(philox64(seed, counter) >> 11) * 0x1p-53;
}

}  // namespace neuron::kernels
