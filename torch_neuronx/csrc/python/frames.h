// Python's view of the calling thread, for code that the device is called from with and without the GIL.
#pragma once

#include <Python.h>

#include <string_view>

namespace torch_neuronx {

// A thread that Python does not know has no frames, and is not made known.
inline bool python_knows_this_thread() { return Py_IsInitialized() != 0 && PyGILState_GetThisThreadState() != nullptr; }

// The text of a str object, which keeps it. Needs the GIL.
inline std::string_view text_of(PyObject* string) {
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(string, &length);
  if (text == nullptr) {
    PyErr_Clear();
    return "?";
  }
  return {text, static_cast<size_t>(length)};
}

}  // namespace torch_neuronx
