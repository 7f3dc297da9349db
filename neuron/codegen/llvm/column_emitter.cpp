// Regions that reduce the last dimension but one and keep the innermost: all columns of a panel are accumulated side by
// side while the rows above one another are read in order, so that memory is read as it lies. Full results are stored
// on the way.
#include <vector>

#include "neuron/codegen/llvm/kernel_emitter.h"

namespace neuron::codegen {

namespace {

using llvm::Value;

// Accumulators of a panel stay in the first-level cache.
constexpr int64_t kPanel = 1024;
// Rows up to this cost of an element are added a few at a time.
constexpr int kCheapRow = 8;
constexpr int kRowsTogether = 4;
// What is asked for ahead of the rows at work, of each operand: short rows are new places too soon for the processor's
// own prefetching to have started.
constexpr int64_t kBytesAhead = 4096;

class ColumnEmitter final : public KernelEmitter {
 public:
  ColumnEmitter(llvm::Function* function, const Plan& plan, int vector_bytes)
      : KernelEmitter(function, plan, vector_bytes) {
    for (int index : plan.stages()[0].reductions) {
      const Reducer& reducer = *reducers_[index];
      for (int v = 0; v < reducer.count(); ++v) {
        const int64_t bytes = (kPanel + 128) * reducer.size(v);
        auto* type = llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(bytes));
        slots_.push_back({&reducer, v, frame_.memory(type, "total"), frame_.memory(type, "own")});
      }
    }
  }

 private:
  // One accumulated value of one reduce operation.
  struct Slot {
    const Reducer* reducer;
    int value;
    llvm::AllocaInst* total;       // columns of the panel: combined chunks
    llvm::AllocaInst* own;         // the chunk at work, in Phase::Whole
    llvm::Value* chunk = nullptr;  // the chunk at work
    llvm::Value* init = nullptr;
  };

  llvm::Type* type(const Slot& slot) { return slot.reducer->type(b_.getContext(), slot.value); }

  void emit_row() override {
    reduced_size_ = operands_.size(plan_.spec().rank - 2);
    for (Slot& slot : slots_) {
      const auto& operation = slot.reducer->operation();
      slot.init = slot.reducer->enter(Lanes(b_, 1), slot.value,
                                      values_.uniform(operation.operands[slot.reducer->count() + slot.value]));
    }
    frame_.loop(column_begin_, column_end_, kPanel, [&](Value* begin) {
      Value* end = frame_.minimum(b_.CreateAdd(begin, frame_.index(kPanel)), column_end_);
      emit_panel(begin, end);
    });
  }

  void emit_panel(Value* begin, Value* end) {
    Value* count = b_.CreateSub(end, begin);
    fill(count, [](Slot& slot) -> Value* { return slot.total; }, [](Slot& slot) { return slot.init; });
    Value* row_bytes = b_.CreateMul(
        b_.CreateAdd(b_.CreateLShr(operands_.size(plan_.spec().rank - 1), 6), frame_.index(2)), frame_.index(64 * 8));
    rows_ahead_ =
        b_.CreateAdd(b_.CreateUDiv(frame_.index(kBytesAhead / plan_.widest()), count), frame_.index(kRowsTogether));
    frame_.loop(chunk_begin_, chunk_end_, 1, [&](Value* chunk) {
      Value* whole = phase_is(Phase::Whole);
      for (size_t i = 0; i < slots_.size(); ++i) {
        Value* row = b_.CreateAdd(b_.CreateMul(chunk, frame_.index(static_cast<int64_t>(slots_.size()))),
                                  frame_.index(static_cast<int64_t>(i)));
        Value* shared = frame_.at(partials_, b_.CreateMul(row, row_bytes));
        shared = frame_.at(shared, b_.CreateMul(begin, frame_.index(slots_[i].reducer->size(slots_[i].value))));
        slots_[i].chunk = b_.CreateSelect(whole, slots_[i].own, shared);
      }
      frame_.when(b_.CreateNot(phase_is(Phase::Finish)), [&] { accumulate_chunk(chunk, begin, end, count); });
      frame_.when(b_.CreateNot(phase_is(Phase::Accumulate)), [&] { combine(count); });
    });
    frame_.when(b_.CreateNot(phase_is(Phase::Accumulate)), [&] { finish(begin, end); });
  }

  int panel_parts() const { return std::max(1, 64 / width_ > 4 ? 4 : 64 / width_); }

  // Sets the panel's accumulators at `address` to a value.
  void fill(Value* count, FunctionRef<Value*(Slot&)> address, FunctionRef<Value*(Slot&)> value) {
    const int all = panel_parts();
    InnerLoop loop = make_loop(all);
    for (Slot& slot : slots_) loop.add_output({accumulator_dtype(slot), address(slot), nullptr, true});
    std::vector<Value*> splats;
    for (Slot& slot : slots_) splats.push_back(Lanes(b_, width_).splat(value(slot)));
    loop.emit(frame_.index(0), count, [&](Value*, int) {
      for (int part = 0; part < all; ++part) {
        for (size_t i = 0; i < slots_.size(); ++i) loop.store(static_cast<int>(i), part, splats[i]);
      }
    });
  }

