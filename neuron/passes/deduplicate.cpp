#include <algorithm>
#include <unordered_map>

#include "neuron/base/hash.h"
#include "neuron/passes/graph_copy.h"
#include "neuron/passes/pass.h"

namespace neuron::passes {

namespace {

using ir::Operation;

bool equal_graphs(const ir::Graph& a, const ir::Graph& b);

// Two operations of one graph or, value for value, of two copies of it.
bool equal_operations(const ir::Graph& a, const Operation& x, const ir::Graph& b, const Operation& y) {
  if (x.opcode != y.opcode || !(x.operands == y.operands) || x.results.size() != y.results.size()) return false;
  if (!(x.attributes == y.attributes) || x.regions.size() != y.regions.size()) return false;
  for (size_t i = 0; i < x.results.size(); ++i) {
    if (!(a.type(x.results[i]) == b.type(y.results[i]))) return false;
  }
  for (size_t i = 0; i < x.regions.size(); ++i) {
    if (x.regions[i] != y.regions[i] && !equal_graphs(*x.regions[i], *y.regions[i])) return false;
  }
  return true;
}

// Equal but for their names: the same values in the same order.
bool equal_graphs(const ir::Graph& a, const ir::Graph& b) {
  if (a.value_count() != b.value_count() || a.operations().size() != b.operations().size()) return false;
  if (a.parameters() != b.parameters() || a.results() != b.results()) return false;
  for (ir::Value parameter : a.parameters()) {
    if (!(a.type(parameter) == b.type(parameter))) return false;
  }
  for (size_t i = 0; i < a.operations().size(); ++i) {
    const Operation &x = a.operations()[i], &y = b.operations()[i];
    if (!(x.results == y.results) || !equal_operations(a, x, b, y)) return false;
  }
  return true;
}

uint64_t hash_of(const ir::Graph& graph, const Operation& operation) {
  uint64_t hash = static_cast<uint64_t>(operation.opcode);
  for (ir::Value operand : operation.operands) hash = hash_combine(hash, static_cast<uint64_t>(operand.id));
  for (ir::Value result : operation.results) {
    hash = hash_combine(hash, static_cast<uint64_t>(graph.type(result).dtype));
    for (ir::Dim dim : graph.type(result).dims) hash = hash_combine(hash, static_cast<uint64_t>(dim));
  }
  // The attribute in which constants differ; the others are left to the comparison.
  if (operation.opcode == ir::Opcode::Constant) {
    const auto& bytes = operation.attributes.get<ir::Literal>("value").bytes;
    hash = hash_bytes(bytes.data(), bytes.size(), hash);
  }
  return hash;
}

ir::Graph run(const ir::Graph& graph) {
  GraphCopy copy(graph);
  std::unordered_multimap<uint64_t, size_t> seen;  // hash -> index in the target
  for (const Operation& operation : graph.operations()) {
    copy.copy(operation);
    ir::Graph& target = copy.target();
    const Operation& made = target.operations().back();
    uint64_t hash = hash_of(target, made);
    auto [first, last] = seen.equal_range(hash);
    auto same = std::find_if(first, last, [&](const auto& entry) {
      return equal_operations(target, target.operations()[entry.second], target, made);
    });
    if (same == last) {
      seen.emplace(hash, target.operations().size() - 1);
      continue;
    }
    // The copy stays without users, for eliminate_dead_code to sweep up.
    const Operation& earlier = target.operations()[same->second];
    for (size_t i = 0; i < earlier.results.size(); ++i) copy.set(operation.results[i], earlier.results[i]);
  }
  return copy.finish();
}

}  // namespace

const Pass deduplicate = {
    "deduplicate",
    "Operations with the same opcode, operands, attributes, regions and types have the same value: the first is kept "
    "and "
    "stands for all. Lowerings ask for the same conversion, constant or broadcast again and again, one for each use.",
    run};

}  // namespace neuron::passes
