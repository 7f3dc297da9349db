#include "neuron/codegen/llvm/operands.h"

namespace neuron::codegen {

using llvm::Value;

Operands::Operands(Frame& frame, const Plan& plan, Value* arguments, int outer)
    : frame_(frame), plan_(plan), rank_(plan.spec().rank), outer_(outer) {
  auto& b = frame.builder();
  auto field = [&](size_t offset) {
    return b.CreateLoad(frame.pointer(), frame.at(arguments, static_cast<int64_t>(offset)));
  };
  sizes_ = field(offsetof(RegionArguments, sizes));
  pointers_ = field(offsetof(RegionArguments, pointers));
  strides_ = field(offsetof(RegionArguments, strides));
  scalars_ = field(offsetof(RegionArguments, scalars));
  const int operands = static_cast<int>(plan.spec().inputs.size() + plan.spec().outputs.size());
  for (int d = 0; d < outer_; ++d) positions_.push_back(frame.memory(b.getInt64Ty(), "position"));
  for (int k = 0; k < operands; ++k) {
    const OperandSignature& operand = signature(k);
    rows_.push_back(nullptr);
    inner_steps_.push_back(nullptr);
    if (operand.kind == OperandKind::Scalar) continue;
    const bool index = operand.kind == OperandKind::Index;
    llvm::Type* type = index ? static_cast<llvm::Type*>(b.getInt64Ty()) : frame.pointer();
    // Rows change rarely: memory leaves the registers to the inner loop.
    rows_.back() = outer_ > 0 ? frame.memory(type, "row") : frame.variable(type, "row");
    frame.store(index ? scalar(k) : b.CreateLoad(type, frame.at(pointers_, 8 * k)), rows_.back());
    if (operand.inner == InnerStride::Other) inner_steps_.back() = step(k, rank_ - 1);
    if (operand.inner == InnerStride::Zero) inner_steps_.back() = frame.index(0);
  }
}

const OperandSignature& Operands::signature(int operand) const {
  const RegionSpec& spec = plan_.spec();
  const int inputs = static_cast<int>(spec.inputs.size());
  return operand < inputs ? spec.inputs[operand] : spec.outputs[operand - inputs];
}

Value* Operands::size(int dimension) {
  return frame_.builder().CreateLoad(frame_.builder().getInt64Ty(), frame_.at(sizes_, 8 * dimension));
}

Value* Operands::scalar(int input) {
  return frame_.builder().CreateLoad(frame_.builder().getInt64Ty(), frame_.at(scalars_, 8 * input));
}

Value* Operands::step(int operand, int dimension) {
  auto& b = frame_.builder();
  const OperandSignature& signature = this->signature(operand);
  Value* stride = b.CreateLoad(b.getInt64Ty(), frame_.at(strides_, 8 * (operand * rank_ + dimension)));
  const int64_t unit = signature.kind == OperandKind::Index ? 1 : static_cast<int64_t>(dtype_size(signature.dtype));
  return b.CreateMul(stride, frame_.index(unit));
}

void Operands::move(int operand, Value* distance) {
  auto& b = frame_.builder();
  Value* row = frame_.load(rows_[operand]);
  const bool index = signature(operand).kind == OperandKind::Index;
  frame_.store(index ? b.CreateAdd(row, distance) : frame_.at(row, distance), rows_[operand]);
}

void Operands::seek(Value* row) {
  auto& b = frame_.builder();
  for (auto* position : positions_) frame_.store(frame_.index(0), position);
  frame_.when(b.CreateICmpNE(row, frame_.index(0)), [&] {
    Value* rest = row;
    for (int d = outer_ - 1; d >= 0; --d) {
      Value* size = this->size(d);
      Value* position = d == 0 ? rest : b.CreateURem(rest, size);
      if (d > 0) rest = b.CreateUDiv(rest, size);
      frame_.store(position, positions_[d]);
      for (int k = 0; k < count(); ++k) {
        if (rows_[k] != nullptr) move(k, b.CreateMul(position, step(k, d)));
      }
    }
  });
}

void Operands::advance() {
  auto& b = frame_.builder();
  std::function<void(int)> carry = [&](int d) {
    Value* next = b.CreateAdd(frame_.load(positions_[d]), frame_.index(1));
    frame_.store(next, positions_[d]);
    for (int k = 0; k < count(); ++k) {
      if (rows_[k] != nullptr) move(k, step(k, d));
    }
    if (d == 0) return;
    Value* size = this->size(d);
    frame_.when(b.CreateICmpEQ(next, size), [&] {
      frame_.store(frame_.index(0), positions_[d]);
      for (int k = 0; k < count(); ++k) {
        if (rows_[k] != nullptr) move(k, b.CreateNeg(b.CreateMul(size, step(k, d))));
      }
      carry(d - 1);
    });
  };
  if (outer_ > 0) carry(outer_ - 1);
}

Value* Operands::row(int operand) { return held_.empty() ? frame_.load(rows_[operand]) : held_[operand]; }

std::vector<Value*> Operands::current_rows() {
  std::vector<Value*> rows;
  for (auto* row : rows_) rows.push_back(row != nullptr ? frame_.load(row) : nullptr);
  return rows;
}

Stream Operands::stream(int operand, Value* row) {
  return {signature(operand).dtype, row, inner_steps_[operand], false};
}

}  // namespace neuron::codegen
