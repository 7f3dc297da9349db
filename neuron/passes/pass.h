// Passes: functions from graph to graph, one per file, listed in pipeline.cpp.
//
// A pass keeps parameters, results, aliases and donations as they are, and keeps the value of every result bit for bit
// as the interpreter computes it, signed zeros included (any NaN equals any NaN). What the interpreter only bounds
// (transcendentals) is left for the code generator to compute. Passes share nothing and may run on any thread.
#pragma once

#include <span>
#include <string_view>

#include "neuron/ir/graph.h"

namespace neuron::passes {

struct Pass {
  std::string_view name;     // a verb: "eliminate_dead_code"
  std::string_view purpose;  // one paragraph
  ir::Graph (*run)(const ir::Graph& graph);
};

// Replaces composites by their decompositions.
extern const Pass inline_composites;
// Evaluates exact operations on constants.
extern const Pass fold_constants;
// Removes operations that change nothing.
extern const Pass simplify;
// Computes equal operations once.
extern const Pass deduplicate;
// Drops operations whose results nobody uses.
extern const Pass eliminate_dead_code;

std::span<const Pass* const> all_passes();
// Null when there is no such pass.
const Pass* find_pass(std::string_view name);

}  // namespace neuron::passes
