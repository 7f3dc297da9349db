// What tells one build of the package from another: compiled programs of another build are never used.
#pragma once

#include <string>

namespace neuron::cache {

// The linker's build id of a shared library, in hexadecimal; a hash of the file when it has none; empty when it cannot
// be read.
std::string library_build_id(const std::string& path);

// The file this code is in.
std::string own_library_path();

// Of this library and of the code generator beside it. Computed once.
const std::string& build_id();

}  // namespace neuron::cache
