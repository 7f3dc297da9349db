#include "torch_neuronx/csrc/register/generator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/TensorBase.h>
#include <c10/util/Exception.h>

#include <array>
#include <cstring>
#include <mutex>

#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/storage.h"
#include "torch_neuronx/csrc/register/stream.h"

namespace torch_neuronx {
namespace {

constexpr size_t kStateBytes = 2 * sizeof(uint64_t);
// Random words one Philox counter gives.
constexpr uint64_t kWordsPerCounter = 4;

}  // namespace

NeuronGeneratorImpl::NeuronGeneratorImpl(c10::DeviceIndex index, uint64_t seed)
    : GeneratorImpl(c10::Device(kDeviceType, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), seed_(seed) {}

c10::DeviceType NeuronGeneratorImpl::device_type() { return kDeviceType; }

void NeuronGeneratorImpl::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

uint64_t NeuronGeneratorImpl::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return seed_;
}

void NeuronGeneratorImpl::set_offset(uint64_t offset) {
  TORCH_CHECK(offset % kWordsPerCounter == 0, "offset must be a multiple of 4, got ", offset);
  offset_ = offset;
}

void NeuronGeneratorImpl::set_state(const c10::TensorImpl& state) {
  TORCH_CHECK_TYPE(state.layout() == c10::kStrided && state.device_type() == c10::kCPU &&
                       state.dtype() == caffe2::TypeMeta::Make<uint8_t>(),
                   "RNG state must be a torch.ByteTensor");
  TORCH_CHECK(state.is_contiguous() && state.numel() == static_cast<int64_t>(kStateBytes),
              "RNG state is wrong size: expected ", kStateBytes, " contiguous bytes, got ", state.numel());
  uint64_t words[2];
  std::memcpy(words, state.data(), kStateBytes);
  set_current_seed(words[0]);
  set_offset(words[1]);
}

c10::intrusive_ptr<c10::TensorImpl> NeuronGeneratorImpl::get_state() const {
  at::TensorBase state = at::detail::empty_cpu({static_cast<int64_t>(kStateBytes)}, c10::kByte);
  const uint64_t words[2] = {seed_, offset_};
  std::memcpy(state.mutable_data_ptr(), words, kStateBytes);
  return state.getIntrusivePtr();
}

void NeuronGeneratorImpl::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) {
  const auto* other = dynamic_cast<const NeuronGeneratorImpl*>(state.get());
  TORCH_CHECK_TYPE(other != nullptr, "expected the state of a neuron generator");
  seed_ = other->seed_;
  offset_ = other->offset_;
}

c10::intrusive_ptr<c10::GeneratorImpl> NeuronGeneratorImpl::graphsafe_get_state() const { return clone(); }

NeuronGeneratorImpl* NeuronGeneratorImpl::clone_impl() const {
  auto* copy = new NeuronGeneratorImpl(device().index(), seed_);
  copy->offset_ = offset_;
  return copy;
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  if (index == -1) index = current_device();
  check_device_index(index);
  static std::array<at::Generator, kMaximumDevices> generators;
  static std::array<std::once_flag, kMaximumDevices> made;
  std::call_once(made[index], [&] {
    generators[index] = make_generator(index);
    generators[index].seed();
  });
  return generators[index];
}

at::Generator make_generator(c10::DeviceIndex index) {
  if (index == -1) index = current_device();
  check_device_index(index);
  return at::make_generator<NeuronGeneratorImpl>(index);
}

PhiloxReservation reserve_philox(std::optional<at::Generator> generator, const at::Device& device, int64_t elements) {
  const c10::DeviceIndex index = device.has_index() ? device.index() : current_device();
  const at::Generator& source = generator && generator->defined() ? *generator : default_generator(index);
  TORCH_CHECK(source.device().type() == kDeviceType, "Expected a 'neuron' device type for generator but found '",
              source.device().type(), "'");
  TORCH_CHECK(source.device().index() == index, "Expected a generator of device neuron:", static_cast<int>(index),
              " but found one of ", source.device());
  auto* implementation = static_cast<NeuronGeneratorImpl*>(source.unsafeGetGeneratorImpl());
  const uint64_t counters = (static_cast<uint64_t>(elements) + kWordsPerCounter - 1) / kWordsPerCounter;
  // In a graph: the numbers come from the generator at each replay.
  if (auto* graph = neuron::eager::capturing_graph(current_stream(c10::Device(kDeviceType, index)))) [[unlikely]] {
    const auto state =
        graph->reserve_random(implementation, std::make_shared<at::Generator>(source), counters * kWordsPerCounter);
    return {state.seed, state.offset};
  }
  const std::lock_guard lock(implementation->mutex_);
  const PhiloxReservation reserved{implementation->current_seed(), implementation->get_offset()};
  implementation->set_offset(reserved.offset + counters * kWordsPerCounter);
  return reserved;
}

}  // namespace torch_neuronx
