// Regions without a reduction and regions that reduce the innermost dimension: a row is walked in the stages of the
// plan.
#include <algorithm>
#include <span>

#include "neuron/codegen/llvm/conversions.h"
#include "neuron/codegen/llvm/kernel_emitter.h"

namespace neuron::codegen {

namespace {

using llvm::Value;

// Bodies up to this cost are emitted once more without masks: more compile time, less time in every block.
constexpr int kShortBody = 64;
// Rows up to this length go in pairs.
constexpr int64_t kShortRow = 1024;
// While rows up to this length are computed, those after them are asked for: between two passes that read memory lie
// passes that do not, and the processor's own prefetching stops there.
constexpr int64_t kLongestAhead = 32768;

class RowEmitter final : public KernelEmitter {
 public:
  using KernelEmitter::KernelEmitter;

 private:
  // A row at work. Between two passes over a row stand a few instructions that wait for one another (the last additions
  // of a sum, a logarithm): the passes of two short rows take turns, and fill these gaps for one another.
  struct Row {
    Value* exists = nullptr;  // null: always
    std::vector<Value*> operands;
    Values::Uniforms uniforms;
    Value *column_end, *chunk_end, *scratch;
  };

  void emit_row() override {
    if (!plan_.scratch().empty()) row_bytes_ = scratch_row_bytes();
    Row row{nullptr, {}, values_.uniforms(), column_end_, chunk_end_, scratch_};
    emit_by_turns({&row, 1});
  }

  void emit_rows(Value* begin, Value* end) override {
    if (rows_together(plan_) == 1) {
      return frame_.loop(begin, end, 1, [&](Value* i) {
        ask_ahead(frame_.index(1), i, end);
        emit_row();
        operands_.advance();
      });
    }
    Value *is_short = b_.CreateICmpSLE(column_end_, frame_.index(kShortRow)), *other_scratch = scratch_;
    if (const auto scratch_rows = static_cast<int64_t>(plan_.scratch().size()); scratch_rows > 0) {
      row_bytes_ = scratch_row_bytes();
      other_scratch = frame_.at(scratch_, b_.CreateMul(row_bytes_, frame_.index(scratch_rows)));
    }
    frame_.loop(begin, end, [&](Value* i) -> Value* {
      Value* pair = b_.CreateAnd(is_short, b_.CreateICmpSLT(b_.CreateAdd(i, frame_.index(1)), end));
      ask_ahead(b_.CreateSelect(is_short, frame_.index(2), frame_.index(1)), i, end);
      Row rows[2] = {
          {nullptr, operands_.current_rows(), values_.uniforms(), column_end_, chunk_end_, scratch_},
          {pair,
           {},
           values_.uniforms(),
           b_.CreateSelect(pair, column_end_, column_begin_),
           b_.CreateSelect(pair, chunk_end_, chunk_begin_),
           other_scratch},
      };
      operands_.advance();
      rows[1].operands = operands_.current_rows();
      frame_.when(pair, [&] { operands_.advance(); });
      // A row that does not exist reads what the first one reads once a row, and nothing else.
      for (size_t k = 0; k < rows[1].operands.size(); ++k) {
        Value*& row = rows[1].operands[k];
        if (row != nullptr) row = b_.CreateSelect(pair, row, rows[0].operands[k]);
      }
      emit_by_turns(rows);
      operands_.hold({});
      return b_.CreateSelect(pair, frame_.index(2), frame_.index(1));
    });
  }

  // Makes a row the current one, or puts it away again.
  void exchange(Row& row) {
    values_.exchange(row.uniforms);
    operands_.hold(row.operands);
    std::swap(column_end_, row.column_end);
    std::swap(chunk_end_, row.chunk_end);
    std::swap(scratch_, row.scratch);
  }

