// User errors in CPU's own words: the CPU kernel is run on zeros of the same shapes and dtypes, and its exception is
// the user's. Only on the way to an error, so it may be slow.
#pragma once

#include <vector>

namespace c10 {
class OperatorHandle;
struct IValue;
}  // namespace c10

namespace neuron::aten {

// Thrown by refuse(): a wrapper saw arguments that the CPU does not take either (and Meta kernels let pass).
struct Refused {};
[[noreturn]] void refuse();

// Raises what the CPU raises for the arguments at the top of the stack. Returns when it would take them.
void raise_as_cpu(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack);

}  // namespace neuron::aten
