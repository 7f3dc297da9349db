#include "neuron/codegen/llvm/frame.h"

#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

namespace neuron::codegen {

Frame::Frame(llvm::Function* function)
    : function_(function),
      builder_(function->getContext()),
      entry_(llvm::BasicBlock::Create(function->getContext(), "entry", function)) {
  builder_.SetInsertPoint(entry_);
}

llvm::AllocaInst* Frame::variable(llvm::Type* type, const char* name) {
  llvm::IRBuilder<> top(entry_, entry_->begin());
  variables_.push_back(top.CreateAlloca(type, nullptr, name));
  return variables_.back();
}

llvm::AllocaInst* Frame::memory(llvm::Type* type, const char* name) {
  llvm::IRBuilder<> top(entry_, entry_->begin());
  auto* created = top.CreateAlloca(type, nullptr, name);
  created->setAlignment(llvm::Align(64));
  return created;
}

llvm::BasicBlock* Frame::block(const char* name) {
  return llvm::BasicBlock::Create(function_->getContext(), name, function_);
}

void Frame::enter(llvm::BasicBlock* target) {
  builder_.CreateBr(target);
  target->moveAfter(builder_.GetInsertBlock());
  builder_.SetInsertPoint(target);
}

void Frame::loop(llvm::Value* begin, llvm::Value* end, int64_t step, FunctionRef<void(llvm::Value*)> body) {
  loop(begin, end, [&](llvm::Value* i) -> llvm::Value* {
    body(i);
    return index(step);
  });
}

void Frame::loop(llvm::Value* begin, llvm::Value* end, FunctionRef<llvm::Value*(llvm::Value*)> body) {
  auto* counter = variable(builder_.getInt64Ty(), "i");
  store(begin, counter);
  llvm::BasicBlock *head = block("head"), *inside = block("inside"), *done = block("done");
  enter(head);
  llvm::Value* i = load(counter);
  builder_.CreateCondBr(builder_.CreateICmpSLT(i, end), inside, done);
  inside->moveAfter(head);
  builder_.SetInsertPoint(inside);
  llvm::Value* step = body(i);
  store(builder_.CreateAdd(load(counter), step), counter);
  builder_.CreateBr(head);
  done->moveAfter(builder_.GetInsertBlock());
  builder_.SetInsertPoint(done);
}

void Frame::when(llvm::Value* condition, FunctionRef<void()> body) {
  llvm::BasicBlock *inside = block("then"), *done = block("done");
  builder_.CreateCondBr(condition, inside, done);
  inside->moveAfter(builder_.GetInsertBlock());
  builder_.SetInsertPoint(inside);
  body();
  enter(done);
}

void Frame::finish() {
  builder_.CreateRetVoid();
  llvm::DominatorTree dominators(*function_);
  llvm::PromoteMemToReg(variables_, dominators);
}

}  // namespace neuron::codegen
