#include "torch_neuronx/csrc/aten/known_numbers.h"

#include <array>

#include "neuron/base/float_formats.h"
#include "neuron/eager/command_graph.h"
#include "neuron/runtime/block.h"

namespace neuron::aten {
namespace {

struct Known {
  const runtime::Block* block = nullptr;
  uint64_t generation = 0, writes = 0;
  const void* data = nullptr;
  DType dtype = DType::Float32;
  const eager::Stream* stream = nullptr;
  Scalar value;
};

// The last few of this thread.
thread_local std::array<Known, 4> known;
thread_local size_t next = 0;

uint64_t writes_of(const runtime::Block& block) { return block.writes.load(std::memory_order_relaxed); }
uint64_t generation_of(const runtime::Block& block) { return block.generation.load(std::memory_order_relaxed); }

}  // namespace

void remember_number(const eager::TensorArgument& target, eager::Stream& stream, Scalar value) {
  if (eager::capturing_graph(stream) != nullptr || target.block == nullptr || !is_float(target.dtype)) return;
  alignas(16) char held[16];
  store_from_double(target.dtype, value.as_double(), held);
  known[next++ % known.size()] = {target.block,
                                  generation_of(*target.block),
                                  writes_of(*target.block),
                                  target.data,
                                  target.dtype,
                                  &stream,
                                  Scalar::of(load_as_double(target.dtype, held))};
}

std::optional<Scalar> known_number(const eager::TensorArgument& tensor, eager::Stream& stream) {
  // What a graph reads may have another value when it is replayed.
  if (eager::capturing_graph(stream) != nullptr) return std::nullopt;
  for (const Known& each : known) {
    if (each.data != tensor.data || each.block != tensor.block || each.block == nullptr) continue;
    const bool unchanged = each.dtype == tensor.dtype && each.stream == &stream &&
                           each.generation == generation_of(*tensor.block) && each.writes == writes_of(*tensor.block) &&
                           tensor.block->exported_generation.load(std::memory_order_relaxed) != each.generation;
    if (unchanged) return each.value;
  }
  return std::nullopt;
}

}  // namespace neuron::aten
