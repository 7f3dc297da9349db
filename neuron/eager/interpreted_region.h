// Runs a region with the IR interpreter instead of generated code: the reference the fuzzer compares with.
#pragma once

#include "neuron/codegen/region.h"

namespace neuron::eager {

void interpret_region(const codegen::RegionSpec& spec, const codegen::RegionArguments& arguments);

}  // namespace neuron::eager
