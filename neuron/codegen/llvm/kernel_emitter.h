// What the emitters of all kinds of regions share: the arguments, the uniform values, the inputs of a loop body.
#pragma once

#include <memory>
#include <vector>

#include "neuron/codegen/llvm/emitter.h"
#include "neuron/codegen/llvm/frame.h"
#include "neuron/codegen/llvm/inner_loop.h"
#include "neuron/codegen/llvm/operands.h"
#include "neuron/codegen/llvm/reduction.h"
#include "neuron/codegen/llvm/values.h"

namespace neuron::codegen {

// Columns whose random numbers are made at a time: they stay in the first-level cache until they are read.
constexpr int64_t kRandomLine = 1024;
// Elements that cost no more than any one of them (docs/numerics.md).
constexpr int64_t kRandomGroup = 64;

class KernelEmitter {
 public:
  KernelEmitter(llvm::Function* function, const Plan& plan, int vector_bytes);
  virtual ~KernelEmitter() = default;
  void emit();

 protected:
  // Everything of the current row; operands_ are positioned.
  virtual void emit_row() = 0;
  // Everything of the rows [begin, end), in order; operands_ are positioned.
  virtual void emit_rows(llvm::Value* begin, llvm::Value* end);

  int outer_dimensions() const { return plan_.spec().rank - (plan_.spec().reduction == Reduction::Outer ? 2 : 1); }
  int input_count() const { return static_cast<int>(plan_.spec().inputs.size()); }
  int output_count() const { return static_cast<int>(plan_.spec().outputs.size()); }
  llvm::Value* field(size_t offset, llvm::Type* type);
  llvm::Value* phase_is(Phase phase);
  void emit_uniforms(Scope scope, int stage);
  // Vectors of one loop body for a stage's work.
  int part_count(const Stage& stage) const;

  InnerLoop make_loop(int parts) { return {frame_, width_, parts, vector_bytes_ == 64}; }

  // The inputs of Row scope as uniform values; of an Outer region, at position `reduced` of the reduced dimension.
  void load_row_inputs(llvm::Value* reduced = nullptr);
  // Adds the tensor inputs of a stage to a loop, and sets their values for one part within its body.
  std::vector<int> add_inputs(InnerLoop& loop, const Stage& stage, llvm::Value* reduced = nullptr);
  void load_inputs(InnerLoop& loop, const Stage& stage, const std::vector<int>& streams, llvm::Value* position,
                   int part, llvm::Value* reduced = nullptr);
  // Random numbers of a stage for at most kRandomLine columns from `begin` on: makes them; adds their lines to a loop
  // over these columns; sets their values for one part within its body.
  void fill_random_lines(const Stage& stage, llvm::Value* begin, llvm::Value* end, llvm::Value* reduced = nullptr);
  std::vector<int> add_random_lines(InnerLoop& loop, const Stage& stage);
  void load_random_lines(InnerLoop& loop, const Stage& stage, const std::vector<int>& streams, int part);
  // A row that comes later, of one operand; sizes in bytes.
  struct Ahead {
    llvm::Value* base;
    int64_t size;
  };
  // Asks for the lines of a block of these rows.
  void prefetch(llvm::ArrayRef<Ahead> ahead, llvm::Value* position, int parts);
  // Where the current row of an operand starts; in an Outer region, at position `reduced` of the reduced dimension.
  llvm::Value* row_of(int operand, llvm::Value* reduced);
  // The operands of a reduce operation for one part, in accumulator form.
  llvm::SmallVector<llvm::Value*, 2> reduced_elements(const Reducer& reducer, int part);

  const Plan& plan_;
  const ir::Graph& graph_;
  Frame frame_;
  llvm::IRBuilder<>& b_;
  int vector_bytes_, width_;
  Values values_;
  Operands operands_;
  llvm::Value *column_begin_ = nullptr, *column_end_ = nullptr, *chunk_begin_ = nullptr, *chunk_end_ = nullptr;
  llvm::Value *phase_ = nullptr, *partials_ = nullptr, *scratch_ = nullptr;
  std::vector<std::unique_ptr<Reducer>> reducers_;  // per operation

 private:
  void set_scalars();
  void set_index_lanes();
  void set_random_lines();

  struct IndexLanes {
    llvm::Value* lanes = nullptr;
    llvm::Value* step = nullptr;
  };
  std::vector<IndexLanes> index_lanes_;  // per input

  // The numbers of a random operation: of elements [begin, end) where elements are adjacent.
  struct RandomLine {
    DType dtype = DType::UInt32;
    llvm::AllocaInst *numbers = nullptr, *begin = nullptr, *end = nullptr;
    llvm::Value* column0 = nullptr;  // where the number of column 0 of the row at work would be
  };
  void call_random_line(int operation, llvm::Value* first, llvm::Value* step, llvm::Value* count);
  std::vector<RandomLine> random_lines_;  // per operation
};

// None and Inner regions.
std::unique_ptr<KernelEmitter> make_row_emitter(llvm::Function* function, const Plan& plan, int vector_bytes);
// Outer regions.
std::unique_ptr<KernelEmitter> make_column_emitter(llvm::Function* function, const Plan& plan, int vector_bytes);

}  // namespace neuron::codegen
