// The recording interface: what the torch layer calls for every operation. A command names memory by address, block and
// generation, with sizes and strides fixed at the call; nothing of the caller's is kept. Shapes and dtypes have been
// checked by the caller. Cheap: no allocation in the steady state, one uncontended lock.
//
// Threads: any; the order of commands is the order of these calls per stream. None of them takes the GIL.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "neuron/base/dtype.h"
#include "neuron/base/scalar.h"
#include "neuron/codegen/region.h"
#include "neuron/kernels/kernel.h"
#include "neuron/lowering/lowering.h"
#include "neuron/runtime/block.h"

namespace neuron::eager {

// A tensor as the caller has it. The spans are read during the call only.
struct TensorArgument {
  void* data = nullptr;             // element [0, …, 0] (storage offset applied)
  runtime::Block* block = nullptr;  // null: foreign memory, `owner` keeps it until the command ran
  DType dtype = DType::Float32;
  std::span<const int64_t> sizes;
  std::span<const int64_t> strides;  // elements
  std::shared_ptr<void> owner;       // only for foreign memory
};

// One input of a region command: a tensor (broadcast from the right to the iteration space), a number, or an index
// operand whose value is base + sum(position * stride) over the iteration space.
struct RegionInput {
  codegen::OperandKind kind = codegen::OperandKind::Tensor;
  TensorArgument tensor;                   // Tensor
  Scalar scalar;                           // Scalar; Index: base
  std::span<const int64_t> index_strides;  // Index: one per iteration dimension
};

enum class FlushReason : uint8_t {
  HostRead,
  DataDependentShape,
  EventQuery,
  Synchronize,
  Collective,
  RawPointer,
  CustomKernel,
  WindowFull,
  MemoryPressure,
  Exit,
  Explicit,
  Mode,
};
inline constexpr int kFlushReasonCount = static_cast<int>(FlushReason::Mode) + 1;
const char* flush_reason_name(FlushReason reason);

class Stream;

// Streams. Id 0 … are dense per process; each core has one default stream.
Stream& default_stream(int core);
Stream& stream_by_id(uint64_t id);
Stream& create_stream(int core, int priority);
uint64_t stream_id(const Stream& stream);
int stream_core(const Stream& stream);

// Records output[…] = op(inputs…) over the iteration space `sizes`. `reduced`: bit d set when dimension d is combined;
// the outputs of Reduce operators then have either size 1 there or lack the dimension. The reduced dimensions must be
// adjacent. An output may be an input (in-place).
void record_region(Stream& stream, const lowering::Operator& op, DType common, std::span<const int64_t> sizes,
                   uint64_t reduced, std::span<const TensorArgument> outputs, std::span<const RegionInput> inputs,
                   std::span<const int64_t> attributes, int threads);

// Records a library kernel call. Outputs are written completely unless `reads_outputs` (accumulating or partial
// writes).
void record_kernel(Stream& stream, const kernels::Kernel& kernel, std::span<const TensorArgument> outputs,
                   std::span<const TensorArgument> inputs, std::span<const int64_t> attributes,
                   std::span<const Scalar> scalars, bool reads_outputs, int threads);

// Memory that a callback touches. `block` is null for memory that is not of the device.
struct MemoryRange {
  runtime::Block* block = nullptr;
  char* low = nullptr;
  char* high = nullptr;  // one past the last byte
  bool read = false, written = false;
};

// Runs `body` on the executor in stream order (host callback; may throw Error): in hazard order where it says what it
// touches, and after everything recorded before where `ranges` is empty. `label`, its name in reports, must live as
// long as the process.
void record_callback(Stream& stream, std::function<void()> body, std::span<const MemoryRange> ranges = {},
                     const char* label = nullptr, int threads = 1);

// False after shutdown: nothing is recorded any more. Raises in a child forked after its parent used the device.
bool may_record();

// The storage that owns the block was freed. Part of the order: its unread writes may be dropped. Called from deleters.
void record_death(runtime::Block* block);

// Hands everything recorded to the executor; does not wait.
void flush(Stream& stream, FlushReason reason);
// flush, wait, and raise the stream's pending late error (clearing it).
void synchronize(Stream& stream, FlushReason reason);
void synchronize_core(int core, FlushReason reason);
// synchronize() for a read of a block, or of what a tensor touches: also raises when that has no value (poison.h).
void synchronize_for_read(Stream& stream, const runtime::Block* block, FlushReason reason);
void synchronize_for_read(Stream& stream, const TensorArgument& tensor, FlushReason reason);
// True when nothing recorded is unfinished; flushes first.
bool query(Stream& stream);
// False when the stream provably has no unfinished command: lets pointer exports skip the flush.
bool has_pending_work(const Stream& stream);
// The block's memory is visible to foreign code from now on: its writes are never dropped.
void export_block(runtime::Block* block);

// Events. Times are taken when the event is reached in the stream.
class Event;
std::shared_ptr<Event> create_event(bool timing);
void record_event(Stream& stream, const std::shared_ptr<Event>& event);
void wait_event(Stream& stream, const std::shared_ptr<Event>& event);  // the stream waits, not the host
bool query_event(Event& event);
void synchronize_event(Event& event);
double elapsed_milliseconds(Event& start, Event& end);  // throws Error(Runtime) when one is unrecorded or has no timing

// Modes (design.md, section 4). Changing the mode flushes all streams.
enum class Mode : uint8_t { Adaptive, Immediate, Blocking };
Mode mode();
void set_mode(Mode mode);
bool strict_mode();
void set_strict_mode(bool strict);
// Compile fused regions where they are met instead of in the background (tests, fuzzers).
void set_synchronous_compile(bool on);
// Fusion off (deterministic mode): one region per command, same bits.
void set_fusion(bool on);
// Evaluate regions with the IR interpreter instead of generated code (tests).
void set_interpret(bool on);

// Where the caller is in its own program, asked for by each recorded command and named in its late error. The provider
// is called without a lock held, on the recording thread; the text ("file.py:12 in f") must live as long as the
// process, null when there is none to tell. A null provider, the default, costs one load.
using LocationProvider = const char* (*)();
void set_location_provider(LocationProvider provider);

struct Statistics {
  uint64_t flushes[kFlushReasonCount] = {};
  uint64_t commands = 0, region_commands = 0, fused_commands = 0, kernel_commands = 0, dropped_commands = 0;
  uint64_t regions = 0, regions_run = 0, plan_hits = 0, compiled_kernels = 0, disk_hits = 0;
  double compile_seconds = 0;
};
Statistics statistics();
void reset_statistics();

// Blocks until all background compiles are done.
void wait_for_compiles();
// Flushes, waits and stops threads; afterwards every call is a no-op. For interpreter exit.
void shutdown();

}  // namespace neuron::eager
