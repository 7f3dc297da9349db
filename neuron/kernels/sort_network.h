// Sorts lines of up to some thousand packed entries in vectors.
#pragma once

#include <cstdint>

namespace neuron::kernels {

constexpr int64_t kLongestNetwork = 2048;

// Entries of a key in the upper and a position below kLongestNetwork in the lower 32 bits, all different; at most
// kLongestNetwork of them. Ascending.
void sort_in_network(uint64_t* entries, int64_t count);

}  // namespace neuron::kernels
