// Results that are made first and then given: for operators whose shapes depend on values, and for those that are
// composed of others.
#pragma once

#include <initializer_list>

#include "torch_neuronx/csrc/aten/bridge.h"

namespace neuron::aten {

// Gives the results; where the overload has out= arguments, from `first_out` on, these are resized, written and given
// instead. Raises CPU's text for one of another dtype.
void give_or_write(Arguments& arguments, int first_out, std::initializer_list<at::Tensor> results);

}  // namespace neuron::aten
