#include "neuron/ir/verifier.h"
#include "neuron/passes/graph_copy.h"
#include "neuron/passes/pass.h"

namespace neuron::passes {

namespace {

bool is_inlined(const ir::Operation& operation) {
  if (operation.opcode != ir::Opcode::Composite || operation.regions.empty()) return false;
  std::string_view name = operation.attributes.get<std::string>("name");
  constexpr std::string_view prefix = "neuron.";
  return !name.starts_with(prefix) || ir::function_operands(name.substr(prefix.size())) == 0;
}

// Decompositions may hold composites themselves.
ir::Graph run(const ir::Graph& graph) {
  GraphCopy copy(graph);
  for (const ir::Operation& operation : graph.operations()) {
    if (!is_inlined(operation)) {
      copy.copy(operation);
      continue;
    }
    std::vector<ir::Value> operands;
    for (ir::Value operand : operation.operands) operands.push_back(copy.at(operand));
    std::vector<ir::Value> results = append_graph(run(*operation.regions[0]), operands, copy.target());
    for (size_t i = 0; i < results.size(); ++i) copy.set(operation.results[i], results[i]);
  }
  return copy.finish();
}

}  // namespace

const Pass inline_composites = {
    "inline_composites",
    "Replaces each composite by the operations of its decomposition, so that they fuse with their neighbours. The "
    "functions of functions.def stay: the code generator has its own form of each.",
    run};

}  // namespace neuron::passes
