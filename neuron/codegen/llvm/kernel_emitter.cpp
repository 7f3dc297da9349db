#include "neuron/codegen/llvm/kernel_emitter.h"

#include <algorithm>

#include "neuron/codegen/llvm/conversions.h"
#include "neuron/codegen/llvm/element_operations.h"

namespace neuron::codegen {

namespace {

using ir::Opcode;
using llvm::Value;

// Up to this cost a body takes as many vectors as its loads and stores gain by.
constexpr int kUnrollLimit = 24;
// Up to this cost one takes all lanes of a reduction, whose accumulators then stay in registers.
constexpr int kRegisterLimit = 48;

int vector_width(const Plan& plan, int vector_bytes) {
  const int width = vector_bytes / plan.widest();
  return plan.spec().reduction == Reduction::Inner ? std::min(width, LaneAccumulators::kLanes) : width;
}

}  // namespace

KernelEmitter::KernelEmitter(llvm::Function* function, const Plan& plan, int vector_bytes)
    : plan_(plan),
      graph_(plan.graph()),
      frame_(function),
      b_(frame_.builder()),
      vector_bytes_(vector_bytes),
      width_(vector_width(plan, vector_bytes)),
      values_(plan, b_, width_),
      operands_(frame_, plan, function->getArg(0), outer_dimensions()) {
  for (const ir::Operation& operation : graph_.operations()) {
    reducers_.push_back(operation.opcode == Opcode::Reduce ? std::make_unique<Reducer>(graph_, operation) : nullptr);
  }
}

Value* KernelEmitter::field(size_t offset, llvm::Type* type) {
  return b_.CreateLoad(type, frame_.at(frame_.function()->getArg(1), static_cast<int64_t>(offset)));
}

void KernelEmitter::emit() {
  Value* row_begin = field(offsetof(KernelRange, row_begin), b_.getInt64Ty());
  Value* row_end = field(offsetof(KernelRange, row_end), b_.getInt64Ty());
  column_begin_ = field(offsetof(KernelRange, column_begin), b_.getInt64Ty());
  column_end_ = field(offsetof(KernelRange, column_end), b_.getInt64Ty());
  if (plan_.spec().reduction != Reduction::None) {
    chunk_begin_ = field(offsetof(KernelRange, chunk_begin), b_.getInt64Ty());
    chunk_end_ = field(offsetof(KernelRange, chunk_end), b_.getInt64Ty());
    phase_ = field(offsetof(KernelRange, phase), b_.getInt64Ty());
    partials_ = field(offsetof(KernelRange, partials), frame_.pointer());
    scratch_ = field(offsetof(KernelRange, scratch), frame_.pointer());
  }
  set_scalars();
  set_index_lanes();
  set_random_lines();
  emit_uniforms(Scope::Kernel, 0);
  if (outer_dimensions() == 0) {
    emit_row();
  } else {
    operands_.seek(row_begin);
    emit_rows(row_begin, row_end);
  }
  frame_.finish();
}

void KernelEmitter::emit_rows(Value* begin, Value* end) {
  frame_.loop(begin, end, 1, [&](Value*) {
    emit_row();
    operands_.advance();
  });
}

Value* KernelEmitter::phase_is(Phase phase) {
  return b_.CreateICmpEQ(phase_, frame_.index(static_cast<int64_t>(phase)));
}

int KernelEmitter::part_count(const Stage& stage) const {
  // Lane by lane, a vector is a long body already.
  bool strided = false;
  for (int i : stage.inputs) strided = strided || plan_.spec().inputs[i].inner == InnerStride::Other;
  for (int i = 0; i < output_count() && stage.stores_outputs; ++i) {
    strided = strided || (!plan_.output_is_reduced(i) && plan_.spec().outputs[i].inner == InnerStride::Other);
  }
  if (!strided && stage.cost > kLongChain && stage.reductions.empty()) return 2;
  const bool reduces = plan_.spec().reduction == Reduction::Inner && !stage.reductions.empty();
  if (reduces && !strided && stage.cost <= kRegisterLimit) return LaneAccumulators::kLanes / width_;
  if (strided) return 1;
  // Two by turns: the processor looks less far ahead than such a body is long.
  if (stage.cost > kUnrollLimit) return 2;
  return std::clamp(64 / width_, 1, 4);
}

void KernelEmitter::set_scalars() {
  for (int i = 0; i < input_count(); ++i) {
    const OperandSignature& input = plan_.spec().inputs[i];
    if (input.kind != OperandKind::Scalar) continue;
    Value* bits = operands_.scalar(i);
    values_.set_uniform(graph_.parameters()[i],
                        input.dtype == DType::Float64 ? b_.CreateBitCast(bits, b_.getDoubleTy()) : bits);
  }
}

// What the lanes of an Index operand add to the value at a position.
void KernelEmitter::set_index_lanes() {
  index_lanes_.resize(static_cast<size_t>(input_count()));
  for (int i = 0; i < input_count(); ++i) {
    const OperandSignature& input = plan_.spec().inputs[i];
    if (input.kind != OperandKind::Index || input.inner == InnerStride::Zero) continue;
    Value* step = operands_.step(i, plan_.spec().rank - 1);
    index_lanes_[i].step = step;
    if (!plan_.reads(i)) continue;
    llvm::Type* type = Lanes::register_type(b_.getContext(), input.dtype);
    Value* lanes = llvm::PoisonValue::get(Lanes(b_, width_).of(type));
    Value* distance = frame_.index(0);
    for (int lane = 0; lane < width_; ++lane, distance = b_.CreateAdd(distance, step)) {
      Value* narrow = b_.CreateTrunc(distance, type);
      lanes = width_ == 1 ? narrow : b_.CreateInsertElement(lanes, narrow, lane);
    }
    index_lanes_[i].lanes = lanes;
  }
}

void KernelEmitter::emit_uniforms(Scope scope, int stage) {
  for (size_t i = 0; i < graph_.operations().size(); ++i) {
    const ir::Operation& operation = graph_.operations()[i];
    if (operation.opcode == Opcode::Reduce) continue;
    const ir::Value result = operation.results[0];
    if (plan_.scope(result) == scope && plan_.stage(result) == stage) values_.emit_uniform(static_cast<int>(i));
  }
}

Value* KernelEmitter::row_of(int operand, Value* reduced) {
  Value* row = operands_.row(operand);
  if (reduced == nullptr) return row;
  Value* distance = b_.CreateMul(reduced, operands_.step(operand, plan_.spec().rank - 2));
  return row->getType()->isPointerTy() ? frame_.at(row, distance) : b_.CreateAdd(row, distance);
}

void KernelEmitter::load_row_inputs(Value* reduced) {
  for (int i = 0; i < input_count(); ++i) {
    const OperandSignature& input = plan_.spec().inputs[i];
    if (plan_.scope(graph_.parameters()[i]) != Scope::Row) continue;
    Value* value = row_of(i, reduced);
    if (input.kind == OperandKind::Tensor) {
      value = b_.CreateLoad(Lanes::memory_type(b_.getContext(), input.dtype), value);
      value = emit_from_memory(Lanes(b_, 1), value, input.dtype);
    } else {
      value = b_.CreateTrunc(value, Lanes::register_type(b_.getContext(), input.dtype));
    }
    values_.set_uniform(graph_.parameters()[i], value);
  }
}

std::vector<int> KernelEmitter::add_inputs(InnerLoop& loop, const Stage& stage, Value* reduced) {
  std::vector<int> streams;
  for (int i : stage.inputs) {
    const bool tensor = plan_.spec().inputs[i].kind == OperandKind::Tensor;
    streams.push_back(tensor ? loop.add_input(operands_.stream(i, row_of(i, reduced))) : -1);
  }
  return streams;
}

void KernelEmitter::load_inputs(InnerLoop& loop, const Stage& stage, const std::vector<int>& streams, Value* position,
                                int part, Value* reduced) {
  for (size_t i = 0; i < streams.size(); ++i) {
    const int input = stage.inputs[i];
    Value* value;
    if (streams[i] >= 0) {
      value = loop.load(streams[i], part);
    } else {
      const IndexLanes& index = index_lanes_[input];
      Value* first = b_.CreateAdd(position, frame_.index(part * width_));
      Value* base = b_.CreateAdd(row_of(input, reduced), b_.CreateMul(first, index.step));
      base = b_.CreateTrunc(base, index.lanes->getType()->getScalarType());
      value = b_.CreateAdd(Lanes(b_, width_).splat(base), index.lanes);
    }
    values_.set(graph_.parameters()[input], part, value);
  }
}

void KernelEmitter::set_random_lines() {
  random_lines_.resize(graph_.operations().size());
  for (const Stage& stage : plan_.stages()) {
    for (int index : stage.random) {
      RandomLine& line = random_lines_[index];
      line.dtype = graph_.type(graph_.operations()[index].results[0]).dtype;
      // Whole groups at both ends, and a block of a loop that goes past the end.
      constexpr uint64_t kRoom = 2 * kRandomGroup + 256;
      auto* type = llvm::ArrayType::get(Lanes::memory_type(b_.getContext(), line.dtype), kRandomLine + kRoom);
      line.numbers = frame_.memory(type, "random");
      for (llvm::AllocaInst** limit : {&line.begin, &line.end}) {
        *limit = frame_.variable(b_.getInt64Ty(), "limit");
        frame_.store(frame_.index(0), *limit);
      }
    }
  }
}

void KernelEmitter::call_random_line(int operation, Value* first, Value* step, Value* count) {
  const RandomLine& line = random_lines_[operation];
  const std::string_view name = random_routine(line.dtype, true);
  const auto& operands = graph_.operations()[operation].operands;
  Value* arguments[] = {values_.uniform(operands[1]), values_.uniform(operands[2]), first, step, count, line.numbers};
  llvm::SmallVector<llvm::Type*, 6> types;
  for (Value* argument : arguments) types.push_back(argument->getType());
  auto* signature = llvm::FunctionType::get(b_.getVoidTy(), types, false);
  b_.CreateCall(b_.GetInsertBlock()->getModule()->getOrInsertFunction(name, signature), arguments)->setDoesNotThrow();
}

void KernelEmitter::fill_random_lines(const Stage& stage, Value* begin, Value* end, Value* reduced) {
  for (int index : stage.random) {
    RandomLine& line = random_lines_[index];
    const int input = graph_.result_index(graph_.operations()[index].operands[0]);
    Value *step = index_lanes_[input].step, *count = b_.CreateSub(end, begin), *skipped = begin;
    Value* first = b_.CreateAdd(row_of(input, reduced), b_.CreateMul(begin, step));
    if (plan_.spec().inputs[input].inner == InnerStride::One) {
      // Groups are made whole: what is left of one serves the next of many short rows.
      Value* last = b_.CreateAdd(first, count);
      Value* made =
          b_.CreateAnd(b_.CreateICmpSGE(first, frame_.load(line.begin)), b_.CreateICmpSLE(last, frame_.load(line.end)));
      frame_.when(b_.CreateNot(made), [&] {
        auto whole = [&](Value* element) { return b_.CreateAnd(element, frame_.index(-kRandomGroup)); };
        Value *from = whole(first), *to = whole(b_.CreateAdd(last, frame_.index(kRandomGroup - 1)));
        call_random_line(index, from, frame_.index(1), b_.CreateSub(to, from));
        frame_.store(from, line.begin);
        frame_.store(to, line.end);
      });
      skipped = b_.CreateSub(begin, b_.CreateSub(first, frame_.load(line.begin)));
    } else {
      call_random_line(index, first, step, count);
    }
    const auto size = static_cast<int64_t>(dtype_size(line.dtype));
    line.column0 = frame_.at(line.numbers, b_.CreateMul(skipped, frame_.index(-size)));
  }
}

std::vector<int> KernelEmitter::add_random_lines(InnerLoop& loop, const Stage& stage) {
  std::vector<int> streams;
  for (int index : stage.random)
    streams.push_back(loop.add_input({random_lines_[index].dtype, random_lines_[index].column0, nullptr, true}));
  return streams;
}

void KernelEmitter::load_random_lines(InnerLoop& loop, const Stage& stage, const std::vector<int>& streams, int part) {
  for (size_t i = 0; i < streams.size(); ++i)
    values_.set(graph_.operations()[stage.random[i]].results[0], part, loop.load(streams[i], part));
}

void KernelEmitter::prefetch(llvm::ArrayRef<Ahead> ahead, Value* position, int parts) {
  constexpr int kSecondLevel = 2, kData = 1;
  for (const Ahead& row : ahead) {
    Value* block = frame_.at(row.base, b_.CreateMul(position, frame_.index(row.size)));
    for (int64_t byte = 0; byte < row.size * width_ * parts; byte += 64) {
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {block->getType()},
                         {frame_.at(block, byte), b_.getInt32(0), b_.getInt32(kSecondLevel), b_.getInt32(kData)});
    }
  }
}

