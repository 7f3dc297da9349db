// Prints a graph as StableHLO text, one concrete instance: symbols are replaced by their sizes. The text is accepted by
// StableHLO's own tools and read back by parser.h.
//
// Composites become stablehlo.composite with a private function for the decomposition; the functions of functions.def
// and rng_bit_generator, which have none in the graph, get one from decompositions.h. Aliases and donations are the
// argument attributes that XLA reads: tf.aliasing_output and jax.buffer_donor.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "neuron/ir/graph.h"

namespace neuron::ir {

// A module with the graph as its public function @main. Without symbol sizes symbolic dimensions print as '?', for
// people to read. Throws Error(Internal) when some sizes are given but too few.
std::string print(const Graph& graph, std::span<const int64_t> symbol_sizes = {});

// The literal as an attribute: dense<[1.0, 2.0]>, without its type.
std::string print_dense(const Literal& literal, const Dims& sizes);
// One element: 1.5, 0x7FC00000 (NaN), (1.0, 2.0), true.
std::string print_element(DType dtype, const std::byte* element);

}  // namespace neuron::ir
