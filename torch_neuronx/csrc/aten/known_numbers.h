// Numbers that a program keeps in 0-dimensional tensors of the device: torch.where(condition, x, 0.5) makes one, fills
// it and reads it once. Whoever reads it while nothing else has been written to its block takes the number itself, so
// that the filling is no command in between, and mostly none at all. Not while a graph is captured.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "neuron/base/scalar.h"
#include "neuron/eager/recorder.h"

namespace neuron::aten {

// `target`, of one element, has just been recorded as filled with `value` on the stream. Remembered by the calling
// thread.
void remember_number(const eager::TensorArgument& target, eager::Stream& stream, Scalar value);

// What a read of `tensor` (0-dimensional) on the stream will find, as its dtype holds it; none when that is not known.
std::optional<Scalar> known_number(const eager::TensorArgument& tensor, eager::Stream& stream);

}  // namespace neuron::aten
