// A thread that waits for the device lets go of the GIL: the executor may be releasing memory that belongs to a Python
// object (imported through DLPack), for which it needs the GIL.
#include <Python.h>

#include "neuron/runtime/queue.h"
#include "torch_neuronx/csrc/python/bindings.h"
#include "torch_neuronx/csrc/python/frames.h"

namespace torch_neuronx {
namespace {

// PyTorch calls into the device with and without the GIL.
void* leave_interpreter() {
  if (!python_knows_this_thread() || PyGILState_Check() == 0) return nullptr;
  return PyEval_SaveThread();
}

void enter_interpreter(void* state) {
  if (state != nullptr) PyEval_RestoreThread(static_cast<PyThreadState*>(state));
}

}  // namespace

void bind_interpreter_lock() {
  static const neuron::runtime::WaitHooks hooks{leave_interpreter, enter_interpreter};
  neuron::runtime::set_wait_hooks(&hooks);
}

}  // namespace torch_neuronx
