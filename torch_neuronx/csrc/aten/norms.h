// The kinds of vector norms.
#pragma once

#include "neuron/lowering/operator_attributes.h"

namespace neuron::aten {

// Of an order as PyTorch takes it: 0, 1, 2, infinities, or any other number.
lowering::NormKind norm_kind(double order);

}  // namespace neuron::aten
