#include "neuron/passes/graph_copy.h"
#include "neuron/passes/pass.h"

namespace neuron::passes {

namespace {

ir::Graph run(const ir::Graph& graph) {
  std::vector<bool> used(static_cast<size_t>(graph.value_count()), false);
  for (ir::Value result : graph.results()) used[result.id] = true;
  const auto& operations = graph.operations();
  std::vector<bool> alive(operations.size(), false);
  for (size_t i = operations.size(); i-- > 0;) {
    for (ir::Value result : operations[i].results) alive[i] = alive[i] || used[result.id];
    if (!alive[i]) continue;
    for (ir::Value operand : operations[i].operands) used[operand.id] = true;
  }
  GraphCopy copy(graph);
  for (size_t i = 0; i < operations.size(); ++i) {
    if (alive[i]) copy.copy(operations[i]);
  }
  return copy.finish();
}

}  // namespace

const Pass eliminate_dead_code = {
    "eliminate_dead_code",
    "Drops every operation none of whose results reaches a result of the graph. Operations of the IR have no effects, "
    "so "
    "nothing else is lost. Other passes leave such operations behind on purpose and rely on this one.",
    run};

}  // namespace neuron::passes
