// Reads the StableHLO text that printer.h writes: all operations of operations.def in the forms it uses, static sizes,
// functions defined before their use. The graph is verified before it is returned.
#pragma once

#include <string_view>

#include "neuron/ir/graph.h"

namespace neuron::ir {

// The function @main of the module. Throws Error(Value) "line 3, column 7: …" for text it cannot read, and without a
// place for text that is no valid program. Never crashes, whatever the bytes.
Graph parse(std::string_view text);

// A literal with its type: dense<[1.0, 2.0]> : tensor<2xf32>. Errors as above.
Literal parse_literal_text(std::string_view text);

}  // namespace neuron::ir
