// Records one region operator over a list of tensors as one command, an item a tensor: what the foreach and fused
// optimizer operators are made of. The executor treats the items as commands recorded one after the other.
//
// An item is a run of elements. Each of its operands is dense over the run in the same order, one element repeated, or
// a number; a Reduce operator's outputs are one element each.
//
//   ListRecording list(stream, op, common, false, outputs, inputs, attributes, tensors.size(), threads);
//   for (…) {
//     list.begin_item(count);
//     list.add_output(…);  // as many as announced, then the inputs
//     list.add_input(…);
//   }
//   list.finish();
//
// The stream is locked from the constructor to finish(): nothing in between may record, allocate or free device memory,
// or take the GIL. Without finish() nothing is recorded.
#pragma once

#include <mutex>

#include "neuron/eager/command.h"
#include "neuron/eager/recorder.h"

namespace neuron::eager {

// A run of elements in memory; `repeated`: the first one stands for all.
struct FlatArgument {
  void* data = nullptr;
  runtime::Block* block = nullptr;  // null: foreign memory, to be kept until the command ran
  DType dtype = DType::Float32;
  bool repeated = false;
};

class ListRecording {
 public:
  ListRecording(Stream& stream, const lowering::Operator& op, DType common, bool reduces, int outputs, int inputs,
                std::span<const int64_t> attributes, size_t most_items, int threads);
  ~ListRecording();
  ListRecording(const ListRecording&) = delete;
  ListRecording& operator=(const ListRecording&) = delete;

  void begin_item(int64_t count);  // > 0
  void add_output(const FlatArgument& output) {
    if (command_ == nullptr) return;
    fill(output, output.repeated || reduces_);
    if (output.block != nullptr) output.block->writes.fetch_add(1, std::memory_order_relaxed);
  }
  void add_input(const FlatArgument& input) {
    if (command_ != nullptr) fill(input, input.repeated);
  }
  void add_input(const Scalar& number) {
    if (command_ == nullptr) return;
    Operand& operand = *next_++;
    operand = Operand{};
    operand.kind = codegen::OperandKind::Scalar;
    operand.dtype = number.dtype;
    operand.rank = 1;
    operand.scalar = number.bits;
    operand.sizes = size_;
  }
  // Foreign memory of an operand.
  void keep(std::shared_ptr<void> owner);
  void finish();

 private:
  static constexpr int64_t kDense[] = {1}, kOneElement[] = {0};

  // Inline: a step of an optimizer adds thousands of operands.
  void fill(const FlatArgument& argument, bool one) {
    Operand& operand = *next_++;
    operand.set_memory(argument.block, argument.data, argument.dtype);
    window_->touch(argument.block);
    operand.rank = 1;
    operand.sizes = size_;
    operand.strides = one ? kOneElement : kDense;
    operand.low = operand.data;
    operand.high = operand.data + (one ? 1 : *size_) * static_cast<int64_t>(dtype_size(argument.dtype));
  }

  Stream& stream_;
  std::unique_lock<std::mutex> lock_;
  Window* window_ = nullptr;    // of the stream while it is locked
  Command* command_ = nullptr;  // null: nothing is recorded any more
  bool reduces_;
  Operand* next_ = nullptr;
  const int64_t* size_ = nullptr;
  uint32_t items_ = 0;
};

}  // namespace neuron::eager
