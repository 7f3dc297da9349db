// What the embedded drivers share: handles, bounds, accounting, life cycle. A driver of this kind keeps its tensors in
// pages of this process and says what moving bytes and running a program mean.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "neuron/runtime/device.h"

namespace neuron::runtime {

class LocalDriver : public Driver {
 public:
  ~LocalDriver() override;

  InstanceInfo instance_info() const override;
  int total_core_count() const override;
  int visible_core_count() const override;
  Status init() override;
  void close() override;
  Status tensor_allocate(Placement placement, int core, size_t size, const std::string& name, Tensor** tensor) override;
  Status tensor_attach(void* buffer, size_t size, const std::string& name, Tensor** tensor) override;
  Status tensor_slice(Tensor* source, size_t offset, size_t size, const std::string& name, Tensor** tensor) override;
  Status tensor_free(Tensor* tensor) override;
  Status tensor_write(Tensor* tensor, const void* buffer, size_t offset, size_t size) override;
  Status tensor_read(const Tensor* tensor, void* buffer, size_t offset, size_t size) override;
  Status tensor_copy(const Tensor* source, size_t source_offset, Tensor* target, size_t target_offset,
                     size_t size) override;
  Status tensor_fill(Tensor* tensor, size_t offset, uint8_t value, size_t size) override;
  size_t tensor_size(const Tensor* tensor) const override;
  void* tensor_address(const Tensor* tensor) const override;
  Status memory_use(int core, MemoryUse* use) const override;
  Status load(const ProgramImage& image, int core, Program** program) override;
  Status unload(Program* program) override;
  Status execute(Program* program, const TensorSet& inputs, const TensorSet& outputs) override;

 protected:
  // Bytes of machine memory all cores together may use, and of one core.
  virtual size_t total_limit() const = 0;
  virtual size_t core_limit() const = 0;
  virtual void move_bytes(void* target, const void* source, size_t size) const = 0;
  virtual void read_bytes(void* target, const void* source, size_t size) const = 0;
  virtual void fill_bytes(void* target, uint8_t value, size_t size) const = 0;
  virtual Status check_image(const ProgramImage& image) const = 0;
  virtual Status run(const ProgramImage& image, std::span<void* const> inputs,
                     std::span<void* const> outputs) const = 0;

 private:
  enum class State : uint8_t { Fresh, Ready, Closed };
  static constexpr int kMaxCores = 64;

  Status ready() const;
  bool valid(const Tensor* tensor) const;
  Status add(Tensor* fresh, Tensor** tensor);
  Status check_range(const Tensor* tensor, size_t offset, size_t size) const;
  Status gather(const std::vector<ProgramTensor>& wanted, const TensorSet& set, std::vector<void*>& addresses) const;

  std::atomic<State> state_{State::Fresh};
  int cores_ = 0;
  size_t core_limit_ = 0, total_limit_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_set<const Tensor*> tensors_;
  std::unordered_set<Program*> programs_;
  std::shared_ptr<std::array<std::atomic<size_t>, kMaxCores>>
      used_;  // bytes by core; memory outlives close() in slices
  std::array<std::mutex, kMaxCores> execution_;
};

}  // namespace neuron::runtime