  // A dtype whose register form is that of the accumulator: bytes for bool.
  static DType accumulator_dtype(const Slot& slot) { return slot.reducer->accumulator_dtype(slot.value); }

  void accumulate_chunk(Value* chunk, Value* begin, Value* end, Value* count) {
    fill(
        count, [](Slot& slot) { return slot.chunk; },
        [&](Slot& slot) { return slot.reducer->identity(b_.getContext(), slot.value, slot.init); });
    Value* first = b_.CreateMul(chunk, frame_.index(kOuterChunk));
    Value* last = frame_.minimum(b_.CreateAdd(first, frame_.index(kOuterChunk)), reduced_size_);
    if (const int together = rows_at_a_time(); together > 1) {
      Value* whole = b_.CreateAnd(b_.CreateSub(last, first), frame_.index(-together));
      Value* middle = b_.CreateAdd(first, whole);
      frame_.loop(first, middle, together, [&](Value* reduced) { accumulate_rows(reduced, together, begin, end); });
      first = middle;
    }
    frame_.loop(first, last, 1, [&](Value* reduced) { accumulate_rows(reduced, 1, begin, end); });
  }

  // Rows whose elements are added while their sums are in registers: where reading and writing sums is most of the
  // work.
  int rows_at_a_time() const {
    const Stage& stage = plan_.stages()[0];
    bool plain = stage.cost <= kCheapRow && !stage.stores_outputs && stage.random.empty();
    for (int i : stage.inputs) plain = plain && plan_.spec().inputs[i].inner == InnerStride::One;
    return plain ? kRowsTogether : 1;
  }

  // Adds the rows [reduced, reduced + count) to the chunk's accumulators, in order.
  void accumulate_rows(Value* reduced, int count, Value* begin, Value* end) {
    const Stage& stage = plan_.stages()[0];
    InnerLoop loop = make_loop(part_count(stage));
    struct Row {
      Value* position;
      Values::Uniforms uniforms;
      std::vector<int> inputs;
    };
    std::vector<Row> rows;
    for (int r = 0; r < count; ++r) {
      Row row{b_.CreateAdd(reduced, frame_.index(r)), values_.uniforms(), {}};
      values_.exchange(row.uniforms);
      load_row_inputs(row.position);
      emit_uniforms(Scope::Row, 0);
      row.inputs = add_inputs(loop, stage, row.position);
      values_.exchange(row.uniforms);
      rows.push_back(std::move(row));
    }
    const std::vector<Ahead> ahead = rows_ahead(reduced, count);
    static_assert(kPanel <= kRandomLine);
    fill_random_lines(stage, begin, end, reduced);
    const std::vector<int> random = add_random_lines(loop, stage);
    const int sources = add_accumulators(loop, begin, false), targets = add_accumulators(loop, begin, true);
    std::vector<int> outputs;
    for (int i = 0; i < output_count(); ++i)
      outputs.push_back(plan_.output_is_reduced(i) ? -1 : add_output(loop, i, reduced));
    loop.emit(begin, end, [&](Value* position, int parts) {
      values_.begin_body(parts);
      prefetch(ahead, position, parts);
      std::vector<Sums> sums;
      for (int part = 0; part < parts; ++part) {
        sums.push_back(loaded_sums(loop, sources, part));
        for (Row& row : rows) {
          values_.exchange(row.uniforms);
          load_inputs(loop, stage, row.inputs, position, part, row.position);
          load_random_lines(loop, stage, random, part);
          for (int index : stage.operations) values_.emit(index, part);
          accumulate(sums.back(), part);
          values_.exchange(row.uniforms);
        }
      }
      values_.exchange(rows[0].uniforms);
      for (size_t i = 0; i < slots_.size(); ++i) {
        for (int part = 0; part < parts; ++part) loop.store(targets + static_cast<int>(i), part, sums[part][i]);
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        for (int part = 0; part < parts && outputs[i] >= 0; ++part)
          loop.store(outputs[i], part, values_.get(graph_.results()[i], part));
      }
      values_.exchange(rows[0].uniforms);
    });
  }

  // The rows that are asked for while [reduced, reduced + count) are added: as many, kBytesAhead further on; those at
  // work, which costs little, when there are none.
  std::vector<Ahead> rows_ahead(Value* reduced, int count) {
    std::vector<Ahead> ahead;
    for (int input : plan_.stages()[0].inputs) {
      const OperandSignature& signature = operands_.signature(input);
      if (signature.kind != OperandKind::Tensor || signature.inner != InnerStride::One) continue;
      const auto size = static_cast<int64_t>(dtype_size(signature.dtype));
      for (int r = 0; r < count; ++r) {
        Value* position = b_.CreateAdd(reduced, frame_.index(r));
        Value* later = b_.CreateAdd(position, rows_ahead_);
        later = b_.CreateSelect(b_.CreateICmpSLT(later, reduced_size_), later, position);
        ahead.push_back({row_of(input, later), size});
      }
    }
    return ahead;
  }

