// Powers that PyTorch computes by products and roots.
#pragma once

#include "neuron/lowering/lowering.h"

namespace neuron::aten {

// The operator of one input that computes x^exponent; null: the general rule.
const lowering::Operator* special_power(double exponent, bool integral);

}  // namespace neuron::aten
