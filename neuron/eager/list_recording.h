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
  runtime::Block* block = nullptr;  // null: foreign memory, `owner` keeps it until the command ran
  DType dtype = DType::Float32;
  bool repeated = false;
  std::shared_ptr<void> owner;
};

class ListRecording {
 public:
  ListRecording(Stream& stream, const lowering::Operator& op, DType common, bool reduces, int outputs, int inputs,
                std::span<const int64_t> attributes, size_t most_items, int threads);
  ~ListRecording();
  ListRecording(const ListRecording&) = delete;
  ListRecording& operator=(const ListRecording&) = delete;

  void begin_item(int64_t count);  // > 0
  void add_output(const FlatArgument& output);
  void add_input(const FlatArgument& input);
  void add_input(const Scalar& number);
  void finish();

 private:
  void fill(const FlatArgument& argument, bool reduced);

  Stream& stream_;
  std::unique_lock<std::mutex> lock_;
  Command* command_ = nullptr;  // null: nothing is recorded any more
  Operand* next_ = nullptr;
  const int64_t* size_ = nullptr;
  uint32_t items_ = 0;
};

}  // namespace neuron::eager
