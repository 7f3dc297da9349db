#include "neuron/eager/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "neuron/base/error.h"
#include "neuron/eager/kernel_store.h"
#include "neuron/eager/recording.h"
#include "neuron/eager/settings.h"
#include "neuron/eager/stream.h"
#include "neuron/runtime/process.h"
#include "neuron/runtime/queue.h"

namespace neuron::eager {

namespace {

void fill_memory(Window& window, const TensorArgument& argument, Operand& operand) {
  operand.set_memory(argument.block, argument.data, argument.dtype);
  window.touch(argument.block);
  if (argument.owner) window.owners.push_back(argument.owner);
}

void note_write(const TensorArgument& argument) {
  if (argument.block) argument.block->writes.fetch_add(1, std::memory_order_relaxed);
}

// Strides over the iteration space for a tensor broadcast from the right.
const int64_t* broadcast_strides(Window& window, const TensorArgument& argument, std::span<const int64_t> space) {
  int64_t* strides = window.arena.allocate<int64_t>(space.size());
  size_t missing = space.size() - argument.sizes.size();
  for (size_t d = 0; d < space.size(); ++d) {
    bool spread = d < missing || (argument.sizes[d - missing] == 1 && space[d] != 1);
    strides[d] = spread ? 0 : argument.strides[d - missing];
  }
  return strides;
}

// Strides over the iteration space for an output that lacks the reduced dimensions or has size 1 there.
const int64_t* reduced_strides(Window& window, const TensorArgument& argument, std::span<const int64_t> space,
                               uint64_t reduced) {
  int64_t* strides = window.arena.allocate<int64_t>(space.size());
  bool kept_as_one = argument.sizes.size() == space.size();
  size_t next = 0;
  for (size_t d = 0; d < space.size(); ++d) {
    bool is_reduced = (reduced >> d) & 1;
    strides[d] = is_reduced ? 0 : argument.strides[kept_as_one ? d : next];
    next += is_reduced ? 0 : 1;
  }
  return strides;
}

// An output of a reduction either keeps the reduced dimensions or lacks all of them; nothing else has strides to give.
void require_reduced_ranks(std::span<const TensorArgument> outputs, size_t rank, uint64_t reduced) {
  const size_t kept = rank - static_cast<size_t>(std::popcount(reduced));
  for (const TensorArgument& output : outputs) {
    const size_t given = output.sizes.size();
    if (given == rank || given == kept) continue;
    throw Error(ErrorKind::Internal,
                fmt::format("a reduction of {} dimensions to {} was given an output of {}", rank, kept, given));
  }
}

}  // namespace

bool may_record() {
  if (runtime::in_forked_child()) [[unlikely]]
    runtime::enter_runtime();
  return !settings().shut_down.load(std::memory_order_relaxed);
}

const char* caller_location() {
  LocationProvider provider = settings().location_provider.load(std::memory_order_relaxed);
  return provider == nullptr ? nullptr : provider();
}

Command& append_command(Stream& stream, CommandKind kind, const char* location) {
  Window& window = stream.window();
  window.stream = stream.id();
  Command& command = window.commands.emplace_back();
  command = Command{};
  command.kind = kind;
  command.sequence = stream.next_sequence();
  command.callback = -1;
  command.location = location;
  command.threads = 1;
  return command;
}

void finish_recording(Stream& stream, uint64_t wait_for) {
  if (wait_for == 0) return;
  stream.queue().wait(wait_for);
  stream.raise_pending();
}

namespace {

void fill_range(Window& window, const MemoryRange& range, Operand& operand) {
  operand = Operand{};
  operand.set_memory(range.block, range.low, DType::UInt8);
  window.touch(range.block);
  operand.rank = 1;
  operand.low = range.low;
  operand.high = range.high;
  const int64_t size[] = {range.high - range.low}, stride[] = {1};
  operand.sizes = window.arena.copy(std::span<const int64_t>(size));
  operand.strides = window.arena.copy(std::span<const int64_t>(stride));
}

}  // namespace

void record_region(Stream& stream, const lowering::Operator& op, DType common, std::span<const int64_t> sizes,
                   uint64_t reduced, std::span<const TensorArgument> outputs, std::span<const RegionInput> inputs,
                   std::span<const int64_t> attributes, int threads) {
  if (!may_record()) return;
  if (reduced != 0) require_reduced_ranks(outputs, sizes.size(), reduced);
  const char* location = caller_location();
  uint64_t wait_for = 0;
  {
    std::lock_guard lock(stream.mutex());
    Window& window = stream.window();
    Command& command = append_command(stream, CommandKind::Region, location);
    command.op = &op;
    command.common = common;
    command.rank = static_cast<uint8_t>(sizes.size());
    command.output_count = static_cast<uint8_t>(outputs.size());
    command.input_count = static_cast<uint16_t>(inputs.size());
    command.attribute_count = static_cast<uint8_t>(attributes.size());
    command.threads = threads;
    command.reduced = reduced;
    command.sizes = window.arena.copy(sizes);
    command.attributes = window.arena.copy(attributes);
    command.operands = window.arena.allocate<Operand>(outputs.size() + inputs.size());
    Operand* operand = command.operands;
    bool drops = reduced != 0 && op.kind == lowering::IterationKind::Reduce;
    for (const TensorArgument& output : outputs) {
      fill_memory(window, output, *operand);
      operand->rank = command.rank;
      operand->sizes = command.sizes;
      // Normalize operators may have reduced outputs too (mean, rstd): told by their shape.
      bool full =
          !drops && output.sizes.size() == sizes.size() && std::equal(sizes.begin(), sizes.end(), output.sizes.begin());
      operand->strides = full || reduced == 0 ? broadcast_strides(window, output, sizes)
                                              : reduced_strides(window, output, sizes, reduced);
      operand->set_range(full ? 0 : reduced);
      note_write(output);
      ++operand;
    }
    for (const RegionInput& input : inputs) {
      *operand = Operand{};
      operand->rank = command.rank;
      operand->sizes = command.sizes;
      if (input.kind == codegen::OperandKind::Tensor) {
        fill_memory(window, input.tensor, *operand);
        operand->strides = broadcast_strides(window, input.tensor, sizes);
        operand->set_range();
      } else {
        operand->kind = input.kind;
        operand->dtype = input.scalar.dtype;
        operand->scalar = input.scalar.bits;
        operand->strides = input.kind == codegen::OperandKind::Index ? window.arena.copy(input.index_strides) : nullptr;
      }
      ++operand;
    }
    counters().region_commands.fetch_add(1, std::memory_order_relaxed);
    wait_for = stream.recorded();
  }
  finish_recording(stream, wait_for);
}

void record_kernel(Stream& stream, const kernels::Kernel& kernel, std::span<const TensorArgument> outputs,
                   std::span<const TensorArgument> inputs, std::span<const int64_t> attributes,
                   std::span<const Scalar> scalars, bool reads_outputs, int threads) {
  if (!may_record()) return;
  const char* location = caller_location();
  uint64_t wait_for = 0;
  {
    std::lock_guard lock(stream.mutex());
    Window& window = stream.window();
    Command& command = append_command(stream, CommandKind::Kernel, location);
    command.kernel = &kernel;
    command.reads_outputs = reads_outputs;
    command.output_count = static_cast<uint8_t>(outputs.size());
    command.input_count = static_cast<uint16_t>(inputs.size());
    command.attribute_count = static_cast<uint8_t>(attributes.size());
    command.scalar_count = static_cast<uint8_t>(scalars.size());
    command.threads = threads;
    command.attributes = window.arena.copy(attributes);
    command.scalars = window.arena.copy(scalars);
    command.operands = window.arena.allocate<Operand>(outputs.size() + inputs.size());
    Operand* operand = command.operands;
    auto add = [&](const TensorArgument& argument) {
      fill_memory(window, argument, *operand);
      operand->rank = static_cast<uint8_t>(argument.sizes.size());
      operand->sizes = window.arena.copy(argument.sizes);
      operand->strides = window.arena.copy(argument.strides);
      operand->set_range();
      ++operand;
    };
    for (const TensorArgument& output : outputs) {
      add(output);
      note_write(output);
    }
    for (const TensorArgument& input : inputs) add(input);
    counters().kernel_commands.fetch_add(1, std::memory_order_relaxed);
    wait_for = stream.recorded();
  }
  finish_recording(stream, wait_for);
}

void record_callback(Stream& stream, std::function<void()> body, std::span<const MemoryRange> ranges, const char* label,
                     int threads) {
  if (!may_record()) return;
  const auto outputs = static_cast<size_t>(std::ranges::count_if(ranges, &MemoryRange::written));
  const auto inputs = static_cast<size_t>(std::ranges::count_if(ranges, &MemoryRange::read));
  if (outputs > UINT8_MAX || inputs > UINT16_MAX)
    fail(ErrorKind::Value, "{}: {} ranges are written and {} read; a command can write {} and read {}",
         label == nullptr ? "callback" : label, outputs, inputs, UINT8_MAX, UINT16_MAX);
  const char* location = caller_location();
  uint64_t wait_for = 0;
  {
    std::lock_guard lock(stream.mutex());
    Window& window = stream.window();
    Command& command = append_command(stream, CommandKind::Callback, location);
    if (label != nullptr) command.label = label;
    command.threads = threads;
    command.output_count = static_cast<uint8_t>(outputs);
    command.input_count = static_cast<uint16_t>(inputs);
    command.callback = static_cast<int32_t>(window.callbacks.size());
    window.callbacks.push_back(std::move(body));
    command.operands = window.arena.allocate<Operand>(outputs + inputs);
    Operand* operand = command.operands;
    for (const MemoryRange& range : ranges) {
      if (!range.written) continue;
      fill_range(window, range, *operand++);
      if (range.block != nullptr) range.block->writes.fetch_add(1, std::memory_order_relaxed);
    }
    for (const MemoryRange& range : ranges) {
      if (range.read) fill_range(window, range, *operand++);
    }
    wait_for = stream.recorded();
  }
  finish_recording(stream, wait_for);
}

void record_death(runtime::Block* block) {
  if (block == nullptr || runtime::in_forked_child() || settings().shut_down.load(std::memory_order_relaxed)) return;
  Stream& stream = stream_by_id(block->stream);
  const uint64_t generation = block->generation.load(std::memory_order_relaxed);
  block->dead_generation.store(generation, std::memory_order_release);
  std::lock_guard lock(stream.mutex());
  Window& window = stream.window();
  if (!window.commands.empty()) {
    window.deaths.push_back({static_cast<uint32_t>(window.commands.size()), block, generation});
    // A program that allocates and frees without recording must not fill the window with deaths.
    constexpr size_t kMostDeaths = 16384;
    if (window.deaths.size() >= kMostDeaths) stream.hand_over(FlushReason::WindowFull);
  }
}

void flush(Stream& stream, FlushReason reason) {
  std::lock_guard lock(stream.mutex());
  stream.hand_over(reason);
}

namespace {

void flush_and_wait(Stream& stream, FlushReason reason) {
  if (!may_record()) return;
  uint64_t sequence;
  {
    std::lock_guard lock(stream.mutex());
    sequence = stream.hand_over(reason, true);
  }
  if (sequence != 0) stream.queue().wait(sequence);
}

}  // namespace

void synchronize(Stream& stream, FlushReason reason) {
  flush_and_wait(stream, reason);
  stream.raise_pending();
}

void synchronize_core(int core, FlushReason reason) {
  for_each_stream([&](Stream& stream) {
    if (stream.core() == core) flush_and_wait(stream, reason);
  });
  for_each_stream([&](Stream& stream) {
    if (stream.core() == core) stream.raise_pending();
  });
}

namespace {

// What a read finds: first what is pending on the stream, then what has no value.
template <typename Read>
void finish_for_read(Stream& stream, const runtime::Block* block, const Read& read, FlushReason reason) {
  flush_and_wait(stream, reason);
  if (block != nullptr && block->stream != stream.id()) flush_and_wait(stream_by_id(block->stream), reason);
  stream.raise_pending();
  if (block == nullptr) return;
  if (const Cause cause = Poison::instance().find(read)) cause->raise();
}

}  // namespace

void synchronize_for_read(Stream& stream, const runtime::Block* block, FlushReason reason) {
  if (block == nullptr) return synchronize(stream, reason);
  finish_for_read(stream, block, *block, reason);
}

void synchronize_for_read(Stream& stream, const TensorArgument& tensor, FlushReason reason) {
  finish_for_read(stream, tensor.block, tensor, reason);
}

bool query(Stream& stream) {
  flush(stream, FlushReason::EventQuery);
  return stream.queue().completed() == stream.queue().submitted();
}

bool has_pending_work(const Stream& stream) { return stream.has_pending(); }

void export_block(runtime::Block* block) {
  if (block != nullptr)
    block->exported_generation.store(block->generation.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void wait_for_compiles() { KernelStore::instance().wait_for_background(); }

void shutdown() {
  if (runtime::in_forked_child()) return;
  for_each_stream([](Stream& stream) { flush_and_wait(stream, FlushReason::Exit); });
  settings().shut_down = true;
  KernelStore::instance().shutdown();
  runtime::shutdown_queues();
}

}  // namespace neuron::eager
