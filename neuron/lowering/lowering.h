// Lowering: one function per ATen operator, from the operator to IR. The same table serves eager fusion, torch.compile and
// export. No torch header: operators are named by ATen's base name ("add", "gelu_backward").
//
// Convention for the inputs of a rule: the schema's Tensor and Scalar/float arguments together, in schema order; an absent
// Tensor? is left out and noted in `attributes`. The schema's int, bool, string-enum and dtype arguments are `attributes`,
// in schema order, as int64 (strings by the enumerations in operator_attributes.h). A rule asks for an input in the dtype it
// computes in; whether it was recorded as a tensor, a number or an index does not matter to it.
//
// A rule sees the iteration space, not the user's shape: dimensions may have been merged or reordered. Rules of kind
// Elementwise work point by point; rules of kind Row combine along the one reduced dimension.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "neuron/ir/builder.h"

namespace neuron::lowering {

enum class IterationKind : uint8_t {
  Elementwise,  // output = f(inputs) at each point
  Reduce,       // outputs drop the reduced dimension (sum, amax, argmax, norm)
  Normalize,    // reduces and uses the result along the same row (softmax, layer_norm); the reduced dimension is innermost
};

class Context {
 public:
  // `inputs` are parameters of the builder's graph or values computed before (fusion): full iteration shape, or rank 0.
  Context(ir::Builder& builder, const Dims& space, int reduced_dimension, std::span<const ir::Value> inputs,
          std::span<const int64_t> attributes, DType common, std::span<const DType> outputs);

  ir::Builder& builder() { return builder_; }

  int input_count() const { return static_cast<int>(inputs_.size()); }
  DType input_dtype(int i) const;
  // Input i over the whole iteration space, converted to `dtype`.
  ir::Value input(int i, DType dtype);
  // Input i over the whole iteration space in the dtype it was recorded with.
  ir::Value raw_input(int i);
  int64_t attribute(int i) const;
  int attribute_count() const { return static_cast<int>(attributes_.size()); }

  // The dtype of the operation after type promotion (PyTorch's common dtype), e.g. BFloat16.
  DType common() const { return common_; }
  // The dtype arithmetic is done in: float32 for narrow floats, else common().
  DType compute() const { return compute_dtype(common_); }
  DType output_dtype(int i = 0) const { return outputs_[i]; }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  // Converts to the output's dtype (one rounding) and sets output i.
  void set_output(int i, ir::Value value);
  void set_output(ir::Value value) { set_output(0, value); }
  std::span<const ir::Value> results() const { return results_; }

  // A splat over the iteration space.
  ir::Value constant(double value, DType dtype);
  ir::Value constant_int(int64_t value, DType dtype);
  // Row rules: combine along the reduced dimension (init given as a number), and spread a reduced value over it again.
  ir::Value reduce(ir::Opcode reducer, ir::Value x, double init);
  ir::Value spread(ir::Value reduced);
  // Number of elements along the reduced dimension as a rank-0 or reduced-shape value of `dtype`: recorded as the last
  // input (a Scalar) by every row operator that needs it.
  ir::Value reduced_like_scalar(int input, ir::Value reduced);
  // Position of the (first) extreme along the reduced dimension; NaN wins. Returns (value, index as i64).
  std::pair<ir::Value, ir::Value> arg_reduce(bool maximum, ir::Value x, ir::Value index);

 private:
  ir::Builder& builder_;
  Dims space_;
  int reduced_dimension_;
  std::vector<ir::Value> inputs_;
  std::vector<int64_t> attributes_;
  DType common_;
  std::vector<DType> outputs_;
  std::vector<ir::Value> results_;
};

using LoweringRule = void (*)(Context&);

struct Operator {
  std::string_view name;
  IterationKind kind;
  LoweringRule lower;
  uint32_t id;  // dense, stable within a build
};

// Null when there is no such operator. Pointers live for the whole process.
const Operator* find_operator(std::string_view name);
std::span<const Operator> all_operators();

}  // namespace neuron::lowering
