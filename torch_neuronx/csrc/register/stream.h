// c10 streams over the core's streams. c10 id 0 is the default stream of a device (c10::Stream::DEFAULT); any other
// stream has the core's id plus one. The current stream is per thread and device.
#pragma once

#include <c10/core/Stream.h>

#include "neuron/eager/command_graph.h"
#include "neuron/eager/recorder.h"

namespace torch_neuronx {

// The core's stream behind a c10 stream: while a graph captures it, the graph's. Marks the device as used.
neuron::eager::Stream& stream_of(const c10::Stream& stream);
// The stream itself, captured or not.
neuron::eager::Stream& uncaptured_stream_of(const c10::Stream& stream);

c10::Stream current_c10_stream(c10::DeviceIndex index);
c10::Stream default_c10_stream(c10::DeviceIndex index);
// Streams come from a pool of 32 per device and priority, made as needed and reused in turn, so that a program may ask
// for a new stream in a loop.
c10::Stream pooled_c10_stream(c10::DeviceIndex index, int priority);
// Makes `stream` the current one of its device and returns the previous one. What was recorded on the previous stream
// is handed to the executor: a program that changes streams expects the older work to have started.
c10::Stream exchange_stream(const c10::Stream& stream);

}  // namespace torch_neuronx
