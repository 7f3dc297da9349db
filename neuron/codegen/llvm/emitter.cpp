#include "neuron/codegen/llvm/emitter.h"

#include <algorithm>
#include <memory>

#include "neuron/codegen/llvm/element_operations.h"
#include "neuron/codegen/llvm/operands.h"
#include "neuron/codegen/llvm/reduction.h"
#include "neuron/codegen/llvm/values.h"

namespace neuron::codegen {

namespace {

using ir::Opcode;
using llvm::Value;

// docs/numerics.md, inner rule.
constexpr int64_t kInnerChunk = 4096;

int vector_width(const Plan& plan, int vector_bytes) {
  const int width = vector_bytes / plan.widest();
  return plan.spec().reduction == Reduction::None ? width : std::min(width, LaneAccumulators::kLanes);
}

// Enough independent vectors to hide latencies in short bodies; long bodies overlap by themselves and would only cost
// compile time and registers.
int part_count(const Stage& stage, int width, bool reduces) {
  if (stage.cost > 24) return 1;
  if (reduces) return LaneAccumulators::kLanes / width;
  return std::clamp(64 / width, 1, 4);
}

class KernelEmitter {
 public:
  KernelEmitter(llvm::Function* function, const Plan& plan, int vector_bytes)
      : plan_(plan),
        graph_(plan.graph()),
        frame_(function),
        b_(frame_.builder()),
        width_(vector_width(plan, vector_bytes)),
        values_(plan, b_, width_),
        operands_(frame_, plan, function->getArg(0), outer_dimensions()),
        scratch_(function->getArg(1)) {
    for (const ir::Operation& operation : graph_.operations()) {
      reducers_.push_back(operation.opcode == Opcode::Reduce ? std::make_unique<Reducer>(graph_, operation) : nullptr);
    }
  }

  void emit() {
    llvm::Function* function = frame_.function();
    Value *row_begin = function->getArg(2), *row_end = function->getArg(3);
    column_begin_ = function->getArg(4);
    column_end_ = function->getArg(5);
    set_scalars();
    set_index_lanes();
    emit_uniforms(Scope::Kernel, 0);
    if (outer_dimensions() == 0) {
      emit_row();
    } else {
      operands_.seek(row_begin);
      frame_.loop(row_begin, row_end, 1, [&](Value*) {
        emit_row();
        operands_.advance();
      });
    }
    frame_.finish();
  }

 private:
  int outer_dimensions() const { return plan_.spec().rank - (plan_.spec().reduction == Reduction::Outer ? 2 : 1); }
  int input_count() const { return static_cast<int>(plan_.spec().inputs.size()); }

  void set_scalars() {
    for (int i = 0; i < input_count(); ++i) {
      const OperandSignature& input = plan_.spec().inputs[i];
      if (input.kind != OperandKind::Scalar) continue;
      Value* bits = operands_.scalar(i);
      values_.set_uniform(graph_.parameters()[i],
                          input.dtype == DType::Float64 ? b_.CreateBitCast(bits, b_.getDoubleTy()) : bits);
    }
  }

  // What the lanes of an Index operand add to the value at a position.
  void set_index_lanes() {
    index_lanes_.resize(static_cast<size_t>(input_count()));
    for (int i = 0; i < input_count(); ++i) {
      const OperandSignature& input = plan_.spec().inputs[i];
      if (input.kind != OperandKind::Index || input.inner == InnerStride::Zero) continue;
      Value* step = operands_.step(i, plan_.spec().rank - 1);
      llvm::SmallVector<Value*, 2> zero;
      Value* lanes = llvm::PoisonValue::get(Lanes(b_, width_).i64());
      Value* distance = frame_.index(0);
      for (int lane = 0; lane < width_; ++lane, distance = b_.CreateAdd(distance, step)) {
        lanes = width_ == 1 ? distance : b_.CreateInsertElement(lanes, distance, lane);
      }
      index_lanes_[i] = {lanes, step};
    }
  }

  void emit_uniforms(Scope scope, int stage) {
    for (size_t i = 0; i < graph_.operations().size(); ++i) {
      const ir::Operation& operation = graph_.operations()[i];
      if (operation.opcode == Opcode::Reduce) continue;
      const ir::Value result = operation.results[0];
      if (plan_.scope(result) == scope && plan_.stage(result) == stage) values_.emit_uniform(static_cast<int>(i));
    }
  }

