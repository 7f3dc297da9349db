// The C interface for foreign kernels over the recorder: a foreign command is a callback that says what it touches.
#include "neuron/foreign.h"

#include <atomic>
#include <string>

#include "neuron/base/error.h"
#include "neuron/base/thread_pool.h"
#include "neuron/eager/command_graph.h"
#include "neuron/eager/foreign.h"
#include "neuron/eager/late_error.h"
#include "neuron/eager/stream.h"
#include "neuron/runtime/allocator.h"

namespace neuron::eager {
namespace {

std::atomic<const ForeignCaller*> foreign_caller{nullptr};
thread_local std::string error_message;

neuron_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Index:
      return NEURON_INDEX_ERROR;
    case ErrorKind::Type:
      return NEURON_TYPE_ERROR;
    case ErrorKind::Value:
      return NEURON_VALUE_ERROR;
    case ErrorKind::NotImplemented:
      return NEURON_NOT_IMPLEMENTED;
    case ErrorKind::OutOfMemory:
      return NEURON_OUT_OF_MEMORY;
    case ErrorKind::Internal:
      return NEURON_INTERNAL_ERROR;
    case ErrorKind::Runtime:
      break;
  }
  return NEURON_RUNTIME_ERROR;
}

ErrorKind kind_of(neuron_status status) {
  switch (status) {
    case NEURON_INDEX_ERROR:
      return ErrorKind::Index;
    case NEURON_TYPE_ERROR:
      return ErrorKind::Type;
    case NEURON_VALUE_ERROR:
      return ErrorKind::Value;
    case NEURON_NOT_IMPLEMENTED:
      return ErrorKind::NotImplemented;
    case NEURON_OUT_OF_MEMORY:
      return ErrorKind::OutOfMemory;
    default:
      return ErrorKind::Runtime;
  }
}

// No exception crosses the interface.
template <typename F>
neuron_status guarded(F&& body) {
  error_message.clear();
  try {
    body();
    return NEURON_OK;
  } catch (...) {
    const LateError error = current_error();
    error_message = error.message;
    return status_of(error.kind);
  }
}

Stream& stream_of(neuron_stream* stream) {
  if (stream == nullptr) fail(ErrorKind::Value, "the stream is null: neuron_current_stream() gives one");
  return *reinterpret_cast<Stream*>(stream);
}

// The context of a command, released with the last holder: the window that ran, or the graph that was captured.
class Context {
 public:
  explicit Context(const neuron_command& command)
      : name_(command.name), run_(command.run), release_(command.release), context_(command.context) {}
  ~Context() {
    if (release_ != nullptr) release_(context_);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void run(int threads) const {
    error_message.clear();
    const neuron_status status = run_(context_, threads);
    if (status == NEURON_OK) return;
    throw Error(kind_of(status), error_message.empty()
                                     ? fmt::format("{} failed with status {}", name_, static_cast<int>(status))
                                     : error_message);
  }

 private:
  const char* name_;
  neuron_function run_;
  void (*release_)(void*);
  void* context_;
};

std::vector<MemoryRange> look_up(const neuron_command& command, Stream& stream) {
  std::vector<MemoryRange> ranges;
  for (size_t i = 0; i < command.range_count; ++i) {
    const neuron_range& range = command.ranges[i];
    if (range.access < NEURON_READ || range.access > NEURON_READ_WRITE)
      fail(ErrorKind::Value, "{}: range {} has access {}; allowed are 1 (read), 2 (write) and 3 (both)", command.name,
           i, static_cast<int>(range.access));
    if (range.bytes == 0) continue;
    if (range.address == nullptr)
      fail(ErrorKind::Value, "{}: range {} of {} bytes has no address", command.name, i, range.bytes);
    runtime::Block* block = runtime::find_block(range.address);
    if (block != nullptr) {
      const char* end = static_cast<char*>(block->address) + block->size;
      if (static_cast<char*>(range.address) + range.bytes > end)
        fail(ErrorKind::Value, "{}: range {} of {} bytes at {} reaches {} bytes beyond its allocation of {} bytes",
             command.name, i, range.bytes, range.address, static_cast<char*>(range.address) + range.bytes - end,
             block->size);
      if (block->core != stream.core())
        fail(ErrorKind::Value, "{}: range {} is memory of device {}, the stream belongs to device {}", command.name, i,
             block->core, stream.core());
      // Its owner may free it in the order of another stream.
      if (block->stream != stream.id()) runtime::record_stream(block, stream.id());
    }
    char* low = static_cast<char*>(range.address);
    ranges.push_back(
        {block, low, low + range.bytes, (range.access & NEURON_READ) != 0, (range.access & NEURON_WRITE) != 0});
  }
  return ranges;
}

int caller_threads() {
  const ForeignCaller* caller = foreign_caller.load();
  return caller != nullptr ? caller->threads() : hardware_threads();
}

void record_foreign(Stream& asked, const neuron_command& command, std::shared_ptr<Context> context) {
  if (!may_record()) return;
  Stream& stream = recording_stream(asked);
  const std::vector<MemoryRange> ranges = look_up(command, stream);
  const int threads = command.threads > 0 ? command.threads : caller_threads();
  record_callback(
      stream, [context = std::move(context), threads] { context->run(threads); }, ranges, command.name, threads);
}

}  // namespace

