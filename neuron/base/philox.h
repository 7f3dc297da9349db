// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): four random words of 32 bits for
// each counter, under a key of 64 bits.
#pragma once

#include <array>
#include <cstdint>

namespace neuron {

inline constexpr uint32_t kPhiloxMultipliers[2] = {0xD2511F53, 0xCD9E8D57};
inline constexpr uint32_t kPhiloxKeySteps[2] = {0x9E3779B9, 0xBB67AE85};
inline constexpr int kPhiloxRounds = 10;

// `upper` is the upper half of the counter's 128 bits.
inline std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter, uint64_t upper = 0) {
  std::array<uint32_t, 4> words = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                                   static_cast<uint32_t>(upper), static_cast<uint32_t>(upper >> 32)};
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultipliers[0]} * words[0],
                   product1 = uint64_t{kPhiloxMultipliers[1]} * words[2];
    words = {static_cast<uint32_t>(product1 >> 32) ^ words[1] ^ key0, static_cast<uint32_t>(product1),
             static_cast<uint32_t>(product0 >> 32) ^ words[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kPhiloxKeySteps[0];
    key1 += kPhiloxKeySteps[1];
  }
  return words;
}

}  // namespace neuron
