// Finds and opens libneuron_codegen.so, which lies beside libneuron.so: 38 MB of LLVM that a process which only uses
// cached or library kernels never loads.
#include <dlfcn.h>

#include <filesystem>

#include "neuron/base/error.h"
#include "neuron/codegen/region.h"

namespace neuron::codegen {

namespace {

std::filesystem::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&host_target_name), &info) == 0 || info.dli_fname == nullptr) {
    fail(ErrorKind::Runtime, "cannot tell where libneuron.so was loaded from");
  }
  return std::filesystem::absolute(info.dli_fname).parent_path();
}

HostCompiler& open_compiler() {
  const std::string path = (own_folder() / "libneuron_codegen.so").string();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(ErrorKind::Runtime, "the host code generator could not be opened: {} (looked for {})", dlerror(), path);
  }
  auto factory = reinterpret_cast<HostCompiler* (*)()>(dlsym(library, "neuron_codegen_create"));
  if (factory == nullptr) {
    fail(ErrorKind::Runtime, "{} has no function neuron_codegen_create: it is of another version", path);
  }
  return *factory();
}

}  // namespace

HostCompiler& host_compiler() {
  // Never destroyed: kernels may run until the process ends.
  static HostCompiler& compiler = open_compiler();
  return compiler;
}

}  // namespace neuron::codegen
