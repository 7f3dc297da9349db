// Settings that are read when an operation is recorded; Python sets them through torch.backends.neuron.
#pragma once

namespace torch_neuronx {

// True: float64 tensors are computed in float32 as Trainium does. False (default): exactly, on the host device.
bool float64_as_float32() noexcept;
void set_float64_as_float32(bool on) noexcept;

}  // namespace torch_neuronx
