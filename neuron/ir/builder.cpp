#include "neuron/ir/builder.h"

#include <algorithm>

#include "neuron/base/error.h"
#include "neuron/base/float_formats.h"

namespace neuron::ir {

namespace {

DType real_dtype(DType dtype) {
  if (dtype == DType::Complex64) return DType::Float32;
  if (dtype == DType::Complex128) return DType::Float64;
  return dtype;
}

void require(bool condition, std::string_view operation, const char* rule, std::initializer_list<const Type*> types) {
  if (condition) return;
  std::string text;
  for (const Type* type : types) text += (text.empty() ? "" : ", ") + to_string(*type);
  fail(ErrorKind::Internal, "{}: {}; operand types are {}", operation, rule, text);
}

}  // namespace

Value Builder::constant(const Type& type, double value) {
  Literal literal{type, std::vector<std::byte>(dtype_size(type.dtype))};
  store_from_double(type.dtype, value, literal.bytes.data());
  return constant(std::move(literal));
}

Value Builder::constant_int(const Type& type, int64_t value) {
  Literal literal{type, std::vector<std::byte>(dtype_size(type.dtype))};
  store_from_int(type.dtype, value, literal.bytes.data());
  return constant(std::move(literal));
}

Value Builder::constant(Literal literal) {
  Type type = literal.type;
  Attributes attributes;
  attributes.set("value", std::move(literal));
  return operation(Opcode::Constant, {}, {&type, 1}, std::move(attributes));
}

Value Builder::iota(const Type& type, int64_t dimension) {
  Attributes attributes;
  attributes.set("iota_dimension", dimension);
  return operation(Opcode::Iota, {}, {&type, 1}, std::move(attributes));
}

Value Builder::unary(Opcode opcode, Value x) {
  require(op_info(opcode).category == OpCategory::Unary, op_info(opcode).mnemonic, "is not a unary operation",
          {&type(x)});
  Type result = type(x);
  if (opcode == Opcode::IsFinite) result.dtype = DType::Bool;
  if (opcode == Opcode::Real || opcode == Opcode::Imag || opcode == Opcode::Abs)
    result.dtype = real_dtype(result.dtype);
  return operation(opcode, {&x, 1}, {&result, 1});
}

Value Builder::binary(Opcode opcode, Value x, Value y) {
  require(type(x) == type(y), op_info(opcode).mnemonic, "operands must have one type", {&type(x), &type(y)});
  Type result = type(x);
  if (opcode == Opcode::Complex) result.dtype = result.dtype == DType::Float64 ? DType::Complex128 : DType::Complex64;
  Value operands[] = {x, y};
  return operation(opcode, operands, {&result, 1});
}

Value Builder::compare(ComparisonDirection direction, Value x, Value y) {
  require(type(x) == type(y), "compare", "operands must have one type", {&type(x), &type(y)});
  Type result = type(x).with(DType::Bool);
  Attributes attributes;
  attributes.set("comparison_direction", direction);
  Value operands[] = {x, y};
  return operation(Opcode::Compare, operands, {&result, 1}, std::move(attributes));
}

Value Builder::select(Value predicate, Value on_true, Value on_false) {
  bool fits = type(on_true) == type(on_false) && type(predicate) == type(on_true).with(DType::Bool);
  require(fits, "select", "wants i1 and two equal types of the same dimensions",
          {&type(predicate), &type(on_true), &type(on_false)});
  Value operands[] = {predicate, on_true, on_false};
  Type result = type(on_true);
  return operation(Opcode::Select, operands, {&result, 1});
}

Value Builder::clamp(Value minimum, Value x, Value maximum) {
  require(type(minimum) == type(x) && type(maximum) == type(x), "clamp", "operands must have one type",
          {&type(minimum), &type(x), &type(maximum)});
  Value operands[] = {minimum, x, maximum};
  Type result = type(x);
  return operation(Opcode::Clamp, operands, {&result, 1});
}

Value Builder::convert(Value x, DType dtype) {
  if (type(x).dtype == dtype) return x;
  Type result = type(x).with(dtype);
  return operation(Opcode::Convert, {&x, 1}, {&result, 1});
}

Value Builder::bitcast_convert(Value x, DType dtype) {
  require(dtype_size(dtype) == dtype_size(type(x).dtype), "bitcast_convert", "element sizes must be equal", {&type(x)});
  Type result = type(x).with(dtype);
  return operation(Opcode::BitcastConvert, {&x, 1}, {&result, 1});
}

Value Builder::function(std::string_view name, std::span<const Value> operands) {
  Attributes attributes;
  attributes.set("name", "neuron." + std::string(name));
  Type result = type(operands[0]);
  for (Value operand : operands)
    require(type(operand) == result, name, "operands must have one type", {&type(operand), &result});
  return operation(Opcode::Composite, operands, {&result, 1}, std::move(attributes));
}

Value Builder::broadcast_in_dim(Value x, const Dims& result_dims, std::vector<int64_t> broadcast_dimensions) {
  const Type& from = type(x);
  require(broadcast_dimensions.size() == from.dims.size(), "broadcast_in_dim",
          "one result dimension per operand dimension", {&from});
  Type result{from.dtype, result_dims};
  for (size_t i = 0; i < from.dims.size(); ++i) {
    Dim target = result_dims[broadcast_dimensions[i]];
    require(from.dims[i] == 1 || from.dims[i] == target, "broadcast_in_dim",
            "a dimension must be 1 or equal the result's", {&from, &result});
  }
  Attributes attributes;
  attributes.set("broadcast_dimensions", std::move(broadcast_dimensions));
  return operation(Opcode::BroadcastInDim, {&x, 1}, {&result, 1}, std::move(attributes));
}

Value Builder::reshape(Value x, const Dims& result_dims) {
  Type result{type(x).dtype, result_dims};
  return operation(Opcode::Reshape, {&x, 1}, {&result, 1});
}

Value Builder::transpose(Value x, std::vector<int64_t> permutation) {
  Type result = type(x);
  require(permutation.size() == result.dims.size(), "transpose", "one entry per dimension", {&result});
  for (size_t i = 0; i < permutation.size(); ++i) result.dims[i] = type(x).dims[permutation[i]];
  Attributes attributes;
  attributes.set("permutation", std::move(permutation));
  return operation(Opcode::Transpose, {&x, 1}, {&result, 1}, std::move(attributes));
}

Value Builder::slice(Value x, std::vector<int64_t> start, std::vector<int64_t> limit, std::vector<int64_t> strides) {
  Type result = type(x);
  for (size_t i = 0; i < start.size(); ++i) result.dims[i] = (limit[i] - start[i] + strides[i] - 1) / strides[i];
  Attributes attributes;
  attributes.set("start_indices", std::move(start));
  attributes.set("limit_indices", std::move(limit));
  attributes.set("strides", std::move(strides));
  return operation(Opcode::Slice, {&x, 1}, {&result, 1}, std::move(attributes));
}

Value Builder::dynamic_slice(Value x, std::span<const Value> starts, std::vector<int64_t> sizes) {
  Type result{type(x).dtype, {}};
  result.dims.assign(sizes.begin(), sizes.end());
  std::vector<Value> operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  Attributes attributes;
  attributes.set("slice_sizes", std::move(sizes));
  return operation(Opcode::DynamicSlice, operands, {&result, 1}, std::move(attributes));
}

Value Builder::dynamic_update_slice(Value x, Value update, std::span<const Value> starts) {
  std::vector<Value> operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  Type result = type(x);
  return operation(Opcode::DynamicUpdateSlice, operands, {&result, 1});
}

Value Builder::concatenate(std::span<const Value> inputs, int64_t dimension) {
  Type result = type(inputs[0]);
  for (size_t i = 1; i < inputs.size(); ++i) {
    Dim dim = type(inputs[i]).dims[dimension];
    require(!is_symbolic(dim) && !is_symbolic(result.dims[dimension]), "concatenate", "the dimension must be static",
            {&type(inputs[i])});
    result.dims[dimension] += dim;
  }
  Attributes attributes;
  attributes.set("dimension", dimension);
  return operation(Opcode::Concatenate, inputs, {&result, 1}, std::move(attributes));
}

Value Builder::pad(Value x, Value padding, std::vector<int64_t> low, std::vector<int64_t> high,
                   std::vector<int64_t> interior) {
  Type result = type(x);
  for (size_t i = 0; i < low.size(); ++i) {
    if (is_symbolic(result.dims[i])) {
      require(low[i] == 0 && high[i] == 0 && interior[i] == 0, "pad", "a symbolic dimension cannot be padded",
              {&result});
      continue;
    }
    Dim inner = result.dims[i] > 0 ? (result.dims[i] - 1) * interior[i] : 0;
    result.dims[i] += low[i] + high[i] + inner;
  }
  Attributes attributes;
  attributes.set("edge_padding_low", std::move(low));
  attributes.set("edge_padding_high", std::move(high));
  attributes.set("interior_padding", std::move(interior));
  Value operands[] = {x, padding};
  return operation(Opcode::Pad, operands, {&result, 1}, std::move(attributes));
}

Value Builder::reverse(Value x, std::vector<int64_t> dimensions) {
  Type result = type(x);
  Attributes attributes;
  attributes.set("dimensions", std::move(dimensions));
  return operation(Opcode::Reverse, {&x, 1}, {&result, 1}, std::move(attributes));
}

std::shared_ptr<const Graph> make_reducer(Opcode opcode, DType dtype) {
  auto body = std::make_shared<Graph>("reducer");
  Value a = body->add_parameter({dtype, {}});
  Value b = body->add_parameter({dtype, {}});
  Value result = Builder(*body).binary(opcode, a, b);
  body->set_results({&result, 1});
  return body;
}

Value Builder::reduce(Opcode reducer, Value x, Value init, std::vector<int64_t> dimensions) {
  return reduce({&x, 1}, {&init, 1}, std::move(dimensions), make_reducer(reducer, type(x).dtype))[0];
}

std::vector<Value> Builder::reduce(std::span<const Value> inputs, std::span<const Value> inits,
                                   std::vector<int64_t> dimensions, std::shared_ptr<const Graph> body) {
  std::vector<Type> results;
  for (Value input : inputs) {
    Type result{type(input).dtype, {}};
    for (int d = 0; d < type(input).rank(); ++d) {
      bool reduced = std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end();
      if (!reduced) result.dims.push_back(type(input).dims[d]);
    }
    results.push_back(result);
  }
  std::vector<Value> operands(inputs.begin(), inputs.end());
  operands.insert(operands.end(), inits.begin(), inits.end());
  Attributes attributes;
  attributes.set("dimensions", std::move(dimensions));
  operation(Opcode::Reduce, operands, results, std::move(attributes), {std::move(body)});
  const auto& created = graph_.operations().back().results;
  return {created.begin(), created.end()};
}

Value Builder::reduce_window(Opcode reducer, Value x, Value init, std::vector<int64_t> window_dimensions,
                             std::vector<int64_t> window_strides, std::vector<int64_t> window_dilations,
                             std::vector<int64_t> padding) {
  Type result = type(x);
  for (size_t i = 0; i < window_dimensions.size(); ++i) {
    bool whole = window_dimensions[i] == 1 && window_strides[i] == 1 && padding[2 * i] == 0 && padding[2 * i + 1] == 0;
    if (whole) continue;
    int64_t extent = (window_dimensions[i] - 1) * window_dilations[i] + 1;
    int64_t padded = result.dims[i] + padding[2 * i] + padding[2 * i + 1];
    result.dims[i] = padded < extent ? 0 : (padded - extent) / window_strides[i] + 1;
  }
  Attributes attributes;
  attributes.set("window_dimensions", std::move(window_dimensions));
  attributes.set("window_strides", std::move(window_strides));
  attributes.set("window_dilations", std::move(window_dilations));
  attributes.set("padding", std::move(padding));
  Value operands[] = {x, init};
  return operation(Opcode::ReduceWindow, operands, {&result, 1}, std::move(attributes),
                   {make_reducer(reducer, result.dtype)});
}

Value Builder::dot_general(Value lhs, Value rhs, const DotDimensions& dimensions, DType result_dtype) {
  auto contains = [](const std::vector<int64_t>& list, int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  Type result{result_dtype, {}};
  for (int64_t d : dimensions.lhs_batching) result.dims.push_back(type(lhs).dims[d]);
  for (int d = 0; d < type(lhs).rank(); ++d)
    if (!contains(dimensions.lhs_batching, d) && !contains(dimensions.lhs_contracting, d))
      result.dims.push_back(type(lhs).dims[d]);
  for (int d = 0; d < type(rhs).rank(); ++d)
    if (!contains(dimensions.rhs_batching, d) && !contains(dimensions.rhs_contracting, d))
      result.dims.push_back(type(rhs).dims[d]);
  Attributes attributes;
  attributes.set("lhs_batching_dimensions", dimensions.lhs_batching);
  attributes.set("rhs_batching_dimensions", dimensions.rhs_batching);
  attributes.set("lhs_contracting_dimensions", dimensions.lhs_contracting);
  attributes.set("rhs_contracting_dimensions", dimensions.rhs_contracting);
  Value operands[] = {lhs, rhs};
  return operation(Opcode::DotGeneral, operands, {&result, 1}, std::move(attributes));
}

Value Builder::convolution(Value lhs, Value rhs, const ConvolutionDimensions& dimensions, DType result_dtype) {
  const Type &input = type(lhs), &kernel = type(rhs);
  Type result{result_dtype, {input.dims[0] / dimensions.batch_group_count, kernel.dims[0]}};
  size_t spatial = dimensions.window_strides.size();
  for (size_t i = 0; i < spatial; ++i) {
    int64_t dilated_input = input.dims[2 + i] == 0 ? 0 : (input.dims[2 + i] - 1) * dimensions.lhs_dilation[i] + 1;
    int64_t window = (kernel.dims[2 + i] - 1) * dimensions.rhs_dilation[i] + 1;
    int64_t padded = dilated_input + dimensions.padding[2 * i] + dimensions.padding[2 * i + 1];
    result.dims.push_back(padded < window ? 0 : (padded - window) / dimensions.window_strides[i] + 1);
  }
  Attributes attributes;
  attributes.set("window_strides", dimensions.window_strides);
  attributes.set("padding", dimensions.padding);
  attributes.set("lhs_dilation", dimensions.lhs_dilation);
  attributes.set("rhs_dilation", dimensions.rhs_dilation);
  attributes.set("window_reversal",
                 dimensions.window_reversal.empty() ? std::vector<int64_t>(spatial, 0) : dimensions.window_reversal);
  attributes.set("feature_group_count", dimensions.feature_group_count);
  attributes.set("batch_group_count", dimensions.batch_group_count);
  Value operands[] = {lhs, rhs};
  return operation(Opcode::Convolution, operands, {&result, 1}, std::move(attributes));
}

std::vector<Value> Builder::composite(std::string_view name, std::span<const Value> operands, Attributes attributes,
                                      std::shared_ptr<const Graph> decomposition) {
  attributes.set("name", std::string(name));
  std::vector<Type> results;
  for (Value result : decomposition->results()) results.push_back(decomposition->type(result));
  operation(Opcode::Composite, operands, results, std::move(attributes), {std::move(decomposition)});
  const auto& created = graph_.operations().back().results;
  return {created.begin(), created.end()};
}

}  // namespace neuron::ir
