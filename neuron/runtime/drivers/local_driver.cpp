#include "neuron/runtime/drivers/local_driver.h"

#include <utility>

#include "neuron/runtime/drivers/mapped_memory.h"
#include "neuron/runtime/guarded.h"
#include "neuron/runtime/platform.h"

namespace neuron::runtime {

// Memory that one or more tensors share.
struct Pages {
  Pages(void* memory, size_t bytes, std::atomic<size_t>* count) : address(memory), size(bytes), used(count) {}
  Pages(const Pages&) = delete;
  ~Pages() {
    if (used == nullptr) return;
    unguard_memory(address);
    unmap_memory(address, size);
    used->fetch_sub(size);
  }

  void* address;
  size_t size;
  std::atomic<size_t>* used;  // null: memory of the caller
};

struct Tensor {
  std::shared_ptr<Pages> pages;
  std::shared_ptr<void> accounting;
  int core;
  size_t offset, size;
  std::string name;

  char* address() const { return static_cast<char*>(pages->address) + offset; }
};

struct Program {
  ProgramImage image;
  int core;
};

namespace {

constexpr size_t kMaxName = 255;
constexpr int kAnyCore = -1;  // attached memory belongs to no core

}  // namespace

LocalDriver::~LocalDriver() { LocalDriver::close(); }

InstanceInfo LocalDriver::instance_info() const { return presented_instance(); }
int LocalDriver::total_core_count() const { return presented_core_count(); }
int LocalDriver::visible_core_count() const { return presented_visible_cores(); }

Status LocalDriver::init() {
  std::lock_guard lock(mutex_);
  if (state_ == State::Closed) return Status::Closed;
  if (state_ == State::Ready) return Status::Invalid;
  cores_ = visible_core_count();
  core_limit_ = core_limit();
  total_limit_ = total_limit();
  used_ = std::make_shared<std::array<std::atomic<size_t>, kMaxCores>>();
  state_ = State::Ready;
  return Status::Success;
}

void LocalDriver::close() {
  std::unordered_set<const Tensor*> tensors;
  std::unordered_set<Program*> programs;
  {
    std::lock_guard lock(mutex_);
    state_ = State::Closed;
    tensors.swap(tensors_);
    programs.swap(programs_);
  }
  for (const Tensor* tensor : tensors) delete tensor;
  for (Program* program : programs) delete program;
}

Status LocalDriver::ready() const {
  switch (state_.load(std::memory_order_acquire)) {
    case State::Fresh:
      return Status::Uninitialized;
    case State::Ready:
      return Status::Success;
    case State::Closed:
      return Status::Closed;
  }
  return Status::Failure;
}

bool LocalDriver::valid(const Tensor* tensor) const {
  std::lock_guard lock(mutex_);
  return tensors_.contains(tensor);
}

Status LocalDriver::add(Tensor* fresh, Tensor** tensor) {
  std::lock_guard lock(mutex_);
  tensors_.insert(fresh);
  *tensor = fresh;
  return Status::Success;
}

Status LocalDriver::check_range(const Tensor* tensor, size_t offset, size_t size) const {
  if (const Status status = ready(); status != Status::Success) return status;
  if (!valid(tensor)) return Status::InvalidHandle;
  return offset <= tensor->size && size <= tensor->size - offset ? Status::Success : Status::Invalid;
}

Status LocalDriver::tensor_allocate(Placement placement, int core, size_t size, const std::string& name,
                                    Tensor** tensor) {
  if (const Status status = ready(); status != Status::Success) return status;
  if (core < 0 || core >= cores_ || size == 0 || name.size() > kMaxName || tensor == nullptr) return Status::Invalid;
  std::atomic<size_t>& used = (*used_)[core];
  {
    std::lock_guard lock(mutex_);
    size_t total = 0;
    for (int c = 0; c < cores_; ++c) total += (*used_)[c];
    if (used > core_limit_ || size > core_limit_ - used) return Status::Resource;
    if (total > total_limit_ || size > total_limit_ - total) return Status::Resource;
    used += size;
  }
  void* memory = map_memory(size);
  if (memory == nullptr) {
    used -= size;
    return Status::Resource;
  }
  guard_memory(memory, size);
  return add(new Tensor{std::make_shared<Pages>(memory, size, &used), used_, core, 0, size, name}, tensor);
}

Status LocalDriver::tensor_attach(void* buffer, size_t size, const std::string& name, Tensor** tensor) {
  if (const Status status = ready(); status != Status::Success) return status;
  if (buffer == nullptr || size == 0 || name.size() > kMaxName || tensor == nullptr) return Status::Invalid;
  return add(new Tensor{std::make_shared<Pages>(buffer, size, nullptr), nullptr, kAnyCore, 0, size, name}, tensor);
}

Status LocalDriver::tensor_slice(Tensor* source, size_t offset, size_t size, const std::string& name, Tensor** tensor) {
  if (const Status status = check_range(source, offset, size); status != Status::Success) return status;
  if (size == 0 || name.size() > kMaxName || tensor == nullptr) return Status::Invalid;
  return add(new Tensor{source->pages, source->accounting, source->core, source->offset + offset, size, name}, tensor);
}

Status LocalDriver::tensor_free(Tensor* tensor) {
  if (const Status status = ready(); status != Status::Success) return status;
  {
    std::lock_guard lock(mutex_);
    if (tensors_.erase(tensor) == 0) return Status::InvalidHandle;
  }
  delete tensor;
  return Status::Success;
}

Status LocalDriver::tensor_write(Tensor* tensor, const void* buffer, size_t offset, size_t size) {
  if (const Status status = check_range(tensor, offset, size); status != Status::Success) return status;
  DeviceAccess access;
  move_bytes(tensor->address() + offset, buffer, size);
  return Status::Success;
}

Status LocalDriver::tensor_read(const Tensor* tensor, void* buffer, size_t offset, size_t size) {
  if (const Status status = check_range(tensor, offset, size); status != Status::Success) return status;
  DeviceAccess access;
  read_bytes(buffer, tensor->address() + offset, size);
  return Status::Success;
}

Status LocalDriver::tensor_copy(const Tensor* source, size_t source_offset, Tensor* target, size_t target_offset,
                                size_t size) {
  if (const Status status = check_range(source, source_offset, size); status != Status::Success) return status;
  if (const Status status = check_range(target, target_offset, size); status != Status::Success) return status;
  if (source->core != target->core && source->core != kAnyCore && target->core != kAnyCore) return Status::Invalid;
  DeviceAccess access;
  move_bytes(target->address() + target_offset, source->address() + source_offset, size);
  return Status::Success;
}

Status LocalDriver::tensor_fill(Tensor* tensor, size_t offset, uint8_t value, size_t size) {
  if (const Status status = check_range(tensor, offset, size); status != Status::Success) return status;
  DeviceAccess access;
  fill_bytes(tensor->address() + offset, value, size);
  return Status::Success;
}

size_t LocalDriver::tensor_size(const Tensor* tensor) const { return valid(tensor) ? tensor->size : 0; }
void* LocalDriver::tensor_address(const Tensor* tensor) const { return valid(tensor) ? tensor->address() : nullptr; }

Status LocalDriver::memory_use(int core, MemoryUse* use) const {
  if (const Status status = ready(); status != Status::Success) return status;
  if (core < 0 || core >= cores_ || use == nullptr) return Status::Invalid;
  *use = {(*used_)[core].load(), core_limit_};
  return Status::Success;
}

Status LocalDriver::load(const ProgramImage& image, int core, Program** program) {
  if (const Status status = ready(); status != Status::Success) return status;
  if (core < 0 || core >= cores_ || program == nullptr) return Status::Invalid;
  if (const Status status = check_image(image); status != Status::Success) return status;
  auto loaded = std::make_unique<Program>(Program{image, core});
  loaded->image.binary = {};  // the caller's bytes need not outlive the call
  std::lock_guard lock(mutex_);
  programs_.insert(loaded.get());
  *program = loaded.release();
  return Status::Success;
}

Status LocalDriver::unload(Program* program) {
  if (const Status status = ready(); status != Status::Success) return status;
  {
    std::lock_guard lock(mutex_);
    if (programs_.erase(program) == 0) return Status::InvalidHandle;
  }
  delete program;
  return Status::Success;
}

Status LocalDriver::gather(const std::vector<ProgramTensor>& wanted, const TensorSet& set,
                           std::vector<void*>& addresses) const {
  if (set.size() != wanted.size()) return Status::ExecutionBadInput;
  for (const ProgramTensor& tensor : wanted) {
    const Tensor* found = set.find(tensor.name);
    if (found == nullptr || !valid(found) || found->size != tensor.bytes) return Status::ExecutionBadInput;
    addresses.push_back(found->address());
  }
  return Status::Success;
}

Status LocalDriver::execute(Program* program, const TensorSet& inputs, const TensorSet& outputs) {
  if (const Status status = ready(); status != Status::Success) return status;
  {
    std::lock_guard lock(mutex_);
    if (!programs_.contains(program)) return Status::InvalidHandle;
  }
  std::vector<void*> input_addresses, output_addresses;
  if (const Status status = gather(program->image.inputs, inputs, input_addresses); status != Status::Success) {
    return status;
  }
  if (const Status status = gather(program->image.outputs, outputs, output_addresses); status != Status::Success) {
    return status;
  }
  std::lock_guard lock(execution_[program->core]);
  DeviceAccess access;
  return run(program->image, input_addresses, output_addresses);
}

}  // namespace neuron::runtime
