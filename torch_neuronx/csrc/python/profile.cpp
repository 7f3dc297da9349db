// What eager_report() is made of.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "neuron/eager/profile.h"
#include "torch_neuronx/csrc/python/bindings.h"

namespace torch_neuronx {
namespace {

namespace nb = nanobind;
namespace eager = neuron::eager;

nb::dict profile() {
  const eager::Profile p = eager::profile();
  nb::dict not_fused;
  for (int i = 0; i < eager::kNotFusedCount; ++i)
    not_fused[eager::not_fused_name(static_cast<eager::NotFused>(i))] = p.not_fused[i];
  nb::list kernels;
  for (const eager::KernelProfile& kernel : p.kernels) {
    nb::dict row;
    row["name"] = kernel.name;
    row["library"] = kernel.library;
    row["runs"] = kernel.runs;
    row["commands"] = kernel.commands;
    row["seconds"] = static_cast<double>(kernel.nanoseconds) * 1e-9;
    row["bytes"] = kernel.bytes;
    row["unfused_bytes"] = kernel.unfused_bytes;
    kernels.append(row);
  }
  nb::dict result;
  result["not_fused"] = not_fused;
  result["plan_misses"] = p.plan_misses;
  result["seen_once"] = p.seen_once;
  result["awaiting_compile"] = p.awaiting_compile;
  result["pending_compiles"] = p.pending_compiles;
  result["needed_bytes"] = p.needed_bytes;
  result["kernels"] = kernels;
  return result;
}

}  // namespace

void bind_profile(nb::module_& module) {
  module.def("profile", &profile);
  module.def("reset_profile", &eager::reset_profile);
  module.def("set_profiling", &eager::set_profiling);
  module.def("profiling", &eager::profiling);
}

}  // namespace torch_neuronx
