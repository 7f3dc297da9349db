#include "neuron/codegen/region.h"

#include <cstring>
#include <type_traits>

namespace neuron::codegen {

namespace {

// Appends fixed-size integers and length-prefixed strings, so that no two regions can share their bytes.
class Bytes {
 public:
  template <typename T>
    requires std::is_integral_v<T> || std::is_enum_v<T> || std::is_floating_point_v<T>
  void put(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    text_.append(raw, sizeof(T));
  }
  void put(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    text_.append(text);
  }
  void put(const std::vector<int64_t>& values) {
    put(static_cast<uint32_t>(values.size()));
    for (int64_t value : values) put(value);
  }
  void put(const ir::Type& type) {
    put(type.dtype);
    put(static_cast<uint8_t>(type.rank()));
    for (ir::Dim dim : type.dims) put(dim);
  }
  void put(const ir::Literal& literal) {
    put(literal.type);
    put(std::string_view(reinterpret_cast<const char*>(literal.bytes.data()), literal.bytes.size()));
  }
  void put(const ir::AttributeValue& value) {
    put(static_cast<uint8_t>(value.index()));
    std::visit([this](const auto& held) { put_held(held); }, value);
  }
  void put(const ir::Graph& graph) {
    put(static_cast<uint16_t>(graph.symbol_count()));
    put(static_cast<uint16_t>(graph.parameters().size()));
    for (ir::Value parameter : graph.parameters()) {
      put(parameter.id);
      put(graph.type(parameter));
    }
    put(static_cast<uint32_t>(graph.operations().size()));
    for (const ir::Operation& operation : graph.operations()) put(graph, operation);
    put(static_cast<uint16_t>(graph.results().size()));
    for (ir::Value result : graph.results()) put(result.id);
  }
  std::string take() { return std::move(text_); }

 private:
  void put_held(const std::string& text) { put(std::string_view(text)); }
  template <typename T>
  void put_held(const T& value) {
    put(value);
  }
  void put(const ir::Graph& graph, const ir::Operation& operation) {
    put(operation.opcode);
    put(static_cast<uint16_t>(operation.operands.size()));
    for (ir::Value operand : operation.operands) put(operand.id);
    put(static_cast<uint8_t>(operation.results.size()));
    for (ir::Value result : operation.results) {
      put(result.id);
      put(graph.type(result));
    }
    put(static_cast<uint8_t>(operation.attributes.entries().size()));
    for (const auto& [name, value] : operation.attributes.entries()) {
      put(std::string_view(name));
      put(value);
    }
    // A function of functions.def is known by its name; its decomposition is for readers.
    bool by_name = operation.opcode == ir::Opcode::Composite;
    put(static_cast<uint8_t>(by_name ? 0 : operation.regions.size()));
    if (by_name) return;
    for (const auto& region : operation.regions) put(*region);
  }

  std::string text_;
};

}  // namespace

std::string region_signature(const RegionSpec& spec) {
  Bytes bytes;
  bytes.put(static_cast<uint8_t>(spec.rank));
  bytes.put(spec.reduction);
  for (const auto* operands : {&spec.inputs, &spec.outputs}) {
    bytes.put(static_cast<uint16_t>(operands->size()));
    for (const OperandSignature& operand : *operands) {
      bytes.put(operand.kind);
      bytes.put(operand.dtype);
      bytes.put(operand.inner);
    }
  }
  bytes.put(*spec.graph);
  return bytes.take();
}

}  // namespace neuron::codegen
