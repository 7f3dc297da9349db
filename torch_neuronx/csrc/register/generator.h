// The device's random number generator: Philox, counter-based. Its whole state is (seed, offset); operations reserve a
// part of the sequence when they are recorded, so neither fusion nor threads nor the time of a flush can change a
// result.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

namespace torch_neuronx {

class NeuronGeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit NeuronGeneratorImpl(c10::DeviceIndex index, uint64_t seed = c10::default_rng_seed_val);

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override { return seed_; }
  // Draws a new seed from the system and returns it.
  uint64_t seed() override;
  // In 32-bit words, a multiple of 4.
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override { return offset_; }
  // 16 bytes on the CPU: seed, offset (the layout DTensor reads).
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  // State shared between generators, for graph capture.
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;

  static c10::DeviceType device_type();

 private:
  NeuronGeneratorImpl* clone_impl() const override;

  uint64_t seed_;
  uint64_t offset_ = 0;
};

// One per device, made and seeded at the first call.
const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator make_generator(c10::DeviceIndex index);

}  // namespace torch_neuronx
