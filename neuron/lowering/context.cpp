#include <limits>

#include "neuron/base/error.h"
#include "neuron/lowering/lowering.h"

namespace neuron::lowering {

Context::Context(ir::Builder& builder, const Dims& space, int reduced_dimension, std::span<const ir::Value> inputs,
                 std::span<const int64_t> attributes, DType common, std::span<const DType> outputs)
    : builder_(builder),
      space_(space),
      reduced_dimension_(reduced_dimension),
      inputs_(inputs.begin(), inputs.end()),
      attributes_(attributes.begin(), attributes.end()),
      common_(common),
      outputs_(outputs.begin(), outputs.end()),
      results_(outputs.size()) {}

DType Context::input_dtype(int i) const { return builder_.type(inputs_.at(i)).dtype; }

ir::Value Context::broadcast(ir::Value value, const Dims& dims) {
  if (builder_.type(value).dims == dims) return value;
  check_internal(builder_.type(value).rank() == 0, "an input must cover the iteration space or have rank 0, not {}",
                 to_string(builder_.type(value)));
  return builder_.broadcast_in_dim(value, dims, {});
}

ir::Value Context::expand(ir::Value value) { return broadcast(value, space_); }

ir::Value Context::narrow_input(int i, DType dtype) {
  check_internal(i < input_count(), "input {} of {} was not recorded", i, input_count());
  return builder_.convert(inputs_[i], dtype);
}

ir::Value Context::input(int i, DType dtype) { return expand(narrow_input(i, dtype)); }

ir::Value Context::raw_input(int i) { return input(i, input_dtype(i)); }

int64_t Context::attribute(int i) const { return i < attribute_count() ? attributes_[i] : 0; }

void Context::set_exact_output(int i, ir::Value value) { results_.at(i) = builder_.convert(value, outputs_.at(i)); }

void Context::set_output(int i, ir::Value value) {
  bool rounds = is_reduced_float(common_) && builder_.type(value).dtype == compute();
  set_exact_output(i, rounds ? builder_.convert(value, common_) : value);
}

ir::Value Context::constant(double value, DType dtype) { return builder_.constant({dtype, space_}, value); }

ir::Value Context::constant_int(int64_t value, DType dtype) { return builder_.constant_int({dtype, space_}, value); }

ir::Value Context::reduce(ir::Opcode reducer, ir::Value x, double init) {
  ir::Value start = builder_.constant({builder_.type(x).dtype, {}}, init);
  return builder_.reduce(reducer, x, start, {reduced_dimension_});
}

namespace {

// The value that never wins: the lowest of the dtype for a maximum, the highest for a minimum.
ir::Value extreme_identity(ir::Builder& builder, bool maximum, DType dtype) {
  ir::Type type{dtype, {}};
  if (is_float(dtype)) {
    double infinity = std::numeric_limits<double>::infinity();
    return builder.constant(type, maximum ? -infinity : infinity);
  }
  if (dtype == DType::Bool) return builder.constant_int(type, maximum ? 0 : 1);
  int bits = static_cast<int>(dtype_size(dtype)) * 8;
  if (is_unsigned_integer(dtype)) return builder.constant_int(type, maximum ? 0 : -1);
  int64_t lowest = std::numeric_limits<int64_t>::min() >> (64 - bits);
  return builder.constant_int(type, maximum ? lowest : ~lowest);
}

}  // namespace

ir::Value Context::reduce_extreme(bool maximum, ir::Value x) {
  DType dtype = builder_.type(x).dtype;
  ir::Opcode reducer = maximum ? ir::Opcode::Maximum : ir::Opcode::Minimum;
  if (dtype == DType::Bool) reducer = maximum ? ir::Opcode::Or : ir::Opcode::And;
  return builder_.reduce(reducer, x, extreme_identity(builder_, maximum, dtype), {reduced_dimension_});
}

ir::Value Context::reduce_largest(ir::Value x) {
  DType dtype = builder_.type(x).dtype;
  auto body = std::make_shared<ir::Graph>("largest");
  ir::Value best = body->add_parameter({dtype, {}}), candidate = body->add_parameter({dtype, {}});
  ir::Builder b(*body);
  ir::Value larger = b.select(b.compare(ir::ComparisonDirection::GT, best, candidate), best, candidate);
  body->set_results({&larger, 1});
  ir::Value init = extreme_identity(builder_, true, dtype);
  return builder_.reduce({&x, 1}, {&init, 1}, {reduced_dimension_}, body)[0];
}

ir::Value Context::spread(ir::Value reduced) {
  std::vector<int64_t> dimensions;
  for (int d = 0; d < static_cast<int>(space_.size()); ++d)
    if (d != reduced_dimension_) dimensions.push_back(d);
  return builder_.broadcast_in_dim(reduced, space_, std::move(dimensions));
}

ir::Value Context::reduced_like_scalar(int input, ir::Value reduced) {
  const ir::Type type = builder_.type(reduced);
  return broadcast(narrow_input(input, type.dtype), type.dims);
}

std::pair<ir::Value, ir::Value> Context::arg_reduce(bool maximum, ir::Value x, ir::Value index) {
  DType dtype = builder_.type(x).dtype;
  ir::Value inputs[] = {x, index};
  ir::Value inits[] = {extreme_identity(builder_, maximum, dtype),
                       builder_.constant_int({DType::Int64, {}}, std::numeric_limits<int64_t>::max())};
  auto results = builder_.reduce(inputs, inits, {reduced_dimension_}, make_arg_reducer(maximum, dtype));
  return {results[0], results[1]};
}

std::shared_ptr<const ir::Graph> make_arg_reducer(bool maximum, DType dtype) {
  using ir::ComparisonDirection;
  auto body = std::make_shared<ir::Graph>(maximum ? "argmax" : "argmin");
  ir::Value best = body->add_parameter({dtype, {}});
  ir::Value best_index = body->add_parameter({DType::Int64, {}});
  ir::Value candidate = body->add_parameter({dtype, {}});
  ir::Value candidate_index = body->add_parameter({DType::Int64, {}});
  ir::Builder b(*body);
  ir::Value better = b.compare(maximum ? ComparisonDirection::GT : ComparisonDirection::LT, candidate, best);
  ir::Value equal = b.compare(ComparisonDirection::EQ, candidate, best);
  if (is_float(dtype)) {
    ir::Value best_nan = b.compare(ComparisonDirection::NE, best, best);
    ir::Value candidate_nan = b.compare(ComparisonDirection::NE, candidate, candidate);
    better = b.binary(ir::Opcode::Or, better, b.binary(ir::Opcode::And, candidate_nan, b.logical_not(best_nan)));
    equal = b.binary(ir::Opcode::Or, equal, b.binary(ir::Opcode::And, candidate_nan, best_nan));
  }
  ir::Value earlier = b.compare(ComparisonDirection::LT, candidate_index, best_index);
  ir::Value wins = b.binary(ir::Opcode::Or, better, b.binary(ir::Opcode::And, equal, earlier));
  ir::Value results[] = {b.select(wins, candidate, best), b.select(wins, candidate_index, best_index)};
  body->set_results(results);
  return body;
}

}  // namespace neuron::lowering
