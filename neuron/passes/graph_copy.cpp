#include "neuron/passes/graph_copy.h"

#include "neuron/base/error.h"

namespace neuron::passes {

using ir::Opcode;
using ir::Value;

GraphCopy::GraphCopy(const ir::Graph& source)
    : source_(source), target_(source.name()), builder_(target_), map_(static_cast<size_t>(source.value_count())) {
  for (int i = 0; i < source.symbol_count(); ++i) target_.add_symbol(source.symbol_name(i));
  for (Value parameter : source.parameters()) set(parameter, target_.add_parameter(source.type(parameter)));
}

Value GraphCopy::at(Value source) const {
  Value value = map_[source.id];
  check_internal(value.valid(), "value {} of '{}' was dropped but is used", source.id, source_.name());
  return value;
}

void GraphCopy::copy(const ir::Operation& operation) {
  std::vector<Value> operands;
  std::vector<ir::Type> types;
  for (Value operand : operation.operands) operands.push_back(at(operand));
  for (Value result : operation.results) types.push_back(source_.type(result));
  target_.add_operation(operation.opcode, operands, types, operation.attributes, operation.regions);
  const auto& results = target_.operations().back().results;
  for (size_t i = 0; i < results.size(); ++i) set(operation.results[i], results[i]);
}

ir::Graph GraphCopy::finish() {
  std::vector<Value> results;
  for (Value result : source_.results()) results.push_back(at(result));
  target_.set_results(results);
  for (ir::Alias alias : source_.aliases()) target_.add_alias(alias);
  for (int parameter : source_.donated()) target_.donate(parameter);
  return std::move(target_);
}

std::vector<Value> append_graph(const ir::Graph& body, std::span<const Value> arguments, ir::Graph& target) {
  std::vector<Value> map(static_cast<size_t>(body.value_count()));
  for (size_t i = 0; i < arguments.size(); ++i) map[body.parameters()[i].id] = arguments[i];
  for (const ir::Operation& operation : body.operations()) {
    std::vector<Value> operands;
    std::vector<ir::Type> types;
    for (Value operand : operation.operands) operands.push_back(map[operand.id]);
    for (Value result : operation.results) types.push_back(body.type(result));
    target.add_operation(operation.opcode, operands, types, operation.attributes, operation.regions);
    const auto& results = target.operations().back().results;
    for (size_t i = 0; i < results.size(); ++i) map[operation.results[i].id] = results[i];
  }
  std::vector<Value> results;
  for (Value result : body.results()) results.push_back(map[result.id]);
  return results;
}

const ir::Literal* constant_of(const ir::Graph& graph, Value value) {
  int index = graph.defining_operation(value);
  if (index < 0 || graph.operations()[index].opcode != Opcode::Constant) return nullptr;
  return &graph.operations()[index].attributes.get<ir::Literal>("value");
}

bool is_bit_exact(const ir::Graph& graph, const ir::Operation& operation) {
  bool real = true, exact_dtype = true;
  for (Value operand : operation.operands) {
    real &= !is_complex(graph.type(operand).dtype);
    exact_dtype &= !is_float(graph.type(operand).dtype) && real;
  }
  switch (operation.opcode) {
    case Opcode::Constant:
    case Opcode::BitcastConvert:
    case Opcode::Convert:
    case Opcode::Add:
    case Opcode::And:
    case Opcode::Compare:
    case Opcode::Complex:
    case Opcode::Divide:
    case Opcode::Imag:
    case Opcode::IsFinite:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Multiply:
    case Opcode::Negate:
    case Opcode::Not:
    case Opcode::Or:
    case Opcode::PopulationCount:
    case Opcode::CountLeadingZeros:
    case Opcode::Real:
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
    case Opcode::Subtract:
    case Opcode::Xor:
    case Opcode::Select:
    case Opcode::Clamp:
      return true;
    case Opcode::Abs:
    case Opcode::Ceil:
    case Opcode::Floor:
    case Opcode::Remainder:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::Rsqrt:
    case Opcode::Sign:
    case Opcode::Sqrt:
      return real;
    case Opcode::Power:
      return exact_dtype;
    case Opcode::Composite: {
      const auto& name = operation.attributes.get<std::string>("name");
      return real && (name == "neuron.trunc" || name == "neuron.fma");
    }
    default:
      return ir::op_info(operation.opcode).category == ir::OpCategory::Shape;
  }
}

}  // namespace neuron::passes