  void emit_by_turns(std::span<Row> rows) {
    auto by_turns = [&](FunctionRef<void(Row&)> body) {
      for (Row& row : rows) {
        exchange(row);
        body(row);
        exchange(row);
      }
    };
    by_turns([&](Row&) {
      load_row_inputs();
      emit_uniforms(Scope::Row, 0);
    });
    const auto& stages = plan_.stages();
    for (size_t s = 0; s < stages.size(); ++s) {
      by_turns([&](Row&) {
        if (stages[s].reductions.empty()) {
          emit_pass(stages[s], column_begin_, column_end_, {});
        } else {
          emit_reductions(stages[s]);
        }
      });
      by_turns([&](Row&) { emit_uniforms(Scope::Row, static_cast<int>(s) + 1); });
    }
    by_turns([&](Row& row) {
      Value* stored = has_phases(plan_) ? b_.CreateNot(phase_is(Phase::Accumulate)) : row.exists;
      if (stored == nullptr) return store_reduced_outputs();
      frame_.when(stored, [&] { store_reduced_outputs(); });
    });
  }

  void store_reduced_outputs() {
    for (int i = 0; i < output_count(); ++i) {
      if (!plan_.output_is_reduced(i)) continue;
      Value* value = values_.uniform(graph_.results()[i]);
      value = emit_to_memory(Lanes(b_, 1), value, plan_.spec().outputs[i].dtype);
      b_.CreateStore(value, operands_.row(input_count() + i));
    }
  }

  // The running result of one reduce operation over the chunks of a row.
  struct Running {
    std::vector<Value*> inits;
    std::vector<llvm::AllocaInst*> results;
    int first_slot;  // among the partial results of a chunk
  };

  void emit_reductions(const Stage& stage) {
    Lanes scalar(b_, 1);
    std::vector<LaneAccumulators> accumulators;
    std::vector<Running> running;
    int slots = 0;
    for (int index : stage.reductions) {
      const Reducer& reducer = *reducers_[index];
      accumulators.emplace_back(frame_, reducer, width_, part_count(stage));
      running.push_back({{}, {}, slots});
      slots += reducer.count();
      for (int v = 0; v < reducer.count(); ++v) {
        Value* init = values_.uniform(reducer.operation().operands[reducer.count() + v]);
        running.back().inits.push_back(reducer.enter(scalar, v, init));
        running.back().results.push_back(frame_.variable(reducer.type(b_.getContext(), v), "result"));
        frame_.store(running.back().inits.back(), running.back().results.back());
      }
    }
    Value* chunk_end = chunk_end_;
    frame_.loop(chunk_begin_, chunk_end, 1, [&](Value* chunk) {
      if (!has_phases(plan_)) {
        accumulate_chunk(stage, chunk, accumulators, running);
        for (size_t i = 0; i < accumulators.size(); ++i)
          combine(accumulators[i].reducer(), running[i], accumulators[i].fold());
        return;
      }
      // In phases, a partial result passes through memory between its accumulation and its combination.
      Value* own = frame_.memory(llvm::ArrayType::get(b_.getInt64Ty(), static_cast<uint64_t>(slots)), "partial");
      Value* shared = frame_.at(partials_, b_.CreateMul(chunk, frame_.index(8 * slots)));
      Value* partial = b_.CreateSelect(phase_is(Phase::Whole), own, shared);
      frame_.when(b_.CreateNot(phase_is(Phase::Finish)), [&] {
        accumulate_chunk(stage, chunk, accumulators, running);
        for (size_t i = 0; i < accumulators.size(); ++i) {
          auto folded = accumulators[i].fold();
          for (size_t v = 0; v < folded.size(); ++v)
            b_.CreateStore(folded[v], frame_.at(partial, 8 * (running[i].first_slot + static_cast<int>(v))));
        }
      });
      for (size_t i = 0; i < accumulators.size(); ++i) {
        const Reducer& reducer = accumulators[i].reducer();
        llvm::SmallVector<Value*, 2> loaded;
        for (int v = 0; v < reducer.count(); ++v) {
          loaded.push_back(
              b_.CreateLoad(reducer.type(b_.getContext(), v), frame_.at(partial, 8 * (running[i].first_slot + v))));
        }
        combine(reducer, running[i], loaded);
      }
    });
    for (size_t i = 0; i < accumulators.size(); ++i) {
      const Reducer& reducer = accumulators[i].reducer();
      for (int v = 0; v < reducer.count(); ++v) {
        values_.set_uniform(reducer.operation().results[v],
                            reducer.leave(scalar, v, frame_.load(running[i].results[v])));
      }
    }
  }

