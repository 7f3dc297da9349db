#include "neuron/codegen/llvm/inner_loop.h"

#include <algorithm>
#include <tuple>

#include "neuron/codegen/llvm/conversions.h"

namespace neuron::codegen {

using llvm::Value;

int InnerLoop::add(const Stream& stream, bool output) {
  states_.push_back({stream, output});
  return static_cast<int>(states_.size()) - 1;
}

bool InnerLoop::buffered(const State& state) const {
  if (state.stream.padded) return false;
  return state.stream.stride != nullptr || (!byte_masks_ && size(state) < 4);
}

void InnerLoop::emit(Value* begin, Value* end, FunctionRef<void(Value*, int)> body) {
  auto& b = frame_.builder();
  position_ = frame_.variable(b.getInt64Ty(), "position");
  frame_.store(begin, position_);
  const bool padded =
      std::all_of(states_.begin(), states_.end(), [](const State& state) { return state.stream.padded; });
  if (padded && !carries_) return emit_blocks(end, parts_, false, body);
  if (parts_ > 1 || whole_first_) emit_blocks(b.CreateSub(end, frame_.index(width_ * parts_ - 1)), parts_, false, body);
  emit_blocks(end, carries_ ? parts_ : 1, true, body);
}

// Blocks from position_ on, while it is below `end`.
void InnerLoop::emit_blocks(Value* end, int parts, bool masked, FunctionRef<void(Value*, int)> body) {
  auto& b = frame_.builder();
  llvm::BasicBlock *blocks = frame_.block("blocks"), *done = frame_.block("done");
  b.CreateCondBr(b.CreateICmpSLT(frame_.load(position_), end), blocks, done);
  blocks->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(blocks);
  Value* position = frame_.load(position_);
  block_parts_ = parts;
  begin_block(position);
  if (masked) begin_masked_block(position, end, parts);
  body(position, parts);
  if (masked) end_masked_block(position);
  Value* next = b.CreateAdd(position, frame_.index(width_ * parts));
  frame_.store(next, position_);
  b.CreateCondBr(b.CreateICmpSLT(next, end), blocks, done);
  done->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(done);
}

Value* InnerLoop::block_address(const State& state, Value* position) const {
  auto& b = frame_.builder();
  if (state.stream.stride == nullptr) return b.CreateGEP(memory_type(state), state.stream.base, position);
  return frame_.at(state.stream.base, b.CreateMul(position, state.stream.stride));
}

void InnerLoop::begin_block(Value* position) {
  for (State& state : states_) {
    state.base = block_address(state, position);
    state.stride = state.stream.stride;
  }
}

void InnerLoop::begin_masked_block(Value* position, Value* end, int parts) {
  auto& b = frame_.builder();
  Value* left = b.CreateSub(end, position);
  full_ = b.CreateICmpSGE(left, frame_.index(width_ * parts));
  count_ = b.CreateSelect(full_, frame_.index(width_ * parts), left);
  // Lane numbers as narrow as their vectors are long, so that the comparison is one instruction.
  auto* lane_type = b.getIntNTy(width_ >= 32 ? 8 : width_ == 16 ? 16 : 32);
  Lanes lanes(b, width_);
  Value* wanted = lanes.splat(b.CreateTrunc(count_, lane_type));
  for (int part = 0; part < parts; ++part) {
    llvm::SmallVector<llvm::Constant*, 64> numbers;
    for (int i = 0; i < width_; ++i)
      numbers.push_back(llvm::ConstantInt::get(lane_type, static_cast<uint64_t>(part * width_ + i)));
    Value* lane = width_ == 1 ? static_cast<Value*>(numbers[0]) : llvm::ConstantVector::get(numbers);
    masks_.push_back(b.CreateICmpSLT(lane, wanted));
  }
  if (std::none_of(states_.begin(), states_.end(), [this](const State& state) { return buffered(state); })) return;
  for (State& state : states_) {
    if (!buffered(state)) continue;
    auto* type = llvm::ArrayType::get(b.getInt8Ty(), static_cast<uint64_t>(size(state) * width_ * parts));
    state.buffer = frame_.memory(type, "buffer");
  }
  frame_.when(b.CreateNot(full_), [&] {
    for (State& state : states_) {
      if (!buffered(state) || state.output) continue;
      // Lanes past the end hold zero: what lies in the buffer could be subnormal and slow.
      for (int part = 0; part < parts; ++part) {
        Value* to = frame_.at(state.buffer, size(state) * width_ * part);
        b.CreateAlignedStore(llvm::Constant::getNullValue(lanes.of(memory_type(state))), to, llvm::Align(1));
      }
      copy(state, position, true);
    }
  });
  for (State& state : states_) {
    if (!buffered(state)) continue;
    state.base = b.CreateSelect(full_, state.base, state.buffer);
    if (state.stride != nullptr) state.stride = b.CreateSelect(full_, state.stride, frame_.index(size(state)));
  }
}

void InnerLoop::end_masked_block(Value* position) {
  auto& b = frame_.builder();
  masks_.clear();
  const bool any = std::any_of(states_.begin(), states_.end(),
                               [this](const State& state) { return state.output && buffered(state); });
  if (!any) return;
  frame_.when(b.CreateNot(full_), [&] {
    for (State& state : states_) {
      if (state.output && buffered(state)) copy(state, position, false);
    }
  });
}

// Between memory and the buffer of a block that is not full.
void InnerLoop::copy(const State& state, Value* position, bool to_buffer) {
  auto& b = frame_.builder();
  Value* memory = block_address(state, position);
  if (state.stream.stride == nullptr) {
    Value *to = to_buffer ? state.buffer : memory, *from = to_buffer ? memory : state.buffer;
    b.CreateMemCpy(to, llvm::Align(1), from, llvm::Align(1), b.CreateMul(count_, frame_.index(size(state))));
    return;
  }
  frame_.loop(frame_.index(0), count_, 1, [&](Value* i) {
    Value* element = frame_.at(memory, b.CreateMul(i, state.stream.stride));
    Value* buffer = frame_.at(state.buffer, b.CreateMul(i, frame_.index(size(state))));
    b.CreateStore(b.CreateLoad(memory_type(state), to_buffer ? element : buffer), to_buffer ? buffer : element);
  });
}

Value* InnerLoop::address(const State& state, int part) const {
  if (state.stride == nullptr) return frame_.at(state.base, size(state) * width_ * part);
  return frame_.at(state.base, frame_.builder().CreateMul(state.stride, frame_.index(part * width_)));
}

Value* InnerLoop::load_of_pair(State& state, int part) {
  auto& b = frame_.builder();
  Lanes lanes(b, width_);
  if (part % 2 == 1) return state.pair;
  llvm::Type* type = Lanes(b, 2 * width_).of(memory_type(state));
  Value *both = b.CreateAlignedLoad(type, address(state, part), llvm::Align(2)), *first;
  if (splits_words_) {
    Value* words = b.CreateBitCast(both, lanes.i32());
    first = lanes.from_bits(b.CreateShl(words, 16));
    state.pair = lanes.from_bits(b.CreateAnd(words, lanes.i32(0xffff0000)));
  } else {
    std::tie(first, state.pair) = emit_two_from_memory(lanes, both);
  }
  return first;
}

void InnerLoop::store_half(State& state, int part, Value* value) {
  auto& b = frame_.builder();
  Value* bits = Lanes(b, width_).bits(value);
  if (part % 2 == 0) {
    state.pair = b.CreateLShr(bits, 16);
  } else {
    b.CreateAlignedStore(b.CreateOr(state.pair, bits), address(state, part - 1), llvm::Align(2));
  }
}

Value* InnerLoop::load(int stream, int part) {
  auto& b = frame_.builder();
  State& state = states_[static_cast<size_t>(stream)];
  Lanes lanes(b, width_);
  // Adjacent bfloat16 fill two registers of 64 bytes by a permutation each, where one vector takes a shift more.
  const bool adjacent = state.stream.dtype == DType::BFloat16 && state.stream.stride == nullptr;
  const bool pair = splits_words_ || (adjacent && block_parts_ % 2 == 0 && lanes.has_wide_registers());
  if (pair && masks_.empty()) return load_of_pair(state, part);
  llvm::Type* element = memory_type(state);
  const llvm::Align align(static_cast<uint64_t>(size(state)));
  Value *at = address(state, part), *value;
  if (state.stride != nullptr) {
    value = llvm::PoisonValue::get(lanes.of(element));
    for (int i = 0; i < width_; ++i) {
      Value* one = b.CreateLoad(element, at);
      value = width_ == 1 ? one : b.CreateInsertElement(value, one, i);
      if (i + 1 < width_) at = frame_.at(at, state.stride);
    }
  } else if (masks_.empty() || state.stream.padded || buffered(state)) {
    value = b.CreateAlignedLoad(lanes.of(element), at, align);
  } else {
    value =
        b.CreateMaskedLoad(lanes.of(element), at, align, masks_[part], llvm::Constant::getNullValue(lanes.of(element)));
  }
  return emit_from_memory(lanes, value, state.stream.dtype);
}

void InnerLoop::store(int stream, int part, Value* value) {
  auto& b = frame_.builder();
  State& state = states_[static_cast<size_t>(stream)];
  if (splits_words_ && masks_.empty()) return store_half(state, part, value);
  value = emit_to_memory(Lanes(b, width_), value, state.stream.dtype);
  const llvm::Align align(static_cast<uint64_t>(size(state)));
  Value* at = address(state, part);
  if (state.stride != nullptr) {
    for (int i = 0; i < width_; ++i) {
      b.CreateStore(width_ == 1 ? value : b.CreateExtractElement(value, i), at);
      if (i + 1 < width_) at = frame_.at(at, state.stride);
    }
  } else if (masks_.empty() || state.stream.padded || buffered(state)) {
    b.CreateAlignedStore(value, at, align);
  } else if (byte_masks_) {
    b.CreateMaskedStore(value, at, align, masks_[part]);
  } else {
    // AVX2's masked stores are slow on some processors; full blocks do without.
    llvm::BasicBlock *whole = frame_.block("whole"), *some = frame_.block("some"), *stored = frame_.block("stored");
    b.CreateCondBr(full_, whole, some);
    b.SetInsertPoint(whole);
    b.CreateAlignedStore(value, at, align);
    b.CreateBr(stored);
    b.SetInsertPoint(some);
    b.CreateMaskedStore(value, at, align, masks_[part]);
    b.CreateBr(stored);
    b.SetInsertPoint(stored);
  }
}

}  // namespace neuron::codegen
