// A reserved part of a generator's sequence.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <optional>

namespace neuron::aten {

struct PhiloxState {
  int64_t seed, offset;
};

// Takes `count` numbers from the generator, the device's own when none is given: in the order of these calls. Raises
// CPU's text for a generator of another device.
PhiloxState reserve(const std::optional<at::Generator>& generator, at::Device device, int64_t count);

}  // namespace neuron::aten
