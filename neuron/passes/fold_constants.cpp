#include "neuron/interpret/interpreter.h"
#include "neuron/passes/graph_copy.h"
#include "neuron/passes/pass.h"

namespace neuron::passes {

namespace {

using ir::Literal;
using ir::Opcode;

// Larger results stay as they are: a constant of that size is worth no more than computing it.
constexpr int64_t largest_literal = 1024;

// Elementwise operations of splats, and moves of one splat, are a splat, whatever the (symbolic) sizes.
bool stays_splat(const ir::Operation& operation) {
  switch (ir::op_info(operation.opcode).category) {
    case ir::OpCategory::Unary:
    case ir::OpCategory::Binary:
    case ir::OpCategory::Ternary:
      return true;
    default:
      return operation.opcode == Opcode::Composite;
  }
}

bool moves_splat(Opcode opcode) {
  return opcode == Opcode::BroadcastInDim || opcode == Opcode::Reshape || opcode == Opcode::Transpose ||
         opcode == Opcode::Slice || opcode == Opcode::Reverse;
}

bool small(const ir::Type& type) {
  int64_t count = 1;
  for (ir::Dim dim : type.dims) {
    if (ir::is_symbolic(dim) || dim > largest_literal) return false;
    count *= dim;
  }
  return count <= largest_literal;
}

interpret::Buffer buffer_of(const Literal& literal, bool as_scalar) {
  interpret::Buffer buffer(literal.type.dtype, as_scalar ? Dims{} : literal.type.dims);
  for (size_t at = 0; at < buffer.bytes.size(); at += literal.bytes.size())
    std::copy(literal.bytes.begin(), literal.bytes.end(), buffer.bytes.begin() + static_cast<std::ptrdiff_t>(at));
  return buffer;
}

// The value of the operation on these literals; without bytes when it is not to be folded.
Literal fold(const ir::Graph& graph, const ir::Operation& operation, std::span<const Literal* const> operands) {
  Literal result{graph.type(operation.results[0]), {}};
  bool splats = true, sizes_known = small(result.type);
  for (const Literal* operand : operands) {
    splats &= operand->is_splat();
    sizes_known &= small(operand->type);
  }
  if (splats && moves_splat(operation.opcode)) {
    result.bytes = operands[0]->bytes;
    return result;
  }
  bool as_scalars = splats && stays_splat(operation);
  if (!as_scalars && !sizes_known) return result;
  // One operation, as a graph of its own.
  ir::Graph single;
  std::vector<interpret::Buffer> arguments;
  std::vector<ir::Value> parameters;
  for (const Literal* operand : operands) {
    arguments.push_back(buffer_of(*operand, as_scalars));
    parameters.push_back(single.add_parameter({operand->type.dtype, arguments.back().sizes}));
  }
  ir::Type type = as_scalars ? ir::Type{result.type.dtype, {}} : result.type;
  single.add_operation(operation.opcode, parameters, {&type, 1}, operation.attributes);
  single.set_results(single.operations()[0].results);
  result.bytes = interpret::evaluate(single, arguments, {})[0].bytes;
  return result;
}

ir::Graph run(const ir::Graph& graph) {
  GraphCopy copy(graph);
  for (const ir::Operation& operation : graph.operations()) {
    std::vector<const Literal*> literals;
    for (ir::Value operand : operation.operands) {
      const Literal* literal = constant_of(copy.target(), copy.at(operand));
      if (literal != nullptr) literals.push_back(literal);
    }
    bool constant = !literals.empty() && literals.size() == operation.operands.size();
    Literal folded;
    if (constant && operation.results.size() == 1 && is_bit_exact(graph, operation))
      folded = fold(graph, operation, literals);
    if (folded.bytes.empty()) {
      copy.copy(operation);
    } else {
      copy.set(operation.results[0], copy.builder().constant(std::move(folded)));
    }
  }
  return copy.finish();
}

}  // namespace

const Pass fold_constants = {
    "fold_constants",
    "Evaluates operations whose operands are all constants with the interpreter, when the interpreter's bits are the "
    "code generator's: exp(1) is left alone, because the two may differ in the last bit and a fused program must equal "
    "the unfused one. Splats stay splats, so symbolic sizes are no obstacle.",
    run};

}  // namespace neuron::passes
