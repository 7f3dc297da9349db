// Accumulators of one reduce operation and the order in which they are combined (docs/numerics.md).
#pragma once

#include <vector>

#include "neuron/codegen/llvm/frame.h"
#include "neuron/codegen/llvm/lanes.h"
#include "neuron/ir/graph.h"

namespace neuron::codegen {

// The body of a reduce operation on bundles of lanes, for one or for several values at once. Narrow floats accumulate
// in float32; a bool accumulator is a byte.
class Reducer {
 public:
  Reducer(const ir::Graph& graph, const ir::Operation& operation);

  int count() const { return static_cast<int>(dtypes_.size()); }
  const ir::Operation& operation() const { return operation_; }
  // The accumulator's element type, in memory as in registers.
  llvm::Type* type(llvm::LLVMContext& context, int value) const;
  // A dtype held in registers as the accumulator is.
  DType accumulator_dtype(int value) const { return dtypes_[value] == DType::Bool ? DType::UInt8 : dtypes_[value]; }
  int64_t size(int value) const { return static_cast<int64_t>(dtype_size(dtypes_[value])); }
  // What lanes start from: the identity of a simple reducer, the init values (scalars) otherwise.
  llvm::Value* identity(llvm::LLVMContext& context, int value, llvm::Value* init) const;
  // Values of the graph to accumulator form and back.
  llvm::Value* enter(const Lanes& lanes, int value, llvm::Value* x) const;
  llvm::Value* leave(const Lanes& lanes, int value, llvm::Value* x) const;
  // accumulators = body(accumulators, elements), all in accumulator form.
  void combine(const Lanes& lanes, llvm::MutableArrayRef<llvm::Value*> accumulators,
               llvm::ArrayRef<llvm::Value*> elements) const;

 private:
  const ir::Operation& operation_;
  ir::SimpleReducer simple_;
  std::vector<DType> dtypes_;    // of the accumulators
  std::vector<DType> operands_;  // as in the graph
};

// 32 virtual lanes of a Reducer over one chunk of an innermost dimension, as vectors of `width` lanes; `parts` vectors
// are updated by one loop body. They are registers when a body covers all 32 lanes and memory of the frame otherwise.
class LaneAccumulators {
 public:
  static constexpr int kLanes = 32;

  LaneAccumulators(Frame& frame, const Reducer& reducer, int width, int parts);

  // Sets all lanes to the identity.
  void reset(llvm::ArrayRef<llvm::Value*> inits);
  // Combines part `part` of the block at `position` with elements in accumulator form, in the lanes of `mask` (null:
  // all).
  void add(llvm::Value* position, int part, llvm::ArrayRef<llvm::Value*> elements, llvm::Value* mask);
  // Folds lanes 16, 8, 4, 2, 1 apart; returns lane 0 of each value.
  llvm::SmallVector<llvm::Value*, 2> fold();
  const Reducer& reducer() const { return reducer_; }

 private:
  llvm::Value* address(llvm::Value* position, int value, int part);

  Frame& frame_;
  const Reducer& reducer_;
  int width_, parts_;
  bool in_registers_;
  std::vector<std::vector<llvm::AllocaInst*>> storage_;  // [value][part], or [value][0] when in memory
};

}  // namespace neuron::codegen
