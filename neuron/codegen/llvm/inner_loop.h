// One vectorised pass over a range of the innermost dimension.
//
// There is a single loop body, for whole blocks of lanes() elements. The rest of a range goes through the same body:
// its streams are redirected to small buffers in the frame, filled before and emptied after, so that a tail has the
// same bits as the rest at no cost in code size. Streams with a run-time stride are read and written lane by lane.
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
  bool padded = false;            // may be touched up to lanes() elements past the end (scratch rows)
};

class InnerLoop {
 public:
  InnerLoop(Frame& frame, int width, int parts) : frame_(frame), width_(width), parts_(parts) {}

  int width() const { return width_; }
  int parts() const { return parts_; }
  int lanes() const { return width_ * parts_; }

  int add_input(const Stream& stream) { return add(stream, false); }
  int add_output(const Stream& stream) { return add(stream, true); }

  // Values that the body carries along (accumulators): of a tail, only the lanes in range keep what the body did.
  // Each is `parts` consecutive vectors of `element` type; reached through the function, given the position.
  using Address = std::function<llvm::Value*(llvm::Value* position, int part)>;
  void add_carried(llvm::Type* element, Address address) { carried_.push_back({element, std::move(address), {}}); }

  // Emits the pass over [begin, end). The body is called once, with the position of the block's first element; it may
  // call load() and store(). All of its loads must come before its first store.
  void emit(llvm::Value* begin, llvm::Value* end, FunctionRef<void(llvm::Value* position)> body);

  // Within the body. Bool is i1, as everywhere in registers.
  llvm::Value* load(int stream, int part);
  void store(int stream, int part, llvm::Value* value);

 private:
  struct State {
    Stream stream;
    bool output;
    llvm::AllocaInst* base = nullptr;    // address of the body's position 0, or of its current block for a stride
    llvm::AllocaInst* stride = nullptr;  // current stride: that of the stream, or of the buffer
    llvm::AllocaInst* buffer = nullptr;
  };
  struct Carried {
    llvm::Type* element;
    Address address;
    std::vector<llvm::Value*> saved;
  };
  int add(const Stream& stream, bool output);
  llvm::Type* memory_type(const State& state) {
    return Lanes::memory_type(frame_.builder().getContext(), state.stream.dtype);
  }
  int64_t size(const State& state) const { return static_cast<int64_t>(dtype_size(state.stream.dtype)); }
  llvm::Value* address(const State& state, int part);
  void prepare();
  void point_at_streams(llvm::Value* position);
  void fill_buffers(llvm::Value* position, llvm::Value* count);
  void empty_buffers(llvm::Value* position, llvm::Value* count);
  void copy(const State& state, llvm::Value* position, llvm::Value* count, bool to_buffer);
  void save_carried(llvm::Value* position);
  void blend_carried(llvm::Value* position, llvm::Value* count);

  Frame& frame_;
  int width_, parts_;
  std::vector<State> states_;
  std::vector<Carried> carried_;
  llvm::AllocaInst* position_ = nullptr;
  llvm::Value* body_position_ = nullptr;
};

}  // namespace neuron::codegen
