// What `python -m torch_neuronx doctor` asks of the core. None of it begins the use of the device.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "neuron/base/error.h"
#include "neuron/base/options.h"
#include "neuron/base/processor.h"
#include "neuron/base/thread_pool.h"
#include "neuron/cache/build_id.h"
#include "neuron/cache/inspection.h"
#include "neuron/codegen/region.h"
#include "neuron/runtime/device.h"
#include "torch_neuronx/csrc/python/bindings.h"

namespace torch_neuronx {
namespace {

namespace nb = nanobind;

nb::dict processor() {
  const neuron::ProcessorFeatures& features = neuron::processor_features();
  nb::dict result;
  result["avx2"] = features.runs_avx2();
  result["avx512"] = features.runs_avx512();
  result["avx512_bf16"] = features.avx512bf16;
  result["amx_bf16"] = features.runs_amx_bf16();
  result["unsupported"] = neuron::unsupported_processor(features);
  try {
    result["target"] = neuron::codegen::host_target_name(neuron::codegen::detected_host_target());
  } catch (const neuron::Error& error) {
    result["target"] = nb::none();
    result["unsupported"] = error.what();
  }
  result["hardware_threads"] = neuron::hardware_threads();
  return result;
}

// Opens the code generator, as a first compile does.
nb::dict code_generator() {
  nb::dict result;
  try {
    result["build"] = neuron::codegen::host_compiler().build_id();
    result["error"] = "";
  } catch (const neuron::Error& error) {
    result["build"] = "";
    result["error"] = error.what();
  }
  return result;
}

nb::dict cache_directory() {
  const neuron::cache::DirectoryReport report = neuron::cache::inspect_directory(neuron::cache::environment_settings());
  nb::dict result;
  result["path"] = report.path;
  result["exists"] = report.exists;
  result["writable"] = report.writable;
  result["obstacle"] = report.obstacle;
  result["entries"] = report.entries;
  result["bytes"] = report.bytes;
  result["limit_bytes"] = report.limit;
  result["free_bytes"] = report.free_bytes;
  result["read"] = report.read;
  result["other_builds"] = report.other_builds;
  result["temporary"] = report.temporary;
  result["damaged"] = report.damaged;
  result["damaged_files"] = report.damaged_files;
  return result;
}

nb::list packs() {
  nb::list result;
  for (const neuron::cache::PackReport& report : neuron::cache::inspect_packs(neuron::cache::environment_settings())) {
    nb::dict row;
    row["path"] = report.path;
    row["state"] = report.state;
    row["entries"] = report.entries;
    result.append(row);
  }
  return result;
}

}  // namespace

void bind_diagnostics(nb::module_& module) {
  module.def("build_id", [] { return neuron::cache::build_id(); });
  module.def("library_path", [] { return neuron::cache::own_library_path(); });
  module.def("processor", &processor);
  module.def("code_generator", &code_generator);
  module.def("cache_directory", &cache_directory);
  module.def("packs", &packs);
}

}  // namespace torch_neuronx
