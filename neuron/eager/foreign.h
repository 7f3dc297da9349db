// What the C interface for foreign kernels (torch_neuronx/include/neuron/foreign.h) needs to know of the caller: the
// torch layer tells. Without one the default stream of core 0 and one thread per processor are taken.
#pragma once

#include "neuron/eager/recorder.h"

namespace neuron::eager {

struct ForeignCaller {
  int (*current_core)();
  Stream& (*current_stream)(int core);
  int (*threads)();
  void (*note_write)(void* storage);
};
// `caller` must live as long as the process.
void set_foreign_caller(const ForeignCaller* caller);

}  // namespace neuron::eager
