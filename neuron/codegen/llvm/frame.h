// The control flow of one generated function: blocks, counted loops, conditions, local variables.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <vector>

#include "neuron/base/function_ref.h"

namespace neuron::codegen {

class Frame {
 public:
  explicit Frame(llvm::Function* function);

  llvm::IRBuilder<>& builder() { return builder_; }
  llvm::Function* function() const { return function_; }
  llvm::Type* pointer() { return builder_.getPtrTy(); }
  llvm::Value* index(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }

  // A variable that finish() turns into registers.
  llvm::AllocaInst* variable(llvm::Type* type, const char* name);
  // Memory of the function's frame, aligned to a cache line.
  llvm::AllocaInst* memory(llvm::Type* type, const char* name);
  llvm::Value* load(llvm::AllocaInst* variable) { return builder_.CreateLoad(variable->getAllocatedType(), variable); }
  void store(llvm::Value* value, llvm::AllocaInst* variable) { builder_.CreateStore(value, variable); }

  llvm::BasicBlock* block(const char* name);
  // Branches to `target` from the current block and goes on there.
  void enter(llvm::BasicBlock* target);
  // for (i = begin; i < end; i += step) body(i)
  void loop(llvm::Value* begin, llvm::Value* end, int64_t step, FunctionRef<void(llvm::Value*)> body);
  // The same with a step that body returns.
  void loop(llvm::Value* begin, llvm::Value* end, FunctionRef<llvm::Value*(llvm::Value*)> body);
  void when(llvm::Value* condition, FunctionRef<void()> body);

  llvm::Value* at(llvm::Value* base, llvm::Value* bytes) { return builder_.CreatePtrAdd(base, bytes); }
  llvm::Value* at(llvm::Value* base, int64_t bytes) {
    return builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), base, bytes);
  }
  llvm::Value* minimum(llvm::Value* a, llvm::Value* b) {
    return builder_.CreateSelect(builder_.CreateICmpSLT(a, b), a, b);
  }

  // Closes the function with a return and promotes its variables.
  void finish();

 private:
  llvm::Function* function_;
  llvm::IRBuilder<> builder_;
  llvm::BasicBlock* entry_;
  std::vector<llvm::AllocaInst*> variables_;
};

}  // namespace neuron::codegen
