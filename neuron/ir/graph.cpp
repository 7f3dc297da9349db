#include "neuron/ir/graph.h"

#include <bit>
#include <cstring>

#include "neuron/base/error.h"
#include "neuron/base/float_formats.h"

namespace neuron::ir {

const OpInfo& op_info(Opcode opcode) {
  static constexpr OpInfo table[] = {
#define NEURON_OPERATION(name, mnemonic, category, operands) {#name, mnemonic, OpCategory::category, operands},
#include "neuron/ir/operations.def"
#undef NEURON_OPERATION
  };
  return table[static_cast<int>(opcode)];
}

std::string to_string(const Type& type) {
  std::string text = "tensor<";
  for (Dim dim : type.dims) text += is_symbolic(dim) ? "?x" : fmt::format("{}x", dim);
  return text + std::string(dtype_name(type.dtype)) + ">";
}

double literal_double(const Literal& literal, int64_t index) {
  return load_as_double(literal.type.dtype, literal.bytes.data() + index * dtype_size(literal.type.dtype));
}

int64_t literal_int(const Literal& literal, int64_t index) {
  return load_as_int(literal.type.dtype, literal.bytes.data() + index * dtype_size(literal.type.dtype));
}

void Attributes::set(std::string_view name, AttributeValue value) {
  for (auto& [key, existing] : entries_) {
    if (key == name) {
      existing = std::move(value);
      return;
    }
  }
  entries_.emplace_back(std::string(name), std::move(value));
}

const AttributeValue* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Attributes::missing(std::string_view name) {
  fail(ErrorKind::Internal, "attribute '{}' is missing or of another kind", name);
}

Dim Graph::add_symbol(std::string name) {
  int symbol = symbol_count();
  symbols_.push_back(name.empty() ? fmt::format("d{}", symbol) : std::move(name));
  return symbolic_dim(symbol);
}

Value Graph::add_parameter(Type type) {
  Value value{value_count()};
  values_.push_back({std::move(type), -1, static_cast<int32_t>(parameters_.size())});
  parameters_.push_back(value);
  return value;
}

Value Graph::add_operation(Opcode opcode, std::span<const Value> operands, std::span<const Type> result_types,
                           Attributes attributes, std::vector<std::shared_ptr<const Graph>> regions) {
  Operation operation{opcode, {}, {}, std::move(attributes), std::move(regions)};
  operation.operands.assign(operands.begin(), operands.end());
  auto index = static_cast<int32_t>(operations_.size());
  for (size_t i = 0; i < result_types.size(); ++i) {
    operation.results.push_back(Value{value_count()});
    values_.push_back({result_types[i], index, static_cast<int32_t>(i)});
  }
  Value first = operation.results.empty() ? Value{} : operation.results[0];
  operations_.push_back(std::move(operation));
  return first;
}

SimpleReducer simple_reducer(const Graph& region) {
  if (region.parameters().size() != 2 || region.operations().size() != 1 || region.results().size() != 1) return {};
  const Operation& operation = region.operations()[0];
  bool in_order = operation.operands.size() == 2 && operation.operands[0] == region.parameters()[0] &&
                  operation.operands[1] == region.parameters()[1];
  if (!in_order || region.results()[0] != operation.results[0]) return {};
  return {true, operation.opcode};
}

}  // namespace neuron::ir
