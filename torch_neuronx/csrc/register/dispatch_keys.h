#pragma once

namespace torch_neuronx {

// Sparse, quantized and nested tensors of the device are refused by name. Not at import: each of the four fallbacks
// costs torch a walk over all its operators, 3 ms. Idempotent; any thread.
void refuse_other_layouts();

}  // namespace torch_neuronx
