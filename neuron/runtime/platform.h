// The instance the embedded drivers present, and how much of it this process sees. Pure questions.
#pragma once

#include <cstddef>

#include "neuron/runtime/device.h"

namespace neuron::runtime {

// A trn2.3xlarge: one Trainium2 with 8 physical cores and 96 GiB, as logical cores of two (NEURON_LOGICAL_NC_CONFIG).
InstanceInfo presented_instance();
int presented_core_count();
size_t presented_core_memory();

// Cores left by NEURON_RT_VISIBLE_CORES and NEURON_RT_NUM_CORES. Throws Error(Value) when they do not fit the instance.
int presented_visible_cores();

// Memory that this process may use: that of the machine or of its control group, whichever is less.
size_t machine_memory();

}  // namespace neuron::runtime