  void load_row_inputs() {
    for (int i = 0; i < input_count(); ++i) {
      const OperandSignature& input = plan_.spec().inputs[i];
      if (plan_.scope(graph_.parameters()[i]) != Scope::Row) continue;
      Value* value = operands_.row(i);
      if (input.kind == OperandKind::Tensor) {
        value = b_.CreateLoad(Lanes::memory_type(b_.getContext(), input.dtype), value);
        if (input.dtype == DType::Bool) value = b_.CreateICmpNE(value, b_.getInt8(0));
      }
      values_.set_uniform(graph_.parameters()[i], value);
    }
  }

  void emit_row() {
    load_row_inputs();
    emit_uniforms(Scope::Row, 0);
    const auto& stages = plan_.stages();
    for (size_t s = 0; s < stages.size(); ++s) {
      if (stages[s].reductions.empty()) {
        emit_pass(stages[s], column_begin_, column_end_, {});
      } else {
        emit_reducing_stage(stages[s]);
      }
      emit_uniforms(Scope::Row, static_cast<int>(s) + 1);
    }
    store_reduced_outputs();
  }

  void store_reduced_outputs() {
    for (int i = 0; i < static_cast<int>(plan_.spec().outputs.size()); ++i) {
      if (!plan_.output_is_reduced(i)) continue;
      Value* value = values_.uniform(graph_.results()[i]);
      if (plan_.spec().outputs[i].dtype == DType::Bool) value = b_.CreateZExt(value, b_.getInt8Ty());
      b_.CreateStore(value, operands_.row(input_count() + i));
    }
  }

  void emit_reducing_stage(const Stage& stage) {
    const int parts = part_count(stage, width_, true);
    std::vector<LaneAccumulators> accumulators;
    std::vector<std::vector<Value*>> inits;
    std::vector<std::vector<llvm::AllocaInst*>> results;
    Lanes scalar(b_, 1);
    for (int index : stage.reductions) {
      const Reducer& reducer = *reducers_[index];
      accumulators.emplace_back(frame_, reducer, width_, parts);
      inits.emplace_back();
      results.emplace_back();
      for (int v = 0; v < reducer.count(); ++v) {
        Value* init = values_.uniform(reducer.operation().operands[reducer.count() + v]);
        inits.back().push_back(reducer.enter(scalar, v, init));
        results.back().push_back(frame_.variable(reducer.type(b_.getContext(), v), "result"));
        frame_.store(inits.back().back(), results.back().back());
      }
    }
    frame_.loop(column_begin_, column_end_, kInnerChunk, [&](Value* begin) {
      for (size_t i = 0; i < accumulators.size(); ++i) accumulators[i].reset(inits[i]);
      Value* end = frame_.minimum(b_.CreateAdd(begin, frame_.index(kInnerChunk)), column_end_);
      emit_pass(stage, begin, end, accumulators);
      for (size_t i = 0; i < accumulators.size(); ++i) {
        llvm::SmallVector<Value*, 2> sum;
        for (auto* result : results[i]) sum.push_back(frame_.load(result));
        accumulators[i].reducer().combine(scalar, sum, accumulators[i].fold());
        for (size_t v = 0; v < sum.size(); ++v) frame_.store(sum[v], results[i][v]);
      }
    });
    for (size_t i = 0; i < accumulators.size(); ++i) {
      const Reducer& reducer = accumulators[i].reducer();
      for (int v = 0; v < reducer.count(); ++v) {
        values_.set_uniform(reducer.operation().results[v], reducer.leave(scalar, v, frame_.load(results[i][v])));
      }
    }
  }

  Stream scratch_stream(ir::Value value) {
    Value* row_bytes = b_.CreateMul(b_.CreateAdd(b_.CreateLShr(column_end_, 6), frame_.index(2)), frame_.index(64 * 8));
    Value* base = frame_.at(scratch_, b_.CreateMul(row_bytes, frame_.index(plan_.scratch_index(value))));
    return {graph_.type(value).dtype, base, nullptr, true};
  }

