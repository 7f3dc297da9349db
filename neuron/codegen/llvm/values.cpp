#include "neuron/codegen/llvm/values.h"

#include "neuron/base/error.h"
#include "neuron/codegen/llvm/element_operations.h"

namespace neuron::codegen {

Values::Values(const Plan& plan, llvm::IRBuilder<>& builder, int width)
    : plan_(plan),
      builder_(builder),
      width_(width),
      uniforms_{std::vector<llvm::Value*>(static_cast<size_t>(plan.graph().value_count())),
                std::vector<llvm::Value*>(static_cast<size_t>(plan.graph().value_count()))} {}

void Values::set_uniform(ir::Value value, llvm::Value* scalar) {
  uniforms_.scalars[value.id] = scalar;
  uniforms_.splats[value.id] = Lanes(builder_, width_).splat(scalar);
}

// Broadcasting changes nothing but the shape.
ir::Value Values::source(ir::Value value) const {
  for (;;) {
    const int index = plan_.graph().defining_operation(value);
    if (index < 0 || plan_.graph().operations()[index].opcode != ir::Opcode::BroadcastInDim) return value;
    value = plan_.graph().operations()[index].operands[0];
  }
}

llvm::Value* Values::uniform(ir::Value value) const {
  llvm::Value* scalar = uniforms_.scalars[source(value).id];
  check_internal(scalar != nullptr, "value {} of a region is used before it is computed", value.id);
  return scalar;
}

void Values::begin_body(int parts) {
  elements_.assign(static_cast<size_t>(parts), std::vector<llvm::Value*>(uniforms_.scalars.size()));
}

llvm::Value* Values::get(ir::Value value, int part) const {
  // A broadcast value may itself be what a scratch row keeps, so it is looked up under its own name first.
  llvm::Value* found = elements_[part][value.id];
  if (found == nullptr) found = elements_[part][source(value).id];
  if (found == nullptr) found = uniforms_.splats[source(value).id];
  check_internal(found != nullptr, "value {} of a region is used before it is computed", value.id);
  return found;
}

void Values::emit_uniform(int index) {
  const ir::Graph& graph = plan_.graph();
  const ir::Operation& operation = graph.operations()[index];
  if (operation.opcode == ir::Opcode::BroadcastInDim) return;
  if (operation.opcode == ir::Opcode::Constant) {
    set_uniform(operation.results[0],
                literal_constant(builder_.getContext(), operation.attributes.get<ir::Literal>("value")));
    return;
  }
  llvm::SmallVector<llvm::Value*, 4> operands;
  for (ir::Value operand : operation.operands) operands.push_back(uniform(operand));
  set_uniform(operation.results[0],
              emit_operation(Lanes(builder_, 1), graph, operation, {operands.data(), operands.size()}));
}

void Values::emit(int index, int part) {
  const ir::Graph& graph = plan_.graph();
  const ir::Operation& operation = graph.operations()[index];
  llvm::SmallVector<llvm::Value*, 4> operands;
  for (ir::Value operand : operation.operands) operands.push_back(get(operand, part));
  set(operation.results[0], part,
      emit_operation(Lanes(builder_, width_), graph, operation, {operands.data(), operands.size()}));
}

void Values::emit_by_turns(int index, int parts) {
  llvm::BasicBlock* block = builder_.GetInsertBlock();
  std::vector<std::vector<llvm::Instruction*>> chains(static_cast<size_t>(parts));
  bool alike = true;
  for (int part = 0; part < parts; ++part) {
    llvm::Instruction* last = block->empty() ? nullptr : &block->back();
    emit(index, part);
    auto& chain = chains[static_cast<size_t>(part)];
    for (auto i = last == nullptr ? block->begin() : std::next(last->getIterator()); i != block->end(); ++i)
      chain.push_back(&*i);
    alike = alike && builder_.GetInsertBlock() == block && chain.size() == chains[0].size();
  }
  for (size_t i = 0; alike && i < chains[0].size(); ++i) {
    for (auto& chain : chains) chain[i]->moveBefore(*block, block->end());
  }
}

}  // namespace neuron::codegen
