// The embedded device: this machine's processor and memory, presented as a trn2.3xlarge.
#pragma once

#include <memory>

#include "neuron/runtime/device.h"

namespace neuron::runtime {

std::unique_ptr<Driver> make_host_driver();

}  // namespace neuron::runtime
