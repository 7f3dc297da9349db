// Internal to the passes: copying a graph operation by operation, while a pass leaves out, replaces or adds some.
#pragma once

#include <vector>

#include "neuron/ir/builder.h"
#include "neuron/ir/graph.h"

namespace neuron::passes {

class GraphCopy {
 public:
  // The target starts with the source's name, symbols and parameters. The source must outlive the copy.
  explicit GraphCopy(const ir::Graph& source);

  const ir::Graph& source() const { return source_; }
  ir::Graph& target() { return target_; }
  ir::Builder& builder() { return builder_; }
  // The value of the target that stands for a value of the source.
  ir::Value at(ir::Value source) const;
  void set(ir::Value source, ir::Value target) { map_[source.id] = target; }
  // Appends the operation with mapped operands and maps its results.
  void copy(const ir::Operation& operation);
  // Maps results and takes over aliases and donations.
  ir::Graph finish();

 private:
  const ir::Graph& source_;
  ir::Graph target_;
  ir::Builder builder_;
  std::vector<ir::Value> map_;
};

// Appends the operations of `body` to `target` with `arguments` for its parameters; returns its results.
std::vector<ir::Value> append_graph(const ir::Graph& body, std::span<const ir::Value> arguments, ir::Graph& target);

// The literal of the constant that defines the value; null when it is none.
const ir::Literal* constant_of(const ir::Graph& graph, ir::Value value);

// True when interpreter and code generator compute the operation to the same bits, so that a pass may evaluate it.
bool is_bit_exact(const ir::Graph& graph, const ir::Operation& operation);

}  // namespace neuron::passes
