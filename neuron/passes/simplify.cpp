// Rules are local and exact. Each looks at one operation whose operands are already simplified and gives the value that
// can stand for its result, or none.
#include <cmath>
#include <optional>

#include "neuron/passes/graph_copy.h"
#include "neuron/passes/pass.h"

namespace neuron::passes {

namespace {

using ir::Graph;
using ir::Literal;
using ir::Opcode;
using ir::Operation;
using ir::Type;
using ir::Value;

// Bits a float's significand can hold, the leading one included.
int significand(DType dtype) {
  switch (dtype) {
    case DType::Float8E4M3FN:
      return 4;
    case DType::Float8E5M2:
      return 3;
    case DType::BFloat16:
      return 8;
    case DType::Float16:
      return 11;
    case DType::Float32:
    case DType::Complex64:
      return 24;
    default:
      return 53;
  }
}

bool float_contains(DType wide, DType narrow) {
  if (wide == narrow || wide == DType::Float64) return true;
  if (wide == DType::Float32) return narrow != DType::Float64;
  return dtype_size(narrow) == 1 && dtype_size(wide) == 2;
}

// True when every value of `from` is a value of `to`, so that the conversion loses nothing.
bool preserves(DType from, DType to) {
  if (from == to) return true;
  if (is_complex(from)) return to == DType::Complex128;
  if (is_complex(to)) return preserves(from, to == DType::Complex64 ? DType::Float32 : DType::Float64);
  if (from == DType::Bool) return true;
  if (to == DType::Bool) return false;
  if (is_float(from)) return is_float(to) && float_contains(to, from);
  int bits = static_cast<int>(8 * dtype_size(from));
  // -2^(bits-1) is a power of two, so a signed integer needs one bit less. float8 is too short in range as well.
  if (is_float(to)) return dtype_size(to) > 1 && significand(to) >= (is_signed_integer(from) ? bits - 1 : bits);
  int room = static_cast<int>(8 * dtype_size(to));
  if (is_unsigned_integer(from)) return is_signed_integer(to) ? room > bits : room >= bits;
  return is_signed_integer(to) && room >= bits;
}

// convert(convert(x, middle), to) is convert(x, to) when the first step loses nothing and the second gives what the
// direct one gives. Large unsigned integers are the exception: through a float they saturate, directly they wrap.
bool skips(DType from, DType middle, DType to) {
  if (!preserves(from, middle)) return false;
  bool through_float = is_integer(from) && (is_float(middle) || is_complex(middle)) && is_integer(to);
  return !through_float || is_signed_integer(from) || dtype_size(from) < 4;
}

const Operation* definition(const Graph& graph, Value value, Opcode opcode) {
  int index = graph.defining_operation(value);
  if (index < 0 || graph.operations()[index].opcode != opcode) return nullptr;
  return &graph.operations()[index];
}

// The value is a splat of exactly this number: the sign of a zero counts.
bool is_splat(const Graph& graph, Value value, double number) {
  const Literal* literal = constant_of(graph, value);
  if (literal == nullptr || !literal->is_splat() || is_complex(literal->type.dtype)) return false;
  double have = ir::literal_double(*literal);
  return have == number && std::signbit(have) == std::signbit(number);
}

// What one rule sees: an operation of the source with its operands in the target.
struct Candidate {
  GraphCopy& copy;
  const Operation& operation;
  std::vector<Value> operands;
  const Type& result_type;