  // One pass of a stage over [begin, end) of the current row.
  void emit_pass(const Stage& stage, Value* begin, Value* end, llvm::MutableArrayRef<LaneAccumulators> accumulators) {
    const int parts = part_count(stage, width_, !accumulators.empty());
    InnerLoop loop(frame_, width_, parts);
    std::vector<int> inputs, loads, stores, outputs;
    for (int i : stage.inputs)
      inputs.push_back(plan_.spec().inputs[i].kind == OperandKind::Tensor ? loop.add_input(operands_.stream(i)) : -1);
    for (ir::Value value : stage.scratch_loads) loads.push_back(loop.add_input(scratch_stream(value)));
    for (ir::Value value : stage.scratch_stores) stores.push_back(loop.add_output(scratch_stream(value)));
    for (int i = 0; i < static_cast<int>(plan_.spec().outputs.size()); ++i) {
      const bool stored = stage.stores_outputs && !plan_.output_is_reduced(i);
      outputs.push_back(stored ? loop.add_output(operands_.stream(input_count() + i)) : -1);
    }
    for (LaneAccumulators& accumulator : accumulators) {
      for (int v = 0; v < accumulator.reducer().count(); ++v) {
        loop.add_carried(accumulator.reducer().type(b_.getContext(), v), [&accumulator, v](Value* position, int part) {
          return accumulator.address(position, v, part);
        });
      }
    }
    loop.emit(begin, end, [&](Value* position) {
      values_.begin_body(parts);
      for (int part = 0; part < parts; ++part) {
        for (size_t i = 0; i < inputs.size(); ++i) {
          const int input = stage.inputs[i];
          values_.set(graph_.parameters()[input], part,
                      inputs[i] >= 0 ? loop.load(inputs[i], part) : index_value(input, position, part));
        }
        for (size_t i = 0; i < loads.size(); ++i) values_.set(stage.scratch_loads[i], part, loop.load(loads[i], part));
        for (int index : stage.operations) values_.emit(index, part);
        for (LaneAccumulators& accumulator : accumulators) accumulate(accumulator, position, part);
      }
      for (int part = 0; part < parts; ++part) {
        for (size_t i = 0; i < stores.size(); ++i)
          loop.store(stores[i], part, values_.get(stage.scratch_stores[i], part));
        for (size_t i = 0; i < outputs.size(); ++i) {
          if (outputs[i] >= 0) loop.store(outputs[i], part, values_.get(graph_.results()[i], part));
        }
      }
    });
  }

  void accumulate(LaneAccumulators& accumulator, Value* position, int part) {
    const Reducer& reducer = accumulator.reducer();
    Lanes lanes(b_, width_);
    llvm::SmallVector<Value*, 2> elements;
    for (int v = 0; v < reducer.count(); ++v) {
      elements.push_back(reducer.enter(lanes, v, values_.get(reducer.operation().operands[v], part)));
    }
    accumulator.add(position, part, elements);
  }

  Value* index_value(int input, Value* position, int part) {
    const IndexLanes& index = index_lanes_[input];
    Value* first = b_.CreateAdd(position, frame_.index(part * width_));
    Value* base = b_.CreateAdd(operands_.row(input), b_.CreateMul(first, index.step));
    return b_.CreateAdd(Lanes(b_, width_).splat(base), index.lanes);
  }

  struct IndexLanes {
    Value* lanes = nullptr;
    Value* step = nullptr;
  };

  const Plan& plan_;
  const ir::Graph& graph_;
  Frame frame_;
  llvm::IRBuilder<>& b_;
  int width_;
  Values values_;
  Operands operands_;
  Value* scratch_;
  Value *column_begin_ = nullptr, *column_end_ = nullptr;
  std::vector<IndexLanes> index_lanes_;
  std::vector<std::unique_ptr<Reducer>> reducers_;  // per operation
};

}  // namespace

void emit_kernel(llvm::Module& module, const Plan& plan, int vector_bytes) {
  auto& context = module.getContext();
  auto* pointer = llvm::PointerType::getUnqual(context);
  auto* word = llvm::Type::getInt64Ty(context);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, word, word, word, word}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kKernelName, module);
  function->setDoesNotThrow();
  const std::string bits = std::to_string(vector_bytes * 8);
  function->addFnAttr("prefer-vector-width", bits);
  function->addFnAttr("min-legal-vector-width", bits);
  KernelEmitter(function, plan, vector_bytes).emit();
}

}  // namespace neuron::codegen
