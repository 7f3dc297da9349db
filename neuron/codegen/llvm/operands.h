// Addresses of a region's operands while rows are walked: where the current row of each operand starts.
#pragma once

#include <vector>

#include "neuron/codegen/llvm/frame.h"
#include "neuron/codegen/llvm/inner_loop.h"
#include "neuron/codegen/llvm/plan.h"

namespace neuron::codegen {

class Operands {
 public:
  // Reads sizes, pointers and strides from the RegionArguments at `arguments`. The first `outer` dimensions are walked
  // as rows.
  Operands(Frame& frame, const Plan& plan, llvm::Value* arguments, int outer);

  llvm::Value* size(int dimension);
  // Bits of a Scalar input.
  llvm::Value* scalar(int input);
  // Starts at a row; moves to the next one.
  void seek(llvm::Value* row);
  void advance();
  // The current row of an operand (inputs, then outputs): an address, or the i64 value of an Index.
  llvm::Value* row(int operand);
  // The current rows of all operands; null for Scalar.
  std::vector<llvm::Value*> current_rows();
  // row() answers with these from here on: the code of several rows is emitted by turns.
  void hold(std::vector<llvm::Value*> rows) { held_ = std::move(rows); }
  // Distance in bytes (Index: in units) along a dimension.
  llvm::Value* step(int operand, int dimension);
  // The innermost dimension of an operand from `row` on.
  Stream stream(int operand, llvm::Value* row);
  int count() const { return static_cast<int>(rows_.size()); }
  const OperandSignature& signature(int operand) const;

 private:
  void move(int operand, llvm::Value* distance);

  Frame& frame_;
  const Plan& plan_;
  int rank_, outer_;
  llvm::Value *sizes_, *pointers_, *strides_, *scalars_;
  std::vector<llvm::AllocaInst*> rows_;       // null for Scalar
  std::vector<llvm::AllocaInst*> positions_;  // per outer dimension
  std::vector<llvm::Value*> inner_steps_;     // of operands with InnerStride::Other
  std::vector<llvm::Value*> held_;            // empty: the rows that are walked
};

}  // namespace neuron::codegen