  void accumulate_chunk(const Stage& stage, Value* chunk, llvm::MutableArrayRef<LaneAccumulators> accumulators,
                        const std::vector<Running>& running) {
    for (size_t i = 0; i < accumulators.size(); ++i) accumulators[i].reset(running[i].inits);
    Value* begin = b_.CreateMul(chunk, frame_.index(kInnerChunk));
    Value* end = frame_.minimum(b_.CreateAdd(begin, frame_.index(kInnerChunk)), column_end_);
    emit_pass(stage, begin, end, accumulators);
  }

  void combine(const Reducer& reducer, const Running& running, llvm::ArrayRef<Value*> partial) {
    llvm::SmallVector<Value*, 2> sum;
    for (auto* result : running.results) sum.push_back(frame_.load(result));
    reducer.combine(Lanes(b_, 1), sum, partial);
    for (size_t v = 0; v < sum.size(); ++v) frame_.store(sum[v], running.results[v]);
  }

  Value* scratch_row_bytes() {
    return b_.CreateMul(b_.CreateAdd(b_.CreateLShr(column_end_, 6), frame_.index(2)), frame_.index(64 * 8));
  }

  Stream scratch_stream(ir::Value value) {
    Value* base = frame_.at(scratch_, b_.CreateMul(row_bytes_, frame_.index(plan_.scratch_index(value))));
    return {graph_.type(value).dtype, base, nullptr, true};
  }

  // The next rows are those `step` behind row `i` when there are such rows, short enough to wait in the second-level
  // cache; the current ones, which costs little, when not.
  void ask_ahead(Value* step, Value* i, Value* end) {
    Value* some = b_.CreateAnd(b_.CreateICmpSLE(column_end_, frame_.index(kLongestAhead)),
                               b_.CreateICmpSLT(b_.CreateAdd(i, step), end));
    rows_ahead_ = b_.CreateSelect(some, step, frame_.index(0));
  }

  // The stages during which the next rows are asked for, operands by turns: the longest after the first, which reads a
  // row itself, and those about as long. What is asked for at once waits in a short queue.
  std::vector<const Stage*> asking_stages() const {
    const std::span<const Stage> stages = plan_.stages();
    if (plan_.spec().reduction != Reduction::Inner || plan_.spec().rank < 2 || stages.size() < 2) return {};
    int longest = 0;
    for (const Stage& stage : stages.subspan(1)) longest = std::max(longest, stage.cost);
    std::vector<const Stage*> asking;
    for (const Stage& stage : stages.subspan(1)) {
      if (2 * stage.cost >= longest) asking.push_back(&stage);
    }
    return asking;
  }

  // Where the row begins that takes the current one's place next, of each operand that the first stage reads or the
  // last one writes, as far as they are asked for during a stage.
  std::vector<Ahead> rows_ahead(const Stage& stage) {
    const std::vector<const Stage*> asking = asking_stages();
    std::vector<Ahead> ahead;
    size_t turn = 0;
    auto add = [&](int operand) {
      const OperandSignature& signature = operands_.signature(operand);
      if (signature.kind != OperandKind::Tensor || signature.inner != InnerStride::One) return;
      if (asking.empty() || asking[turn++ % asking.size()] != &stage) return;
      Value* distance = b_.CreateMul(rows_ahead_, operands_.step(operand, plan_.spec().rank - 2));
      ahead.push_back({frame_.at(operands_.row(operand), distance), static_cast<int64_t>(dtype_size(signature.dtype))});
    };
    for (int input : plan_.stages()[0].inputs) add(input);
    for (int i = 0; i < output_count(); ++i) {
      if (!plan_.output_is_reduced(i)) add(input_count() + i);
    }
    return ahead;
  }

