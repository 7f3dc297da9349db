// What has no kernel of ours runs on the CPU: counted per operator with the bytes moved, warned about once, refused in
// strict mode (NotImplementedError). View operators never get here; if one does, it raises.
#pragma once

#include <vector>

namespace c10 {
class OperatorHandle;
class DispatchKeySet;
struct IValue;
}  // namespace c10

namespace neuron::aten {

void fall_back(const c10::OperatorHandle& op, std::vector<c10::IValue>& stack);
void register_fallback();

}  // namespace neuron::aten
