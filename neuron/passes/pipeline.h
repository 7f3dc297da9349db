// The order of the passes. `pipeline.cpp` holds the list and nothing clever.
#pragma once

#include <functional>
#include <string_view>

#include "neuron/passes/pass.h"

namespace neuron::passes {

struct PipelineOptions {
  // Called before the first pass (name "input") and after each pass with what it made.
  std::function<void(std::string_view pass, const ir::Graph& graph)> observe;
  // Verify the input and the result of every pass. Always on in debug builds and with TORCH_NEURONX_VERIFY_PASSES=1.
  bool verify = false;
};

// The passes for a region that the code generator compiles.
std::span<const Pass* const> region_pipeline();

// Runs the region pipeline. An error of the verifier is rethrown with the name of the pass that made the graph.
ir::Graph run_pipeline(const ir::Graph& graph, const PipelineOptions& options = {});
// Runs these passes, in order.
ir::Graph run_passes(const ir::Graph& graph, std::span<const Pass* const> passes, const PipelineOptions& options = {});

}  // namespace neuron::passes
