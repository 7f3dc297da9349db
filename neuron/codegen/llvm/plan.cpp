#include "neuron/codegen/llvm/plan.h"

#include <algorithm>

#include "neuron/base/error.h"
#include "neuron/codegen/llvm/element_operations.h"

namespace neuron::codegen {

namespace {

using ir::Opcode;

// Cheaper values are computed again rather than written to and read from a scratch row.
constexpr int kRecomputeLimit = 6;

void add_once(std::vector<int>& list, int value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

void add_once(std::vector<ir::Value>& list, ir::Value value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

}  // namespace

Plan::Plan(const RegionSpec& spec) : spec_(spec), info_(static_cast<size_t>(spec.graph->value_count())) {
  check_internal(spec.rank >= (spec.reduction == Reduction::Outer ? 2 : 1), "a region of rank {} with this reduction",
                 spec.rank);
  check_internal(spec.inputs.size() == graph().parameters().size() && spec.outputs.size() == graph().results().size(),
                 "a region's graph has {} parameters and {} results, its signature {} and {}",
                 graph().parameters().size(), graph().results().size(), spec.inputs.size(), spec.outputs.size());
  place_parameters();
  for (size_t i = 0; i < graph().operations().size(); ++i) place_operation(static_cast<int>(i));
  build_stages();
  measure();
}

void Plan::place_parameters() {
  for (size_t i = 0; i < spec_.inputs.size(); ++i) {
    const OperandSignature& input = spec_.inputs[i];
    const ir::Value value = graph().parameters()[i];
    const ir::Type& type = graph().type(value);
    const bool scalar = input.kind == OperandKind::Scalar;
    check_internal(type.dtype == input.dtype, "input {} of a region is {} in the graph and {} in the signature", i,
                   dtype_name(type.dtype), dtype_name(input.dtype));
    check_internal(type.rank() == (scalar ? 0 : spec_.rank), "input {} of a region of rank {} is {}", i, spec_.rank,
                   ir::to_string(type));
    Info& info = info_[value.id];
    info.scope = scalar ? Scope::Kernel : input.inner == InnerStride::Zero ? Scope::Row : Scope::Element;
  }
}

void Plan::place_operation(int index) {
  const ir::Operation& operation = graph().operations()[index];
  Info joined;
  for (ir::Value operand : operation.operands) {
    const Info& info = info_[operand.id];
    if (info.scope == Scope::Column) {
      check_internal(joined.scope != Scope::Element && joined.scope != Scope::Row,
                     "{}: a reduced value meets the full space", ir::op_info(operation.opcode).mnemonic);
    }
    joined.scope = std::max(joined.scope, info.scope);
    joined.stage = std::max(joined.stage, info.stage);
    joined.cost += info.scope == Scope::Element ? info.cost : 0;
  }
  joined.cost += operation_cost(graph(), operation);
  if (operation.opcode == Opcode::Reduce) {
    check_internal(spec_.reduction != Reduction::None, "reduce in a region without a reduction");
    const auto& dimensions = operation.attributes.get_ints("dimensions");
    const int expected = spec_.reduction == Reduction::Inner ? spec_.rank - 1 : spec_.rank - 2;
    check_internal(dimensions.size() == 1 && dimensions[0] == expected,
                   "reduce: a region of rank {} reduces dimension {} only", spec_.rank, expected);
    joined.scope = spec_.reduction == Reduction::Inner ? Scope::Row : Scope::Column;
    joined.stage += 1;
    joined.cost = 0;
  } else {
    const bool known =
        operation.opcode == Opcode::Constant || operation.opcode == Opcode::BroadcastInDim || is_elementwise(operation);
    check_internal(known, "{} is not an operation of a generated region", ir::op_info(operation.opcode).mnemonic);
    check_internal(operation.opcode != Opcode::BroadcastInDim || joined.scope != Scope::Column,
                   "broadcast_in_dim of a reduced value in a region that reduces an outer dimension");
  }
  for (ir::Value result : operation.results) info_[result.id] = joined;
}

bool Plan::output_is_reduced(int output) const {
  const ir::Value result = graph().results()[output];
  if (graph().type(result).rank() < spec_.rank) return true;
  // A value of the full type that does not vary along the row, stored once per row.
  return spec_.reduction == Reduction::Inner && spec_.outputs[output].inner == InnerStride::Zero &&
         scope(result) != Scope::Element;
}

int Plan::scratch_index(ir::Value value) const {
  return static_cast<int>(std::find(scratch_.begin(), scratch_.end(), value) - scratch_.begin());
}

void Plan::build_stages() {
  int last = 0;
  for (const ir::Operation& operation : graph().operations()) {
    if (operation.opcode == Opcode::Reduce) last = std::max(last, stage(operation.results[0]) - 1);
  }
  bool full_outputs = false;
  for (size_t i = 0; i < graph().results().size(); ++i) {
    if (output_is_reduced(static_cast<int>(i))) continue;
    full_outputs = true;
    last = std::max(last, stage(graph().results()[i]));
  }
  stages_.resize(static_cast<size_t>(last) + 1);
  stages_[last].stores_outputs = full_outputs;
  for (size_t i = 0; i < graph().operations().size(); ++i) {
    const ir::Operation& operation = graph().operations()[i];
    if (operation.opcode == Opcode::Reduce)
      stages_[stage(operation.results[0]) - 1].reductions.push_back(static_cast<int>(i));
  }
  // Backwards, because a later stage decides what an earlier one has to keep.
  for (int s = last; s >= 0; --s) {
    std::vector<char> visited(info_.size(), 0);
    Stage& current = stages_[s];
    for (int index : current.reductions) {
      const auto& operands = graph().operations()[index].operands;
      for (size_t i = 0; i < operands.size() / 2; ++i) need(operands[i], s, visited);
    }
    for (ir::Value value : current.scratch_stores) need(value, s, visited);
    if (current.stores_outputs) {
      for (size_t i = 0; i < graph().results().size(); ++i) {
        if (!output_is_reduced(static_cast<int>(i))) need(graph().results()[i], s, visited);
      }
    }
    std::sort(current.operations.begin(), current.operations.end());
    for (int index : current.operations) current.cost += operation_cost(graph(), graph().operations()[index]);
  }
}

void Plan::need(ir::Value value, int s, std::vector<char>& visited) {
  if (visited[value.id] || scope(value) != Scope::Element) return;
  visited[value.id] = 1;
  const int index = graph().defining_operation(value);
  Stage& current = stages_[s];
  if (index < 0) return add_once(current.inputs, graph().result_index(value));
  const ir::Operation& operation = graph().operations()[index];
  if (operation.opcode == Opcode::BroadcastInDim) return need(operation.operands[0], s, visited);
  if (stage(value) < s && info_[value.id].cost >= kRecomputeLimit) {
    add_once(scratch_, value);
    add_once(current.scratch_loads, value);
    add_once(stages_[stage(value)].scratch_stores, value);
    return;
  }
  if (is_random_line(operation)) return add_once(current.random, index);
  add_once(current.operations, index);
  for (ir::Value operand : operation.operands) need(operand, s, visited);
}

// Neighbouring elements share blocks of random words, so their numbers are made together: where elements are counted by
// an Index operand.
bool Plan::is_random_line(const ir::Operation& operation) const {
  if (!is_random(operation)) return false;
  const int input = graph().result_index(operation.operands[0]);
  return graph().defining_operation(operation.operands[0]) < 0 && spec_.inputs[input].kind == OperandKind::Index &&
         scope(operation.operands[1]) == Scope::Kernel && scope(operation.operands[2]) == Scope::Kernel;
}

bool Plan::reads(int input) const {
  return std::any_of(stages_.begin(), stages_.end(), [&](const Stage& stage) {
    return std::find(stage.inputs.begin(), stage.inputs.end(), input) != stage.inputs.end();
  });
}

void Plan::measure() {
  auto meet = [&](ir::Value value) {
    if (scope(value) == Scope::Kernel || scope(value) == Scope::Row) return;
    widest_ = std::max(widest_, static_cast<int>(dtype_size(compute_dtype(graph().type(value).dtype))));
  };
  for (size_t i = 0; i < graph().parameters().size(); ++i) {
    if (spec_.inputs[i].kind == OperandKind::Tensor || reads(static_cast<int>(i))) meet(graph().parameters()[i]);
  }
  for (const ir::Operation& operation : graph().operations()) {
    for (ir::Value result : operation.results) meet(result);
  }
}

int Plan::cost() const {
  int total = 0;
  for (const Stage& stage : stages_) {
    total +=
        stage.cost + 2 * static_cast<int>(stage.inputs.size() + stage.scratch_loads.size() + stage.reductions.size());
    for (int index : stage.random) total += operation_cost(graph(), graph().operations()[index]);
  }
  return total + 2 * static_cast<int>(spec_.outputs.size());
}

}  // namespace neuron::codegen
