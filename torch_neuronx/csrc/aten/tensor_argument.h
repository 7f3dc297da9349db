// ATen tensors as the recorder's arguments: for the bridge and the few wrappers that record without it.
#pragma once

#include <ATen/core/Tensor.h>

#include "neuron/eager/list_recording.h"
#include "neuron/eager/recorder.h"

namespace neuron::aten {

// The spans point into the tensor. Foreign memory (DLPack, from_blob) brings its owner. Exports no pointer.
eager::TensorArgument read_argument(const at::Tensor& tensor);
// The same for something that a command writes: the next export of the storage's pointer waits.
eager::TensorArgument write_argument(const at::Tensor& tensor);
// For list commands: the memory of a tensor whose elements the command visits in the order of memory, or of one element
// that stands for all.
// `element`: where a repeated one lies in the tensor, in elements.
void add_input(eager::ListRecording& list, const at::Tensor& tensor, bool repeated = false, int64_t element = 0);
void add_output(eager::ListRecording& list, const at::Tensor& tensor, int64_t element = 0);
// The value of a 0-dimensional CPU tensor. Declines for complex ones.
Scalar host_number(const at::Tensor& tensor);
// The number as an operand of the common dtype `common`: rounded where that is bfloat16 or float16.
Scalar narrowed(const Scalar& number, DType common);
// The bound on threads a command is recorded with: the caller's torch.get_num_threads().
int recording_threads();

}  // namespace neuron::aten
