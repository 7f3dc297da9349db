// A recorded command and the window that holds commands until they are planned. Everything a command names is copied
// into the window's arena when it is recorded, so it cannot be confused by what happens to the tensors afterwards.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "neuron/eager/recorder.h"

namespace neuron::eager {

// Bump allocation for trivially destructible data; reset() keeps the chunks.
class Arena {
 public:
  template <typename T>
  T* allocate(size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 16);
    return static_cast<T*>(allocate_bytes(count * sizeof(T)));
  }
  template <typename T>
  T* copy(std::span<const T> values) {
    T* target = allocate<T>(values.size());
    if (!values.empty()) std::memcpy(static_cast<void*>(target), values.data(), values.size_bytes());
    return target;
  }
  void reset() {
    chunk_ = 0;
    used_ = 0;
  }

 private:
  static constexpr size_t kChunk = 64 << 10;
  void* allocate_bytes(size_t bytes) {
    bytes = (bytes + 15) & ~size_t{15};
    if (chunks_.empty() || used_ + bytes > chunks_[chunk_].size) next_chunk(bytes);
    void* result = chunks_[chunk_].data.get() + used_;
    used_ += bytes;
    return result;
  }
  void next_chunk(size_t bytes);

  struct Chunk {
    std::unique_ptr<std::byte[]> data;
    size_t size;
  };
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;
  size_t used_ = 0;
};

// One operand. Region commands: sizes are the command's; strides span the iteration space.
struct Operand {
  codegen::OperandKind kind;
  DType dtype;
  uint8_t rank;
  runtime::Block* block;  // null: foreign memory, a scalar or an index
  uint64_t generation;
  char* data;
  uint64_t scalar;  // bits of a Scalar, base of an Index
  const int64_t* sizes;
  const int64_t* strides;
  // Bytes touched: [low, high). Empty for scalars and indices.
  char* low;
  char* high;

  // Names memory; rank, sizes, strides and the range are still to be set.
  void set_memory(runtime::Block* of, void* at, DType type) {
    kind = codegen::OperandKind::Tensor;
    dtype = type;
    block = of;
    generation = of ? of->generation.load(std::memory_order_relaxed) : 0;
    data = static_cast<char*>(at);
    scalar = 0;
  }
  // From the sizes and strides. `dropped`: dimensions the operand does not have; a sum over nothing still writes its
  // result.
  void set_range(uint64_t dropped = 0) {
    int64_t first = 0, last = 0;
    for (int d = 0; d < rank; ++d) {
      if ((dropped >> d & 1) != 0) continue;
      if (sizes[d] == 0) {
        low = high = data;
        return;
      }
      const int64_t reach = (sizes[d] - 1) * strides[d];
      (reach < 0 ? first : last) += reach;
    }
    const auto size = static_cast<int64_t>(dtype_size(dtype));
    low = data + first * size;
    high = data + (last + 1) * size;
  }
  // Whether every byte of the range belongs to an element.
  bool is_dense() const {
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= strides[d] == 0 ? 1 : sizes[d];
    return high - low == count * static_cast<int64_t>(dtype_size(dtype));
  }
};

enum class CommandKind : uint8_t { Region, Kernel, Callback };

struct Command {
  CommandKind kind;
  DType common;
  uint8_t rank;
  uint8_t output_count;
  uint16_t input_count;
  uint8_t attribute_count;
  uint8_t scalar_count;
  bool reads_outputs;
  int32_t threads;
  // A list command: one operator on `items` groups of operands that follow each other in `operands`. Counts and
  // attributes are the same for all; `rank` and `sizes` are the first one's, the others' are those of their operands.
  uint32_t items = 1;
  // Of an item that stands as a command of its own (expansion.h): the command before it on the same item of a list, of
  // as many elements; kNoChain when there is none, kNotInList for other commands.
  static constexpr int32_t kNoChain = -1, kNotInList = -2;
  int32_t chain = kNotInList;
  uint64_t reduced;
  uint64_t sequence;
  const lowering::Operator* op;
  const kernels::Kernel* kernel;
  const int64_t* sizes;
  Operand* operands;  // outputs, then inputs
  const int64_t* attributes;
  const Scalar* scalars;
  const char* location;  // of the call in the caller's program, or null
  int32_t callback;      // index into Window::callbacks; without operands it is a barrier
  const char* label;     // a callback's name, or null

  // Of the first item.
  std::span<Operand> outputs() const { return {operands, output_count}; }
  std::span<Operand> inputs() const { return {operands + output_count, input_count}; }
  uint32_t operand_count() const { return uint32_t{output_count} + input_count; }
  std::span<Operand> all_operands() const { return {operands, size_t{items} * operand_count()}; }
  // Of a place among all operands.
  bool is_output(size_t place) const { return place % operand_count() < output_count; }
  // One item as a command of its own.
  Command item(uint32_t index) const {
    if (items == 1) return *this;
    Command one = *this;
    one.items = 1;
    one.operands += size_t{index} * operand_count();
    one.sizes = one.operands->sizes;
    one.rank = one.operands->rank;
    return one;
  }
  std::string_view name() const { return op ? op->name : kernel ? kernel->name : label ? label : "callback"; }
};

// A storage that died, and how many commands had been recorded before.
struct Death {
  uint32_t position;
  runtime::Block* block;
  uint64_t generation;
};

struct Window {
  std::vector<Command> commands;
  std::vector<Death> deaths;
  std::vector<std::function<void()>> callbacks;
  std::vector<std::shared_ptr<void>> owners;  // foreign memory, held until the window has run
  Arena arena;
  size_t further_items = 0;  // of list commands, beyond the first of each
  uint64_t stream = 0;       // that records it
  // An operand's memory was allocated for another stream, whose window has its death.
  bool other_streams = false;

  void touch(const runtime::Block* block) {
    if (block != nullptr && block->stream != stream) other_streams = true;
  }
  size_t length() const { return commands.size() + further_items; }
  bool empty() const { return commands.empty() && deaths.empty(); }
  void reset() {
    commands.clear();
    deaths.clear();
    callbacks.clear();
    owners.clear();
    further_items = 0;
    other_streams = false;
    arena.reset();
  }
};

}  // namespace neuron::eager
