#include "neuron/codegen/llvm/inner_loop.h"

namespace neuron::codegen {

using llvm::Value;

int InnerLoop::add(const Stream& stream, bool output) {
  states_.push_back({stream, output});
  return static_cast<int>(states_.size()) - 1;
}

void InnerLoop::prepare() {
  auto& b = frame_.builder();
  position_ = frame_.variable(b.getInt64Ty(), "position");
  for (State& state : states_) {
    state.base = frame_.variable(frame_.pointer(), "base");
    if (state.stream.stride != nullptr) state.stride = frame_.variable(b.getInt64Ty(), "stride");
    if (!state.stream.padded) {
      auto* type = llvm::ArrayType::get(b.getInt8Ty(), static_cast<uint64_t>(size(state) * lanes()));
      state.buffer = frame_.memory(type, "tail");
    }
  }
}

void InnerLoop::point_at_streams(Value* position) {
  auto& b = frame_.builder();
  for (State& state : states_) {
    Value* base = state.stream.base;
    if (state.stride != nullptr) {
      frame_.store(state.stream.stride, state.stride);
      base = frame_.at(base, b.CreateMul(position, state.stream.stride));
    }
    frame_.store(base, state.base);
  }
}

void InnerLoop::copy(const State& state, Value* position, Value* count, bool to_buffer) {
  auto& b = frame_.builder();
  const int64_t bytes = size(state);
  if (state.stream.stride == nullptr) {
    Value* memory = frame_.at(state.stream.base, b.CreateMul(position, frame_.index(bytes)));
    Value* length = b.CreateMul(count, frame_.index(bytes));
    Value *to = to_buffer ? state.buffer : memory, *from = to_buffer ? memory : state.buffer;
    b.CreateMemCpy(to, llvm::Align(1), from, llvm::Align(1), length);
    return;
  }
  frame_.loop(frame_.index(0), count, 1, [&](Value* i) {
    Value* memory = frame_.at(state.stream.base, b.CreateMul(b.CreateAdd(position, i), state.stream.stride));
    Value* buffer = frame_.at(state.buffer, b.CreateMul(i, frame_.index(bytes)));
    b.CreateStore(b.CreateLoad(memory_type(state), to_buffer ? memory : buffer), to_buffer ? buffer : memory);
  });
}

void InnerLoop::fill_buffers(Value* position, Value* count) {
  auto& b = frame_.builder();
  for (State& state : states_) {
    if (state.stream.padded) continue;
    // Lanes past the end hold zero: what lies in the buffer could be subnormal and slow.
    if (!state.output) {
      Lanes lanes(b, width_);
      for (int part = 0; part < parts_; ++part) {
        b.CreateAlignedStore(llvm::Constant::getNullValue(lanes.of(memory_type(state))),
                             frame_.at(state.buffer, size(state) * width_ * part), llvm::Align(1));
      }
      copy(state, position, count, true);
    }
    if (state.stride != nullptr) {
      frame_.store(frame_.index(size(state)), state.stride);
      frame_.store(state.buffer, state.base);
    } else {
      frame_.store(frame_.at(state.buffer, b.CreateNeg(b.CreateMul(position, frame_.index(size(state))))), state.base);
    }
  }
}

void InnerLoop::empty_buffers(Value* position, Value* count) {
  for (State& state : states_) {
    if (state.output && !state.stream.padded) copy(state, position, count, false);
  }
}

void InnerLoop::save_carried(Value* position) {
  auto& b = frame_.builder();
  for (Carried& carried : carried_) {
    llvm::Type* type = Lanes(b, width_).of(carried.element);
    carried.saved.clear();
    for (int part = 0; part < parts_; ++part) {
      carried.saved.push_back(frame_.variable(type, "saved"));
      b.CreateStore(b.CreateLoad(type, carried.address(position, part)), carried.saved.back());
    }
  }
}

void InnerLoop::blend_carried(Value* position, Value* count) {
  auto& b = frame_.builder();
  Lanes lanes(b, width_);
  Value* wanted = lanes.splat(b.CreateTrunc(count, b.getInt32Ty()));
  for (int part = 0; part < parts_ && !carried_.empty(); ++part) {
    llvm::SmallVector<llvm::Constant*, 32> numbers;
    for (int i = 0; i < width_; ++i) numbers.push_back(b.getInt32(static_cast<uint32_t>(part * width_ + i)));
    Value* lane = width_ == 1 ? static_cast<Value*>(numbers[0]) : llvm::ConstantVector::get(numbers);
    Value* inside = b.CreateICmpSLT(lane, wanted);
    for (Carried& carried : carried_) {
      llvm::Type* type = lanes.of(carried.element);
      Value* address = carried.address(position, part);
      b.CreateStore(b.CreateSelect(inside, b.CreateLoad(type, address), b.CreateLoad(type, carried.saved[part])),
                    address);
    }
  }
}

void InnerLoop::emit(Value* begin, Value* end, FunctionRef<void(Value*)> body) {
  auto& b = frame_.builder();
  prepare();
  frame_.store(begin, position_);
  llvm::BasicBlock *dispatch = frame_.block("dispatch"), *choose = frame_.block("choose"),
                   *whole = frame_.block("whole"), *tail = frame_.block("tail"), *blocks = frame_.block("blocks"),
                   *after = frame_.block("after"), *finish = frame_.block("finish"), *done = frame_.block("done");
  frame_.enter(dispatch);
  Value* start = frame_.load(position_);
  b.CreateCondBr(b.CreateICmpSLT(start, end), choose, done);

  b.SetInsertPoint(choose);
  Value* rest = b.CreateSub(end, start);
  b.CreateCondBr(b.CreateICmpSGE(rest, frame_.index(lanes())), whole, tail);

  b.SetInsertPoint(whole);
  point_at_streams(start);
  b.CreateBr(blocks);

  b.SetInsertPoint(tail);
  point_at_streams(start);
  fill_buffers(start, rest);
  save_carried(start);
  b.CreateBr(blocks);

  blocks->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(blocks);
  body_position_ = frame_.load(position_);
  body(body_position_);
  for (State& state : states_) {
    if (state.stride == nullptr) continue;
    Value* advance = b.CreateMul(frame_.load(state.stride), frame_.index(lanes()));
    frame_.store(frame_.at(frame_.load(state.base), advance), state.base);
  }
  Value* next = b.CreateAdd(body_position_, frame_.index(lanes()));
  frame_.store(next, position_);
  b.CreateCondBr(b.CreateICmpSLE(b.CreateAdd(next, frame_.index(lanes())), end), blocks, after);

  after->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(after);
  Value* reached = frame_.load(position_);
  b.CreateCondBr(b.CreateICmpSGT(reached, end), finish, dispatch);

  finish->moveAfter(after);
  b.SetInsertPoint(finish);
  Value* tail_position = b.CreateSub(reached, frame_.index(lanes()));
  Value* tail_count = b.CreateSub(end, tail_position);
  empty_buffers(tail_position, tail_count);
  blend_carried(tail_position, tail_count);
  b.CreateBr(done);

  done->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(done);
}

Value* InnerLoop::address(const State& state, int part) {
  auto& b = frame_.builder();
  Value* element = b.CreateGEP(memory_type(state), frame_.load(state.base), body_position_);
  return frame_.at(element, size(state) * width_ * part);
}

Value* InnerLoop::load(int stream, int part) {
  auto& b = frame_.builder();
  const State& state = states_[static_cast<size_t>(stream)];
  Lanes lanes(b, width_);
  llvm::Type* element = memory_type(state);
  Value* value;
  if (state.stride == nullptr) {
    value =
        b.CreateAlignedLoad(lanes.of(element), address(state, part), llvm::Align(static_cast<uint64_t>(size(state))));
  } else {
    Value* stride = frame_.load(state.stride);
    Value* at = frame_.at(frame_.load(state.base), b.CreateMul(stride, frame_.index(part * width_)));
    value = llvm::PoisonValue::get(lanes.of(element));
    for (int i = 0; i < width_; ++i) {
      Value* one = b.CreateLoad(element, at);
      value = width_ == 1 ? one : b.CreateInsertElement(value, one, i);
      if (i + 1 < width_) at = frame_.at(at, stride);
    }
  }
  return state.stream.dtype == DType::Bool ? b.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()))
                                           : value;
}

void InnerLoop::store(int stream, int part, Value* value) {
  auto& b = frame_.builder();
  const State& state = states_[static_cast<size_t>(stream)];
  if (state.stream.dtype == DType::Bool) value = b.CreateZExt(value, Lanes(b, width_).integer(8));
  if (state.stride == nullptr) {
    b.CreateAlignedStore(value, address(state, part), llvm::Align(static_cast<uint64_t>(size(state))));
    return;
  }
  Value* stride = frame_.load(state.stride);
  Value* at = frame_.at(frame_.load(state.base), b.CreateMul(stride, frame_.index(part * width_)));
  for (int i = 0; i < width_; ++i) {
    b.CreateStore(width_ == 1 ? value : b.CreateExtractElement(value, i), at);
    if (i + 1 < width_) at = frame_.at(at, stride);
  }
}

}  // namespace neuron::codegen
