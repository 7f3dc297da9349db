// The device that accepts everything and computes nothing: it measures what the layers above cost, and runs anywhere.
// Memory has real, distinct addresses and full accounting; reads give zeros.
#pragma once

#include <memory>

#include "neuron/runtime/device.h"

namespace neuron::runtime {

std::unique_ptr<Driver> make_null_driver();

}  // namespace neuron::runtime
