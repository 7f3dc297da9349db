// torch.use_deterministic_algorithms() switches fusion off. torch offers no callback, so the flag is read once per
// recorded operation; the bits do not change either way.
#pragma once

namespace torch_neuronx {

void observe_deterministic_mode();

}  // namespace torch_neuronx
