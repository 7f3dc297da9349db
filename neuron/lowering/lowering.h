// Lowering: one function per ATen operator, from the operator to IR. The same table serves eager fusion, torch.compile
// and export. No torch header: operators are named by ATen's base name ("add", "gelu_backward").
//
// Convention for the arguments of an elementwise rule, taken from the operator's schema in order:
//   Tensor, Scalar, float            one input
//   Tensor?, Scalar?, float?         one attribute, 1 when present and 0 when absent, and one input when present
//   int, bool, str, dtype, layout …  one attribute as int64 (strings by the enumerations of operator_attributes.h)
// Attributes at the end that are missing are taken as 0. Operators with a convention of their own (reductions, norms,
// random numbers, optimizers) state it above their rule. A rule asks for an input in the dtype it computes in; whether
// it was recorded as a tensor, a number or an index does not matter to it.
//
// A rule sees the iteration space, not the user's shape: dimensions may have been merged or reordered. Rules of kind
// Elementwise work point by point; rules of kind Reduce and Normalize combine along the one reduced dimension. The type
// of a result tells its shape: rank of the space, or one less for a reduced result.
//
// Rounding: arithmetic on narrow floats is done in float32 and rounded once, to common(), by set_output.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "neuron/ir/builder.h"

namespace neuron::lowering {

enum class IterationKind : uint8_t {
  Elementwise,  // output = f(inputs) at each point
  Reduce,       // outputs drop the reduced dimension (sum, amax, argmax, norm)
  Normalize,  // reduces and uses the result along the same row (softmax, layer_norm, var): the reduced dimension has to
              // be innermost and follows the inner rule of docs/numerics.md; outputs are full or reduced
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
  // Input i converted to `dtype`, of rank 0 when it was recorded as a number: for arithmetic that does not depend on
  // the position. expand() brings a value of either kind over the iteration space.
  ir::Value narrow_input(int i, DType dtype);
  ir::Value expand(ir::Value value);
  // Attribute i; 0 when fewer were recorded.
  int64_t attribute(int i) const;
  int attribute_count() const { return static_cast<int>(attributes_.size()); }

  // The dtype of the operation after type promotion (PyTorch's common dtype), e.g. BFloat16.
  DType common() const { return common_; }
  // The dtype arithmetic is done in: float32 for narrow floats, else common().
  DType compute() const { return compute_dtype(common_); }
  DType output_dtype(int i = 0) const { return outputs_[i]; }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  // Rounds to common() where that is a narrow float, converts to the output's dtype, and sets output i.
  void set_output(int i, ir::Value value);
  void set_output(ir::Value value) { set_output(0, value); }
  // Without the rounding to common(): for outputs wider than the operation's dtype (float32 statistics of bfloat16
  // rows).
  void set_exact_output(int i, ir::Value value);
  std::span<const ir::Value> results() const { return results_; }

  // A splat over the iteration space.
  ir::Value constant(double value, DType dtype);
  ir::Value constant_int(int64_t value, DType dtype);
  // Row rules: combine along the reduced dimension, and spread a reduced value over it again. `init` is a number; for
  // Maximum and Minimum use reduce_extreme, which starts from the dtype's own lowest or highest value.
  ir::Value reduce(ir::Opcode reducer, ir::Value x, double init);
  ir::Value reduce_extreme(bool maximum, ir::Value x);
  // The largest element of a row of floats without NaN; of others some number or NaN. A third of the instructions of
  // reduce_extreme: for rows of which one NaN makes everything NaN.
  ir::Value reduce_largest(ir::Value x);
  ir::Value spread(ir::Value reduced);
  // A number recorded as an input (the count of reduced elements, a correction), with the shape of `reduced`.
  ir::Value reduced_like_scalar(int input, ir::Value reduced);
  // Position of the first extreme along the reduced dimension; a NaN is more extreme than any number and the first one
  // wins. `index` (i64) is the position along the dimension. Returns (value, index).
  std::pair<ir::Value, ir::Value> arg_reduce(bool maximum, ir::Value x, ir::Value index);

 private:
  ir::Value broadcast(ir::Value value, const Dims& dims);

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

// The body of a (value, index) reduction: parameters (best, best index, candidate, candidate index), results (value,
// index). The candidate wins when it is strictly more extreme, or equally extreme (NaN with NaN too) at a smaller
// index: the order in which elements are combined does not matter.
std::shared_ptr<const ir::Graph> make_arg_reducer(bool maximum, DType dtype);

// Null when there is no such operator. Pointers live for the whole process.
const Operator* find_operator(std::string_view name);
std::span<const Operator> all_operators();

}  // namespace neuron::lowering
