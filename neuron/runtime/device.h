// The device interface, in the shape of the Neuron runtime's C API: life cycle, cores, tensors, programs, status codes.
// Every driver (drivers/<name>/) implements it and passes the one conformance suite
// (tests/core/runtime_conformance_test.cpp).
//
// Callers: the allocator, the eager layer and the tools, from any thread; calls on different tensors may overlap,
// executions on one core are serialised by the driver. Handles are owned by the caller. A call with a bad argument
// returns a status and has no effect; nothing throws but what is documented to. Questions about cores and versions
// initialise nothing, start no thread and allocate no device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace neuron::runtime {

enum class Status : int {
#define STATUS(id, code, name) id = code,
#include "neuron/runtime/status.def"
#undef STATUS
};
const char* status_name(Status status);
// Throws Error (OutOfMemory for Resource, otherwise Runtime) with name and code of the status unless it is Success.
void check_status(Status status, const std::string& what);

struct Version {
  uint64_t major_number = 0, minor_number = 0, patch = 0, maintenance = 0;
  std::string detail;
};

struct InstanceInfo {
  uint32_t family = 0, size = 0;  // the runtime's enumerations: TRN2 is 5, 3XL is 8
  std::string name;               // for example trn2.3xlarge
  std::string architecture;       // for example trn2
};

struct MemoryUse {
  size_t used = 0, limit = 0;  // bytes of one logical core
};

enum class Placement : uint8_t { Device = 0, Host = 1 };

struct Tensor;   // a piece of device memory, or a slice of one
struct Program;  // something loaded that can be executed

struct ProgramTensor {
  std::string name;
  size_t bytes = 0;
};

// What is loaded. The host executes `code`; drivers of real devices load `binary`.
struct ProgramImage {
  std::string name;
  std::span<const std::byte> binary;
  std::function<Status(std::span<void* const> inputs, std::span<void* const> outputs)> code;
  std::vector<ProgramTensor> inputs, outputs;
};

// Tensors by name, for one execution. Does not own them.
class TensorSet {
 public:
  void add(std::string name, Tensor* tensor) { tensors_.emplace_back(std::move(name), tensor); }
  Tensor* find(const std::string& name) const;  // null when absent
  size_t size() const { return tensors_.size(); }

 private:
  std::vector<std::pair<std::string, Tensor*>> tensors_;
};

class Driver {
 public:
  virtual ~Driver() = default;

  virtual const char* name() const = 0;
  // False for a driver that accepts work without doing it: results are whatever memory holds.
  virtual bool computes() const = 0;

  // Questions, at any time.
  virtual Version version() const = 0;
  virtual InstanceInfo instance_info() const = 0;
  virtual int total_core_count() const = 0;    // logical cores of the machine
  virtual int visible_core_count() const = 0;  // those of this process, numbered from 0

  // Once per process. Before init() calls below give Uninitialized, after close() Closed. close() releases everything.
  virtual Status init() = 0;
  virtual void close() = 0;

  // Memory. Sizes and offsets are bytes; a range outside the tensor is Invalid; no memory left is Resource.
  virtual Status tensor_allocate(Placement placement, int core, size_t size, const std::string& name,
                                 Tensor** tensor) = 0;
  // Wraps memory of the caller, who keeps owning it.
  virtual Status tensor_attach(void* buffer, size_t size, const std::string& name, Tensor** tensor) = 0;
  // Shares the memory of `source`, which may be freed before the slice.
  virtual Status tensor_slice(Tensor* source, size_t offset, size_t size, const std::string& name, Tensor** tensor) = 0;
  virtual Status tensor_free(Tensor* tensor) = 0;
  virtual Status tensor_write(Tensor* tensor, const void* buffer, size_t offset, size_t size) = 0;
  virtual Status tensor_read(const Tensor* tensor, void* buffer, size_t offset, size_t size) = 0;
  // Both tensors must be on one core.
  virtual Status tensor_copy(const Tensor* source, size_t source_offset, Tensor* target, size_t target_offset,
                             size_t size) = 0;
  virtual Status tensor_fill(Tensor* tensor, size_t offset, uint8_t value, size_t size) = 0;
  virtual size_t tensor_size(const Tensor* tensor) const = 0;    // 0 for a bad handle
  virtual void* tensor_address(const Tensor* tensor) const = 0;  // null for a bad handle
  virtual Status memory_use(int core, MemoryUse* use) const = 0;

  // Programs. Executing waits until the program is done. A set that lacks a tensor or has one of another size is
  // ExecutionBadInput.
  virtual Status load(const ProgramImage& image, int core, Program** program) = 0;
  virtual Status unload(Program* program) = 0;
  virtual Status execute(Program* program, const TensorSet& inputs, const TensorSet& outputs) = 0;
};

// The driver TORCH_NEURONX_DEVICE names, not necessarily initialised: for questions. Throws Error(Value) on another
// name.
Driver& driver();
// The same, initialised: reads and checks the environment and reports notices on the first call of the process. Throws
// Error(Runtime) where the device cannot be used (a forked child, a processor without AVX2).
Driver& device();

// Why the device cannot be used on this machine; empty when it can.
std::string unavailable_reason();
// Visible logical cores; 0 when the device is not available. Only a bad environment throws (Error(Value)).
int core_count();

}  // namespace neuron::runtime
