#include "neuron/ir/random_functions.h"

#include "neuron/base/error.h"

namespace neuron::ir {

namespace {

Value random_function(Builder& builder, std::string_view name, Value element, Value seed, Value offset, DType dtype) {
  const Type& type = builder.type(element);
  check_internal(type.dtype == DType::Int64 && builder.type(seed) == type && builder.type(offset) == type,
                 "{}: element, seed and offset must have one type, of i64; they are {}, {}, {}", name, to_string(type),
                 to_string(builder.type(seed)), to_string(builder.type(offset)));
  Value operands[] = {element, seed, offset};
  Type result = type.with(dtype);
  Attributes attributes;
  attributes.set("name", "neuron." + std::string(name));
  return builder.operation(Opcode::Composite, operands, {&result, 1}, std::move(attributes));
}

}  // namespace

Value random_bits(Builder& builder, Value element, Value seed, Value offset, DType dtype) {
  return random_function(builder, "random_bits", element, seed, offset, dtype);
}

Value random_normal(Builder& builder, Value element, Value seed, Value offset, DType dtype) {
  return random_function(builder, "random_normal", element, seed, offset, dtype);
}

}  // namespace neuron::ir