  int add_output(InnerLoop& loop, int output, Value* reduced) {
    const int operand = input_count() + output;
    return loop.add_output(operands_.stream(operand, row_of(operand, reduced)));
  }

  // The chunk's accumulators as streams over the region's columns; returns the first.
  int add_accumulators(InnerLoop& loop, Value* begin, bool output) {
    int first = -1;
    for (Slot& slot : slots_) {
      Value* base =
          frame_.at(slot.chunk, b_.CreateNeg(b_.CreateMul(begin, frame_.index(slot.reducer->size(slot.value)))));
      const Stream stream{accumulator_dtype(slot), base, nullptr, true};
      const int added = output ? loop.add_output(stream) : loop.add_input(stream);
      if (first < 0) first = added;
    }
    return first;
  }

  using Sums = llvm::SmallVector<Value*, 8>;  // per slot

  Sums loaded_sums(InnerLoop& loop, int sources, int part) {
    Sums sums;
    for (size_t i = 0; i < slots_.size(); ++i) sums.push_back(loop.load(sources + static_cast<int>(i), part));
    return sums;
  }

  void accumulate(Sums& sums, int part) {
    for (size_t i = 0; i < slots_.size();) {
      const Reducer& reducer = *slots_[i].reducer;
      const auto count = static_cast<size_t>(reducer.count());
      reducer.combine(Lanes(b_, width_), llvm::MutableArrayRef(sums).slice(i, count), reduced_elements(reducer, part));
      i += count;
    }
  }

  // total = total op chunk
  void combine(Value* count) {
    InnerLoop loop = make_loop(1);
    const int n = static_cast<int>(slots_.size());
    for (Slot& slot : slots_) loop.add_input({accumulator_dtype(slot), slot.total, nullptr, true});
    for (Slot& slot : slots_) loop.add_input({accumulator_dtype(slot), slot.chunk, nullptr, true});
    for (Slot& slot : slots_) loop.add_output({accumulator_dtype(slot), slot.total, nullptr, true});
    loop.emit(frame_.index(0), count, [&](Value*, int) {
      for (int i = 0; i < n;) {
        const Reducer& reducer = *slots_[i].reducer;
        llvm::SmallVector<Value*, 2> sums, partials;
        for (int v = 0; v < reducer.count(); ++v)
          sums.push_back(loop.load(i + v, 0)), partials.push_back(loop.load(n + i + v, 0));
        reducer.combine(Lanes(b_, width_), sums, partials);
        for (int v = 0; v < reducer.count(); ++v) loop.store(2 * n + i + v, 0, sums[v]);
        i += reducer.count();
      }
    });
  }

  // Operations on reduced values, and their stores.
  void finish(Value* begin, Value* end) {
    InnerLoop loop = make_loop(1);
    for (Slot& slot : slots_) {
      Value* base =
          frame_.at(slot.total, b_.CreateNeg(b_.CreateMul(begin, frame_.index(slot.reducer->size(slot.value)))));
      loop.add_input({accumulator_dtype(slot), base, nullptr, true});
    }
    std::vector<int> outputs;
    for (int i = 0; i < output_count(); ++i)
      outputs.push_back(plan_.output_is_reduced(i) ? add_output(loop, i, nullptr) : -1);
    Lanes lanes(b_, width_);
    loop.emit(begin, end, [&](Value*, int) {
      values_.begin_body(1);
      for (size_t i = 0; i < slots_.size(); ++i) {
        const Slot& slot = slots_[i];
        values_.set(slot.reducer->operation().results[slot.value], 0,
                    slot.reducer->leave(lanes, slot.value, loop.load(static_cast<int>(i), 0)));
      }
      for (size_t i = 0; i < graph_.operations().size(); ++i) {
        const ir::Operation& operation = graph_.operations()[i];
        if (operation.opcode == ir::Opcode::Reduce || operation.opcode == ir::Opcode::BroadcastInDim) continue;
        if (plan_.scope(operation.results[0]) == Scope::Column) values_.emit(static_cast<int>(i), 0);
      }
      for (int i = 0; i < output_count(); ++i) {
        if (outputs[i] >= 0) loop.store(outputs[i], 0, values_.get(graph_.results()[i], 0));
      }
    });
  }

  std::vector<Slot> slots_;
  Value* reduced_size_ = nullptr;
  Value* rows_ahead_ = nullptr;  // from a row at work to one that is asked for
};

}  // namespace

std::unique_ptr<KernelEmitter> make_column_emitter(llvm::Function* function, const Plan& plan, int vector_bytes) {
  return std::make_unique<ColumnEmitter>(function, plan, vector_bytes);
}

}  // namespace neuron::codegen
