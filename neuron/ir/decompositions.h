// Decompositions into StableHLO operations of what is one operation here: the text printed for a tool that does not
// know our names carries them. The interpreter and the host code generator have their own, more accurate, form.
#pragma once

#include <string_view>

#include "neuron/ir/graph.h"

namespace neuron::ir {

// A function of functions.def on operands of the type. Throws Error(Internal) when it has none for the dtype.
Graph function_decomposition(std::string_view name, const Type& type);

// random_bits or random_normal with results of the type.
Graph random_decomposition(std::string_view name, const Type& type);

// rng_bit_generator with bits of the (concrete) type: (state) -> (state, bits), Philox4x32-10 in integer operations.
Graph rng_decomposition(const Type& bits);

}  // namespace neuron::ir