void set_foreign_caller(const ForeignCaller* caller) { foreign_caller = caller; }

}  // namespace neuron::eager

// --- the interface

using namespace neuron::eager;

int neuron_foreign_version(void) { return NEURON_FOREIGN_VERSION; }

const char* neuron_error_message(void) { return error_message.c_str(); }

void neuron_set_error(const char* message) { error_message = message == nullptr ? "" : message; }

neuron_status neuron_current_stream(int device, neuron_stream** stream) {
  return guarded([&] {
    const ForeignCaller* caller = foreign_caller.load();
    if (stream == nullptr)
      neuron::fail(neuron::ErrorKind::Value, "there is no place for the stream: the pointer is null");
    if (device < 0) device = caller != nullptr ? caller->current_core() : 0;
    Stream& current = caller != nullptr ? caller->current_stream(device) : default_stream(device);
    *stream = reinterpret_cast<neuron_stream*>(&current);
  });
}

neuron_status neuron_flush(neuron_stream* stream) {
  return guarded([&] { flush(recording_stream(stream_of(stream)), FlushReason::CustomKernel); });
}

neuron_status neuron_synchronize(neuron_stream* stream) {
  return guarded([&] { synchronize(recording_stream(stream_of(stream)), FlushReason::Synchronize); });
}

neuron_status neuron_enqueue(neuron_stream* stream, const neuron_command* command) {
  return guarded([&] {
    if (command == nullptr) neuron::fail(neuron::ErrorKind::Value, "the command is null");
    if (command->struct_bytes != sizeof(neuron_command))
      neuron::fail(neuron::ErrorKind::Value,
                   "the command has {} bytes, expected {}: set struct_bytes to sizeof(neuron_command)",
                   command->struct_bytes, sizeof(neuron_command));
    auto context = std::make_shared<Context>(*command);
    if (command->name == nullptr || command->run == nullptr)
      neuron::fail(neuron::ErrorKind::Value, "the command has no {}", command->name == nullptr ? "name" : "function");
    if (command->ranges == nullptr && command->range_count != 0)
      neuron::fail(neuron::ErrorKind::Value, "{}: {} ranges, but the pointer to them is null", command->name,
                   command->range_count);
    record_foreign(stream_of(stream), *command, std::move(context));
  });
}

neuron_status neuron_get_pointer_info(const void* address, neuron_pointer_info* info) {
  return guarded([&] {
    if (info == nullptr || info->struct_bytes < sizeof(neuron_pointer_info))
      neuron::fail(neuron::ErrorKind::Value, "set struct_bytes of the result to sizeof(neuron_pointer_info), {}",
                   sizeof(neuron_pointer_info));
    info->device = -1;
    info->base = nullptr;
    info->bytes = 0;
    if (const neuron::runtime::Block* block = neuron::runtime::find_block(address)) {
      info->device = block->core;
      info->base = block->address;
      info->bytes = block->size;
    }
  });
}

int neuron_threads(void) { return caller_threads(); }

neuron_status neuron_parallel_for(int threads, int64_t count, int64_t grain,
                                  void (*body)(void* context, int64_t begin, int64_t end), void* context) {
  return guarded([&] {
    if (body == nullptr || grain < 1)
      neuron::fail(neuron::ErrorKind::Value, "neuron_parallel_for needs a body, and a grain of at least 1, got {}",
                   grain);
    neuron::parallel_for(threads, count, grain, [&](int64_t begin, int64_t end) { body(context, begin, end); });
  });
}

neuron_status neuron_note_write(void* storage) {
  return guarded([&] {
    const ForeignCaller* caller = foreign_caller.load();
    if (caller != nullptr && storage != nullptr) caller->note_write(storage);
  });
}
