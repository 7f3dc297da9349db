// What the allocator asks of the streams: how far they are, and to finish when memory runs out.
#pragma once

namespace neuron::eager {

// Called once, before the first stream exists.
void install_memory_hooks();

}  // namespace neuron::eager