  const Graph& graph() const { return copy.target(); }
  DType dtype() const { return result_type.dtype; }
  bool is_real() const { return !is_complex(dtype()); }
  const std::vector<int64_t>& ints(std::string_view name) const { return operation.attributes.get_ints(name); }
  // Same type as an operand: an operation that moves everything nowhere.
  bool same_type(size_t i = 0) const { return graph().type(operands[i]) == result_type; }
};

using Replacement = std::optional<Value>;

Replacement simplify_convert(const Candidate& c) {
  if (c.same_type()) return c.operands[0];
  const Operation* inner = definition(c.graph(), c.operands[0], Opcode::Convert);
  if (inner == nullptr) return {};
  Value x = inner->operands[0];
  DType from = c.graph().type(x).dtype, middle = c.graph().type(c.operands[0]).dtype;
  if (!skips(from, middle, c.dtype())) return {};
  return c.copy.builder().convert(x, c.dtype());
}

// -(-x), not(not x), |-x|.
Replacement simplify_unary(const Candidate& c) {
  Opcode opcode = c.operation.opcode;
  if (opcode == Opcode::Negate || opcode == Opcode::Not) {
    const Operation* inner = definition(c.graph(), c.operands[0], opcode);
    if (inner != nullptr) return inner->operands[0];
  }
  if (opcode == Opcode::Abs && c.is_real()) {
    const Operation* inner = definition(c.graph(), c.operands[0], Opcode::Negate);
    if (inner != nullptr) return c.copy.builder().unary(Opcode::Abs, inner->operands[0]);
  }
  return {};
}

// x * 1, x / 1, x + (-0.0), x - (+0.0), integers + 0, and operations of a value with itself that give it.
Replacement simplify_binary(const Candidate& c) {
  if (!c.is_real()) return {};
  Value x = c.operands[0], y = c.operands[1];
  const Graph& g = c.graph();
  double neutral_of_add = is_float(c.dtype()) ? -0.0 : 0.0;
  switch (c.operation.opcode) {
    case Opcode::Multiply:
      if (is_splat(g, y, 1)) return x;
      if (is_splat(g, x, 1)) return y;
      return {};
    case Opcode::Divide:
      return is_splat(g, y, 1) ? Replacement(x) : Replacement();
    case Opcode::Add:
      if (is_splat(g, y, neutral_of_add)) return x;
      if (is_splat(g, x, neutral_of_add)) return y;
      return {};
    case Opcode::Subtract:
      return is_splat(g, y, 0) ? Replacement(x) : Replacement();
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
      return is_splat(g, y, 0) ? Replacement(x) : Replacement();
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Maximum:
    case Opcode::Minimum:
      return x == y ? Replacement(x) : Replacement();
    default:
      return {};
  }
}

Replacement simplify_select(const Candidate& c) {
  Value predicate = c.operands[0], on_true = c.operands[1], on_false = c.operands[2];
  if (on_true == on_false) return on_true;
  if (is_splat(c.graph(), predicate, 1)) return on_true;
  if (is_splat(c.graph(), predicate, 0)) return on_false;
  const Operation* inverted = definition(c.graph(), predicate, Opcode::Not);
  if (inverted == nullptr || c.graph().type(inverted->operands[0]).dims != c.result_type.dims) return {};
  Value straight = inverted->operands[0];
  return c.copy.builder().select(straight, on_false, on_true);
}

Replacement simplify_reshape(const Candidate& c) {
  if (c.same_type()) return c.operands[0];
  const Operation* inner = definition(c.graph(), c.operands[0], Opcode::Reshape);
  if (inner == nullptr) return {};
  Value x = inner->operands[0];
  if (c.graph().type(x) == c.result_type) return x;
  return c.copy.builder().reshape(x, c.result_type.dims);
}

bool is_ascending(const std::vector<int64_t>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

Replacement simplify_transpose(const Candidate& c) {
  const auto& outer = c.ints("permutation");
  if (is_ascending(outer)) return c.operands[0];
  const Operation* inner = definition(c.graph(), c.operands[0], Opcode::Transpose);
  if (inner == nullptr) return {};
  std::vector<int64_t> composed;
  for (int64_t d : outer) composed.push_back(inner->attributes.get_ints("permutation")[d]);
  Value x = inner->operands[0];
  if (is_ascending(composed)) return x;
  return c.copy.builder().transpose(x, std::move(composed));
}

Replacement simplify_broadcast(const Candidate& c) {
  const auto& outer = c.ints("broadcast_dimensions");
  if (c.same_type() && is_ascending(outer)) return c.operands[0];
  const Operation* inner = definition(c.graph(), c.operands[0], Opcode::BroadcastInDim);
  if (inner == nullptr) return {};
  std::vector<int64_t> composed;
  for (int64_t d : inner->attributes.get_ints("broadcast_dimensions")) composed.push_back(outer[d]);
  Value x = inner->operands[0];
  return c.copy.builder().broadcast_in_dim(x, c.result_type.dims, std::move(composed));
}

// Moves that keep every element where it is.
Replacement simplify_move(const Candidate& c) {
  switch (c.operation.opcode) {
    case Opcode::Slice: {
      bool whole = c.same_type();
      for (int64_t stride : c.ints("strides")) whole &= stride == 1;
      for (int64_t start : c.ints("start_indices")) whole &= start == 0;
      // A symbolic dimension has no static limit: a slice of it is never known to be whole.
      for (ir::Dim dim : c.result_type.dims) whole &= !ir::is_symbolic(dim);
      return whole ? Replacement(c.operands[0]) : Replacement();
    }
    case Opcode::Concatenate:
      return c.operands.size() == 1 ? Replacement(c.operands[0]) : Replacement();
    case Opcode::Pad: {
      bool whole = true;
      for (const char* name : {"edge_padding_low", "edge_padding_high", "interior_padding"})
        for (int64_t amount : c.ints(name)) whole &= amount == 0;
      return whole ? Replacement(c.operands[0]) : Replacement();
    }
    case Opcode::Reverse:
      return c.ints("dimensions").empty() ? Replacement(c.operands[0]) : Replacement();
    default:
      return {};
  }
}

Replacement simplify_operation(const Candidate& c) {
  switch (c.operation.opcode) {
    case Opcode::Convert:
      return simplify_convert(c);
    case Opcode::BitcastConvert:
      return c.same_type() ? Replacement(c.operands[0]) : Replacement();
    case Opcode::Select:
      return simplify_select(c);
    case Opcode::Reshape:
      return simplify_reshape(c);
    case Opcode::Transpose:
      return simplify_transpose(c);
    case Opcode::BroadcastInDim:
      return simplify_broadcast(c);
    default:
      break;
  }
  switch (ir::op_info(c.operation.opcode).category) {
    case ir::OpCategory::Unary:
      return simplify_unary(c);
    case ir::OpCategory::Binary:
      return simplify_binary(c);
    case ir::OpCategory::Shape:
      return simplify_move(c);
    default:
      return {};
  }
}

Graph run(const Graph& graph) {
  GraphCopy copy(graph);
  for (const Operation& operation : graph.operations()) {
    if (operation.results.size() != 1) {
      copy.copy(operation);
      continue;
    }
    Candidate candidate{copy, operation, {}, graph.type(operation.results[0])};
    for (Value operand : operation.operands) candidate.operands.push_back(copy.at(operand));
    if (Replacement replacement = simplify_operation(candidate)) {
      copy.set(operation.results[0], *replacement);
    } else {
      copy.copy(operation);
    }
  }
  return copy.finish();
}

}  // namespace

const Pass simplify = {
    "simplify",
    "Removes what changes nothing: conversions that are undone or passed through a wider type, multiplication by one, "
    "double negation, a select that is decided, moves that leave everything in place. Only rules that keep every bit "
    "are "
    "here: x + 0 is not one (it turns -0 into +0), x - 0 is; nor is a conversion through a type that may round.",
    run};

}  // namespace neuron::passes
