// Builds graphs with inferred result types. Each method appends one operation (a few of the helpers append several) and
// throws Error(Internal) naming the operation and the operand types when they do not fit: a broken lowering, not a user
// mistake. Elementwise methods want equal dtypes and equal dimensions; broadcasting and conversion are explicit.
#pragma once

#include <memory>

#include "neuron/ir/graph.h"

namespace neuron::ir {

struct DotDimensions {
  std::vector<int64_t> lhs_batching, rhs_batching, lhs_contracting, rhs_contracting;
};

struct ConvolutionDimensions {
  // Layouts are fixed: input [batch, feature, spatial…], kernel [output, input/groups, spatial…], result as the input.
  std::vector<int64_t> window_strides, padding /* low, high per dimension */, lhs_dilation, rhs_dilation;
  std::vector<int64_t> window_reversal;  // 0 or 1 per dimension; empty: none
  int64_t feature_group_count = 1;
  int64_t batch_group_count = 1;
};

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}
  Graph& graph() { return graph_; }
  const Type& type(Value value) const { return graph_.type(value); }

  // Sources.
  Value constant(const Type& type, double value);  // splat
  Value constant_int(const Type& type, int64_t value);
  Value constant(Literal literal);
  Value iota(const Type& type, int64_t dimension);
  // A splat with the dtype and dimensions of `like`.
  Value constant_like(Value like, double value) { return constant(type(like), value); }

  // Elementwise.
  Value unary(Opcode opcode, Value x);  // result: operand type (IsFinite: i1; Real/Imag/Abs of complex: its float)
  Value binary(Opcode opcode, Value x, Value y);  // equal types (Complex: two floats)
  Value compare(ComparisonDirection direction, Value x, Value y);
  Value select(Value predicate, Value on_true, Value on_false);
  Value clamp(Value minimum, Value x, Value maximum);
  Value convert(Value x, DType dtype);          // x itself when it has the dtype already
  Value bitcast_convert(Value x, DType dtype);  // equal sizes
  // A function of functions.def by name ("erf"): composite "neuron.erf".
  Value function(std::string_view name, std::span<const Value> operands);
  Value function(std::string_view name, Value x) { return function(name, std::span<const Value>(&x, 1)); }

  Value add(Value x, Value y) { return binary(Opcode::Add, x, y); }
  Value subtract(Value x, Value y) { return binary(Opcode::Subtract, x, y); }
  Value multiply(Value x, Value y) { return binary(Opcode::Multiply, x, y); }
  Value divide(Value x, Value y) { return binary(Opcode::Divide, x, y); }
  Value maximum(Value x, Value y) { return binary(Opcode::Maximum, x, y); }
  Value minimum(Value x, Value y) { return binary(Opcode::Minimum, x, y); }
  Value negate(Value x) { return unary(Opcode::Negate, x); }
  Value logical_not(Value x) { return unary(Opcode::Not, x); }

  // Shapes.
  Value broadcast_in_dim(Value x, const Dims& result_dims, std::vector<int64_t> broadcast_dimensions);
  Value reshape(Value x, const Dims& result_dims);
  Value transpose(Value x, std::vector<int64_t> permutation);
  Value slice(Value x, std::vector<int64_t> start, std::vector<int64_t> limit, std::vector<int64_t> strides);
  Value dynamic_slice(Value x, std::span<const Value> starts, std::vector<int64_t> sizes);
  Value dynamic_update_slice(Value x, Value update, std::span<const Value> starts);
  Value concatenate(std::span<const Value> inputs, int64_t dimension);
  Value pad(Value x, Value padding, std::vector<int64_t> low, std::vector<int64_t> high, std::vector<int64_t> interior);
  Value reverse(Value x, std::vector<int64_t> dimensions);

  // Reductions. `init` is rank 0. The reduced dimensions disappear from the result.
  Value reduce(Opcode reducer, Value x, Value init, std::vector<int64_t> dimensions);
  // Variadic: `body` takes (accumulators…, elements…) of rank 0.
  std::vector<Value> reduce(std::span<const Value> inputs, std::span<const Value> inits,
                            std::vector<int64_t> dimensions, std::shared_ptr<const Graph> body);
  Value reduce_window(Opcode reducer, Value x, Value init, std::vector<int64_t> window_dimensions,
                      std::vector<int64_t> window_strides, std::vector<int64_t> window_dilations,
                      std::vector<int64_t> padding);

  // Contractions.
  Value dot_general(Value lhs, Value rhs, const DotDimensions& dimensions, DType result);
  Value convolution(Value lhs, Value rhs, const ConvolutionDimensions& dimensions, DType result);

  // Everything else, with the result types given.
  Value operation(Opcode opcode, std::span<const Value> operands, std::span<const Type> result_types,
                  Attributes attributes = {}, std::vector<std::shared_ptr<const Graph>> regions = {}) {
    return graph_.add_operation(opcode, operands, result_types, std::move(attributes), std::move(regions));
  }
  // A composite with its decomposition (same parameters as `operands`). Returns all results.
  std::vector<Value> composite(std::string_view name, std::span<const Value> operands, Attributes attributes,
                               std::shared_ptr<const Graph> decomposition);

 private:
  Graph& graph_;
};

// A region of one binary operation on rank-0 values of the dtype: the body of a reduce.
std::shared_ptr<const Graph> make_reducer(Opcode opcode, DType dtype);

}  // namespace neuron::ir
