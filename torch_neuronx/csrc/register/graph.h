// torch.accelerator.Graph: command graphs of the core behind torch's interface.
#pragma once

#include <c10/core/Allocator.h>

namespace torch_neuronx {

// Registers the implementation; torch looks it up by the name of the device type, so this follows the renaming.
void register_graph();
// An identifier for a memory pool that graphs may share; the pool exists while one of them does.
c10::MempoolId_t new_graph_pool();

}  // namespace torch_neuronx
