#include "neuron/codegen/llvm/reduction.h"

#include "neuron/base/error.h"
#include "neuron/codegen/llvm/conversions.h"
#include "neuron/codegen/llvm/element_operations.h"

namespace neuron::codegen {

using llvm::Value;

Reducer::Reducer(const ir::Graph& graph, const ir::Operation& operation)
    : operation_(operation), simple_(ir::simple_reducer(*operation.regions.at(0))) {
  for (ir::Value result : operation.results) {
    operands_.push_back(graph.type(result).dtype);
    dtypes_.push_back(compute_dtype(operands_.back()));
  }
  check_internal(simple_.valid ? count() == 1 : true, "reduce: a simple reducer of {} values", count());
}

llvm::Type* Reducer::type(llvm::LLVMContext& context, int value) const {
  return Lanes::memory_type(context, dtypes_[value]);
}

Value* Reducer::identity(llvm::LLVMContext& context, int value, Value* init) const {
  if (!simple_.valid) return init;
  llvm::Constant* identity = reducer_identity(context, simple_.opcode, dtypes_[value]);
  if (dtypes_[value] != DType::Bool) return identity;
  return llvm::ConstantInt::get(llvm::Type::getInt8Ty(context), identity->isZeroValue() ? 0 : 1);
}

Value* Reducer::enter(const Lanes& lanes, int value, Value* x) const {
  if (dtypes_[value] == DType::Bool) return lanes.builder().CreateZExt(x, lanes.integer(8));
  return emit_widen(lanes, x, operands_[value]);
}

Value* Reducer::leave(const Lanes& lanes, int value, Value* x) const {
  if (dtypes_[value] == DType::Bool) return lanes.builder().CreateICmpNE(x, lanes.integer(x, 0));
  return emit_narrow(lanes, x, operands_[value]);
}

void Reducer::combine(const Lanes& lanes, llvm::MutableArrayRef<Value*> accumulators,
                      llvm::ArrayRef<Value*> elements) const {
  auto& b = lanes.builder();
  auto to_register = [&](int value, Value* x) {
    return dtypes_[value] == DType::Bool ? b.CreateICmpNE(x, lanes.integer(x, 0)) : x;
  };
  auto to_accumulator = [&](int value, Value* x) {
    return dtypes_[value] == DType::Bool ? b.CreateZExt(x, lanes.integer(8)) : x;
  };
  if (simple_.valid) {
    Value* combined =
        emit_binary(lanes, simple_.opcode, dtypes_[0], to_register(0, accumulators[0]), to_register(0, elements[0]));
    accumulators[0] = to_accumulator(0, combined);
    return;
  }
  const ir::Graph& body = *operation_.regions[0];
  std::vector<Value*> values(static_cast<size_t>(body.value_count()));
  for (int i = 0; i < count(); ++i) {
    check_internal(!is_reduced_float(operands_[i]), "reduce: several values of {} are not accumulated",
                   dtype_name(operands_[i]));
    values[body.parameters()[i].id] = to_register(i, accumulators[i]);
    values[body.parameters()[count() + i].id] = to_register(i, elements[i]);
  }
  for (const ir::Operation& operation : body.operations()) {
    if (operation.opcode == ir::Opcode::Constant) {
      auto* constant = literal_constant(b.getContext(), operation.attributes.get<ir::Literal>("value"));
      values[operation.results[0].id] = lanes.splat(constant);
      continue;
    }
    check_internal(is_elementwise(operation), "reduce: a reducer with {}", ir::op_info(operation.opcode).mnemonic);
    llvm::SmallVector<Value*, 4> operands;
    for (ir::Value operand : operation.operands) operands.push_back(values[operand.id]);
    values[operation.results[0].id] = emit_operation(lanes, body, operation, {operands.data(), operands.size()});
  }
  for (int i = 0; i < count(); ++i) accumulators[i] = to_accumulator(i, values[body.results()[i].id]);
}

LaneAccumulators::LaneAccumulators(Frame& frame, const Reducer& reducer, int width, int parts)
    : frame_(frame), reducer_(reducer), width_(width), parts_(parts), in_registers_(width * parts == kLanes) {
  auto& context = frame.builder().getContext();
  for (int value = 0; value < reducer.count(); ++value) {
    llvm::Type* element = reducer.type(context, value);
    storage_.emplace_back();
    if (in_registers_) {
      for (int part = 0; part < parts; ++part)
        storage_.back().push_back(frame.variable(Lanes(frame.builder(), width).of(element), "lanes"));
    } else {
      storage_.back().push_back(frame.memory(llvm::ArrayType::get(element, kLanes), "lanes"));
    }
  }
}

Value* LaneAccumulators::address(Value* position, int value, int part) {
  if (in_registers_) return storage_[value][part];
  auto& b = frame_.builder();
  Value* lane = b.CreateAnd(b.CreateAdd(position, frame_.index(part * width_)), frame_.index(kLanes - 1));
  return b.CreateGEP(reducer_.type(b.getContext(), value), storage_[value][0], lane);
}

void LaneAccumulators::reset(llvm::ArrayRef<Value*> inits) {
  auto& b = frame_.builder();
  Lanes lanes(b, width_);
  for (int value = 0; value < reducer_.count(); ++value) {
    Value* identity = lanes.splat(reducer_.identity(b.getContext(), value, inits[value]));
    for (int i = 0; i < kLanes / width_; ++i)
      b.CreateStore(identity, address(frame_.index(in_registers_ ? 0 : i * width_), value, in_registers_ ? i : 0));
  }
}

void LaneAccumulators::add(Value* position, int part, llvm::ArrayRef<Value*> elements, Value* mask) {
  auto& b = frame_.builder();
  Lanes lanes(b, width_);
  llvm::SmallVector<Value*, 2> addresses, accumulators;
  for (int value = 0; value < reducer_.count(); ++value) {
    addresses.push_back(address(position, value, part));
    accumulators.push_back(b.CreateLoad(lanes.of(reducer_.type(b.getContext(), value)), addresses.back()));
  }
  const llvm::SmallVector<Value*, 2> before(accumulators);
  reducer_.combine(lanes, accumulators, elements);
  for (int value = 0; value < reducer_.count(); ++value) {
    Value* after = accumulators[value];
    b.CreateStore(mask == nullptr ? after : b.CreateSelect(mask, after, before[value]), addresses[value]);
  }
}

llvm::SmallVector<Value*, 2> LaneAccumulators::fold() {
  auto& b = frame_.builder();
  Lanes lanes(b, width_);
  const int values = reducer_.count();
  std::vector<llvm::SmallVector<Value*, 2>> vectors;  // [vector][value]
  for (int i = 0; i < kLanes / width_; ++i) {
    vectors.emplace_back();
    for (int value = 0; value < values; ++value) {
      Value* from = address(frame_.index(in_registers_ ? 0 : i * width_), value, in_registers_ ? i : 0);
      vectors.back().push_back(b.CreateLoad(lanes.of(reducer_.type(b.getContext(), value)), from));
    }
  }
  while (vectors.size() > 1) {
    const size_t half = vectors.size() / 2;
    for (size_t i = 0; i < half; ++i) reducer_.combine(lanes, vectors[i], vectors[half + i]);
    vectors.resize(half);
  }
  auto& left = vectors[0];
  for (int half = width_ / 2; half > 0; half /= 2) {
    llvm::SmallVector<int, 32> low, high;
    for (int i = 0; i < half; ++i) low.push_back(i), high.push_back(half + i);
    llvm::SmallVector<Value*, 2> lower, upper;
    for (Value* vector : left) {
      if (half == 1) {
        lower.push_back(b.CreateExtractElement(vector, uint64_t{0}));
        upper.push_back(b.CreateExtractElement(vector, uint64_t{1}));
      } else {
        lower.push_back(b.CreateShuffleVector(vector, low));
        upper.push_back(b.CreateShuffleVector(vector, high));
      }
    }
    reducer_.combine(Lanes(b, half), lower, upper);
    left = lower;
  }
  return left;
}

}  // namespace neuron::codegen
