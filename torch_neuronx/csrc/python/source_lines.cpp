// TORCH_NEURONX_ENABLE_STACK_TRACE: the line of the user's program that recorded an operation, for errors that are
// raised when that line is long past.
#include <Python.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "neuron/base/options.h"
#include "neuron/eager/recorder.h"
#include "torch_neuronx/csrc/python/bindings.h"
#include "torch_neuronx/csrc/python/frames.h"

namespace torch_neuronx {
namespace {

namespace nb = nanobind;

// Both are guarded by the GIL and never freed: commands point to the texts.
std::vector<std::string>& library_directories() {
  static auto* directories = new std::vector<std::string>();
  return *directories;
}

const char* intern(std::string text) {
  static auto* texts = new std::unordered_set<std::string>();
  return texts->insert(std::move(text)).first->c_str();
}

bool is_library(std::string_view file) {
  for (const std::string& directory : library_directories()) {
    if (file.starts_with(directory)) return true;
  }
  return false;
}

// The innermost frame that is neither torch's nor ours. Recording runs with the GIL released, so it is taken here.
const char* user_line() {
  if (!python_knows_this_thread()) return nullptr;
  const nb::gil_scoped_acquire held;
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid()) {
    auto* raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
    PyCodeObject* code = PyFrame_GetCode(raw);
    const nb::object keeper = nb::steal(reinterpret_cast<PyObject*>(code));
    const std::string_view file = text_of(code->co_filename);
    if (!is_library(file)) {
      return intern(std::string(file) + ":" + std::to_string(PyFrame_GetLineNumber(raw)) + " in " +
                    std::string(text_of(code->co_name)));
    }
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
  }
  return nullptr;
}

}  // namespace

void bind_source_lines(nb::module_& module) {
  // Begins when the environment asks for it; frames of files below `directories` are the libraries' own.
  module.def("trace_source_lines", [](const std::vector<std::string>& directories) {
    if (!neuron::option_flag(neuron::Option::EnableStackTrace)) return;
    library_directories().clear();
    for (const std::string& directory : directories) library_directories().push_back(directory + "/");
    neuron::eager::set_location_provider(&user_line);
  });
}

}  // namespace torch_neuronx