  // One pass of a stage over [begin, end) of the current row.
  void emit_pass(const Stage& stage, Value* begin, Value* end, llvm::MutableArrayRef<LaneAccumulators> accumulators) {
    static_assert(kRandomLine % LaneAccumulators::kLanes == 0);
    if (stage.random.empty()) return emit_line(stage, begin, end, accumulators);
    frame_.loop(begin, end, kRandomLine, [&](Value* first) {
      Value* last = frame_.minimum(b_.CreateAdd(first, frame_.index(kRandomLine)), end);
      fill_random_lines(stage, first, last);
      emit_line(stage, first, last, accumulators);
    });
  }

  // Whether a pass reads and writes nothing but adjacent bfloat16, element by element.
  bool only_bfloat16(const Stage& stage) const {
    if (plan_.spec().reduction != Reduction::None || !stage.random.empty()) return false;
    auto suits = [](const OperandSignature& operand) {
      return operand.kind == OperandKind::Tensor && operand.dtype == DType::BFloat16 &&
             operand.inner == InnerStride::One;
    };
    const auto& outputs = plan_.spec().outputs;
    return std::all_of(outputs.begin(), outputs.end(), suits) &&
           std::all_of(stage.inputs.begin(), stage.inputs.end(), [&](int i) { return suits(plan_.spec().inputs[i]); });
  }

  // The same with random numbers made.
  void emit_line(const Stage& stage, Value* begin, Value* end, llvm::MutableArrayRef<LaneAccumulators> accumulators) {
    InnerLoop loop = make_loop(part_count(stage));
    std::vector<int> loads, stores, outputs;
    const std::vector<int> inputs = add_inputs(loop, stage), random = add_random_lines(loop, stage);
    for (ir::Value value : stage.scratch_loads) loads.push_back(loop.add_input(scratch_stream(value)));
    for (ir::Value value : stage.scratch_stores) stores.push_back(loop.add_output(scratch_stream(value)));
    for (int i = 0; i < output_count(); ++i) {
      const bool stored = stage.stores_outputs && !plan_.output_is_reduced(i);
      const int operand = input_count() + i;
      outputs.push_back(stored ? loop.add_output(operands_.stream(operand, operands_.row(operand))) : -1);
    }
    const std::vector<Ahead> ahead = rows_ahead(stage);
    if (!accumulators.empty()) loop.carries();
    if (stage.cost <= kShortBody) loop.whole_blocks_first();
    if (part_count(stage) % 2 == 0 && only_bfloat16(stage)) loop.split_words();
    loop.emit(begin, end, [&](Value* position, int parts) {
      values_.begin_body(parts);
      prefetch(ahead, position, parts);
      // Operation by operation, so that the parts of a long chain of dependent operations run side by side.
      for (int part = 0; part < parts; ++part) {
        load_inputs(loop, stage, inputs, position, part);
        load_random_lines(loop, stage, random, part);
        for (size_t i = 0; i < loads.size(); ++i) values_.set(stage.scratch_loads[i], part, loop.load(loads[i], part));
      }
      for (int index : stage.operations) values_.emit_by_turns(index, parts);
      for (int part = 0; part < parts; ++part) {
        for (LaneAccumulators& accumulator : accumulators)
          accumulator.add(position, part, reduced_elements(accumulator.reducer(), part), loop.mask(part));
      }
      // Stream by stream, so that a cache line is written as a whole: the same line of several outputs may share a set.
      for (size_t i = 0; i < stores.size(); ++i) {
        for (int part = 0; part < parts; ++part)
          loop.store(stores[i], part, values_.get(stage.scratch_stores[i], part));
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        for (int part = 0; part < parts && outputs[i] >= 0; ++part)
          loop.store(outputs[i], part, values_.get(graph_.results()[i], part));
      }
    });
  }

  Value* row_bytes_ = nullptr;   // of a scratch row
  Value* rows_ahead_ = nullptr;  // rows from those at work to those that are asked for
};

}  // namespace

std::unique_ptr<KernelEmitter> make_row_emitter(llvm::Function* function, const Plan& plan, int vector_bytes) {
  return std::make_unique<RowEmitter>(function, plan, vector_bytes);
}

}  // namespace neuron::codegen
