// One vectorised pass over a range of the innermost dimension.
//
// Whole blocks of several vectors go through an unrolled loop; what is left goes vector by vector through a second loop
// that touches only the lanes in range. Bodies of one vector have the second loop alone. Both emit the same operations,
// so an element's bits do not depend on where in a row it lies. Streams with a run-time stride are read and written
// lane by lane.
#pragma once

#include "neuron/base/function_ref.h"
#include "neuron/codegen/llvm/frame.h"
#include "neuron/codegen/llvm/lanes.h"
#include "neuron/codegen/region.h"

namespace neuron::codegen {

struct Stream {
  DType dtype = DType::Float32;
  llvm::Value* base = nullptr;    // address of position 0
  llvm::Value* stride = nullptr;  // in bytes; null: elements are adjacent
  bool padded = false;            // may be touched up to a block past the end (scratch rows)
};

class InnerLoop {
 public:
  // `byte_masks`: the target masks lanes of any width, not only of 4 and 8 bytes.
  InnerLoop(Frame& frame, int width, int parts, bool byte_masks)
      : frame_(frame), width_(width), parts_(parts), byte_masks_(byte_masks) {}

  int add_input(const Stream& stream) { return add(stream, false); }
  int add_output(const Stream& stream) { return add(stream, true); }
  // The body has results of its own (accumulators) that must be masked, and whose registers are `parts` vectors.
  void carries() { carries_ = true; }

  // A loop without masks for whole blocks even when a block is one vector: the body is short enough to be there twice.
  void whole_blocks_first() { whole_first_ = true; }

  // In whole blocks, vectors 2 k and 2 k + 1 are the even and the odd elements of their lines: the halves of words,
  // which bfloat16 fills without permutations. All streams are adjacent bfloat16, `parts` is even, and the body does
  // not ask for an element's place.
  void split_words() { splits_words_ = true; }

  // Emits the pass over [begin, end). The body is called for each loop, with the position of a block's first element
  // and the number of vectors in the block; it may call load(), store() and mask(). All of its loads must come before
  // its first store.
  void emit(llvm::Value* begin, llvm::Value* end, FunctionRef<void(llvm::Value* position, int parts)> body);

  // Within the body. Bool is i1, as everywhere in registers.
  llvm::Value* load(int stream, int part);
  void store(int stream, int part, llvm::Value* value);
  // Lanes in range; null when all are.
  llvm::Value* mask(int part) const { return masks_.empty() ? nullptr : masks_[static_cast<size_t>(part)]; }

 private:
  struct State {
    Stream stream;
    bool output;
    llvm::AllocaInst* buffer = nullptr;  // stands in for memory when lanes cannot be masked
    llvm::Value* base = nullptr;         // of the block at work
    llvm::Value* pair = nullptr;         // what vector 2 k leaves for the next one
    llvm::Value* stride = nullptr;
  };
  int add(const Stream& stream, bool output);
  llvm::Type* memory_type(const State& state) const {
    return Lanes::memory_type(frame_.builder().getContext(), state.stream.dtype);
  }
  int64_t size(const State& state) const { return static_cast<int64_t>(dtype_size(state.stream.dtype)); }
  bool buffered(const State& state) const;
  llvm::Value* load_of_pair(State& state, int part);
  void store_half(State& state, int part, llvm::Value* value);
  llvm::Value* block_address(const State& state, llvm::Value* position) const;
  llvm::Value* address(const State& state, int part) const;
  void emit_blocks(llvm::Value* end, int parts, bool masked, FunctionRef<void(llvm::Value*, int)> body);
  void begin_block(llvm::Value* position);
  void begin_masked_block(llvm::Value* position, llvm::Value* end, int parts);
  void end_masked_block(llvm::Value* position);
  void copy(const State& state, llvm::Value* position, bool to_buffer);

  Frame& frame_;
  int width_, parts_;
  bool byte_masks_, carries_ = false, whole_first_ = false, splits_words_ = false;
  std::vector<State> states_;
  llvm::AllocaInst* position_ = nullptr;
  int block_parts_ = 0;  // of the loop at work
  // Of the masked block at work: whether all its lanes are in range, how many are, which are.
  llvm::Value *full_ = nullptr, *count_ = nullptr;
  std::vector<llvm::Value*> masks_;
};

}  // namespace neuron::codegen
