// The IR: a graph of typed operations in static single assignment form, StableHLO's operations plus `composite`.
//
// A Graph owns values, operations (in an order in which every operand is defined before its use) and nested graphs
// (reducers, comparators, decompositions). Values are indices into the graph, so a graph can be copied as a value.
// No thread safety: a graph is built by one thread and then shared as `const`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "neuron/base/small_vector.h"
#include "neuron/ir/types.h"

namespace neuron::ir {

enum class Opcode : uint8_t {
#define NEURON_OPERATION(name, mnemonic, category, operands) name,
#include "neuron/ir/operations.def"
#undef NEURON_OPERATION
};

enum class OpCategory : uint8_t { Source, Unary, Binary, Ternary, Shape, Reduction, Contraction, Indexed, Other };

struct OpInfo {
  std::string_view name;      // "Add"
  std::string_view mnemonic;  // "add", without the dialect
  OpCategory category;
  int operands;  // -1: variadic
};

const OpInfo& op_info(Opcode opcode);

constexpr int kOpcodeCount = 0
#define NEURON_OPERATION(name, mnemonic, category, operands) +1
#include "neuron/ir/operations.def"
#undef NEURON_OPERATION
    ;

enum class ComparisonDirection : uint8_t { EQ, NE, LT, LE, GT, GE };

// A dense literal: either one element (a splat of the type) or all elements in row-major order, little endian.
struct Literal {
  Type type;
  std::vector<std::byte> bytes;

  bool is_splat() const { return bytes.size() == dtype_size(type.dtype); }
  friend bool operator==(const Literal&, const Literal&) = default;
};

// Element `index` (0 for a splat) as a double or as a 64-bit integer; bool is 0 or 1; real part of a complex.
double literal_double(const Literal& literal, int64_t index = 0);
int64_t literal_int(const Literal& literal, int64_t index = 0);

using AttributeValue =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, DType, ComparisonDirection, Literal>;

// Attributes by StableHLO's names ("dimensions", "broadcast_dimensions", "comparison_direction", "start_indices" …);
// structured attributes are flattened ("lhs_batching_dimensions"). Few per operation: a linear search.
class Attributes {
 public:
  void set(std::string_view name, AttributeValue value);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const AttributeValue* find(std::string_view name) const;
  // Throws Error(Internal) naming the attribute when it is missing or of another kind.
  template <typename T>
  const T& get(std::string_view name) const {
    const AttributeValue* value = find(name);
    const T* typed = value ? std::get_if<T>(value) : nullptr;
    if (typed == nullptr) missing(name);
    return *typed;
  }
  int64_t get_int(std::string_view name) const { return get<int64_t>(name); }
  const std::vector<int64_t>& get_ints(std::string_view name) const { return get<std::vector<int64_t>>(name); }
  const std::vector<std::pair<std::string, AttributeValue>>& entries() const { return entries_; }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  [[noreturn]] static void missing(std::string_view name);
  std::vector<std::pair<std::string, AttributeValue>> entries_;
};

// A value of one graph.
struct Value {
  int32_t id = -1;
  bool valid() const { return id >= 0; }
  friend bool operator==(Value, Value) = default;
};

class Graph;

struct Operation {
  Opcode opcode;
  SmallVector<Value, 4> operands;
  SmallVector<Value, 2> results;
  Attributes attributes;
  // Reducer, comparator, update computation, or a composite's decomposition.
  std::vector<std::shared_ptr<const Graph>> regions;
};

// Result `result` is written into the memory of parameter `parameter` (in-place update or donated buffer).
struct Alias {
  int result;
  int parameter;
  friend bool operator==(const Alias&, const Alias&) = default;
};

class Graph {
 public:
  explicit Graph(std::string name = "main") : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  // A fresh symbol; its name is for printing only ("d0" when empty).
  Dim add_symbol(std::string name = {});
  int symbol_count() const { return static_cast<int>(symbols_.size()); }
  const std::string& symbol_name(int symbol) const { return symbols_[symbol]; }

  Value add_parameter(Type type);
  // Appends an operation and returns its first result. Types are given by the caller (the Builder infers them).
  Value add_operation(Opcode opcode, std::span<const Value> operands, std::span<const Type> result_types,
                      Attributes attributes = {}, std::vector<std::shared_ptr<const Graph>> regions = {});
  void set_results(std::span<const Value> results) { results_.assign(results.begin(), results.end()); }
  void add_alias(Alias alias) { aliases_.push_back(alias); }
  // Marks the parameter's memory as free for reuse by any result.
  void donate(int parameter) { donated_.push_back(parameter); }

  const std::vector<Value>& parameters() const { return parameters_; }
  const std::vector<Operation>& operations() const { return operations_; }
  std::vector<Operation>& mutable_operations() { return operations_; }
  const std::vector<Value>& results() const { return results_; }
  const std::vector<Alias>& aliases() const { return aliases_; }
  const std::vector<int>& donated() const { return donated_; }
  const Type& type(Value value) const { return values_[value.id].type; }
  int value_count() const { return static_cast<int>(values_.size()); }
  // Index into operations() of the operation that defines the value, -1 for a parameter.
  int defining_operation(Value value) const { return values_[value.id].operation; }
  // Which result of that operation, or which parameter.
  int result_index(Value value) const { return values_[value.id].index; }

 private:
  struct ValueInfo {
    Type type;
    int32_t operation;
    int32_t index;
  };
  std::string name_;
  std::vector<std::string> symbols_;
  std::vector<ValueInfo> values_;
  std::vector<Value> parameters_;
  std::vector<Operation> operations_;
  std::vector<Value> results_;
  std::vector<Alias> aliases_;
  std::vector<int> donated_;
};

// The opcode of a two-parameter region that consists of one binary operation on its parameters in order
// (`add`, `maximum` …): the shape of nearly every reducer. Empty otherwise.
struct SimpleReducer {
  bool valid = false;
  Opcode opcode = Opcode::Add;
};
SimpleReducer simple_reducer(const Graph& region);

}  // namespace neuron::ir