llvm::SmallVector<Value*, 2> KernelEmitter::reduced_elements(const Reducer& reducer, int part) {
  Lanes lanes(b_, width_);
  llvm::SmallVector<Value*, 2> elements;
  for (int v = 0; v < reducer.count(); ++v) {
    elements.push_back(reducer.enter(lanes, v, values_.get(reducer.operation().operands[v], part)));
  }
  return elements;
}

bool has_phases(const Plan& plan) {
  if (plan.spec().reduction == Reduction::Outer) return true;
  return plan.spec().reduction == Reduction::Inner && plan.stages().size() == 1 && !plan.stages()[0].stores_outputs;
}

int rows_together(const Plan& plan) {
  // Of larger regions, what lies between the passes is a small part, and compiling them twice takes long.
  constexpr size_t kMostOperations = 64;
  size_t operations = 0;
  for (const Stage& stage : plan.stages()) operations += stage.operations.size();
  // With one reduction before the last pass there is too little to wait for.
  const bool staged = plan.spec().reduction == Reduction::Inner && plan.spec().rank > 1 && plan.stages().size() > 2;
  return staged && operations <= kMostOperations ? 2 : 1;
}

void emit_kernel(llvm::Module& module, const Plan& plan, int vector_bytes) {
  auto& context = module.getContext();
  auto* pointer = llvm::PointerType::getUnqual(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kKernelName, module);
  function->setDoesNotThrow();
  const std::string bits = std::to_string(vector_bytes * 8);
  function->addFnAttr("prefer-vector-width", bits);
  function->addFnAttr("min-legal-vector-width", bits);
  const bool columns = plan.spec().reduction == Reduction::Outer;
  (columns ? make_column_emitter(function, plan, vector_bytes) : make_row_emitter(function, plan, vector_bytes))
      ->emit();
}

}  // namespace neuron::codegen
