// Pinned host memory. The host device can reach any host memory; "pinned" here means memory of this allocator, whose
// blocks are not reused before the asynchronous copies that use them have finished.
#pragma once

namespace torch_neuronx {

// Whether the address lies in memory of the pinned allocator.
bool is_pinned(const void* address);

}  // namespace torch_neuronx
