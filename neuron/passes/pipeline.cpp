#include "neuron/passes/pipeline.h"

#include "neuron/base/error.h"
#include "neuron/base/options.h"
#include "neuron/ir/verifier.h"

namespace neuron::passes {

std::span<const Pass* const> region_pipeline() {
  static constexpr const Pass* list[] = {
      &inline_composites,    // first: the other passes see through composites
      &fold_constants,       // before simplify: its rules look for constants
      &simplify,             // leaves operations without users behind
      &deduplicate,          // after simplify: more operations are equal then
      &eliminate_dead_code,  // last: sweeps up
  };
  return list;
}

std::span<const Pass* const> all_passes() { return region_pipeline(); }

const Pass* find_pass(std::string_view name) {
  for (const Pass* pass : all_passes()) {
    if (pass->name == name) return pass;
  }
  return nullptr;
}

ir::Graph run_passes(const ir::Graph& graph, std::span<const Pass* const> passes, const PipelineOptions& options) {
#ifdef NDEBUG
  bool check = options.verify || option_flag(Option::VerifyPasses);
#else
  bool check = true;
#endif
  auto inspect = [&](std::string_view pass, const ir::Graph& made) {
    if (options.observe) options.observe(pass, made);
    if (!check) return;
    try {
      ir::verify(made);
    } catch (const Error& error) {
      fail(ErrorKind::Internal, "after pass '{}': {}", pass, error.what());
    }
  };
  inspect("input", graph);
  ir::Graph current = graph;
  for (const Pass* pass : passes) {
    current = pass->run(current);
    inspect(pass->name, current);
  }
  return current;
}

ir::Graph run_pipeline(const ir::Graph& graph, const PipelineOptions& options) {
  return run_passes(graph, region_pipeline(), options);
}

}  // namespace neuron::passes
