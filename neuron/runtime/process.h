// What a fork does to the runtime. A child forked before the first device use starts clean; after it, the child
// inherits memory without its threads: its device calls raise one error, and what releases memory does nothing.
#pragma once

namespace neuron::runtime {

// The process is about to use the device. Throws Error(Runtime) in a child whose parent had used it.
void enter_runtime();
// True in a child forked after its parent used the device. Async-signal-safe, no lock.
bool in_forked_child();
// Whether this process has used the device (queries do not count).
bool runtime_used();

}  // namespace neuron::runtime
