// The C functions that generated code may call, by symbol name.
#pragma once

#include <string_view>

namespace neuron::codegen {

// Null when there is no such function.
void* runtime_function(std::string_view name);

}  // namespace neuron::codegen
