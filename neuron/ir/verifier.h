// Checks a graph against the rules of its operations: one rule per row of operations.def. Run on every graph that comes
// from outside (parser, lowering of a whole program) and between passes in debug builds.
//
// Types are StableHLO's where StableHLO has the operation, so that a graph that verifies can be printed for its tools.
// Sizes are compared where both are known: symbols are equal only to themselves, except where an operation computes a
// size (reshape, slice, concatenate), which the run time checks.
#pragma once

#include "neuron/ir/graph.h"

namespace neuron::ir {

// Throws Error(Internal) naming graph, operation, its index and the types of its operands and results.
void verify(const Graph& graph);

// True when the opcode has a rule: a test asks this for every row of operations.def.
bool has_rule(Opcode opcode);

// Operands of a function of functions.def by its name without "neuron."; 0 when there is none.
int function_operands(std::string_view name);

}  // namespace neuron::ir
