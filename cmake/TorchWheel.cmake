# Imported targets for an installed torch wheel: torch::headers, torch::c10, torch::torch_cpu, torch::torch_python.
# find_package(Torch) is avoided: it edits global flags, and on a CUDA wheel demands the CUDA toolkit.
find_package(Python COMPONENTS Interpreter Development.Module REQUIRED)
execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import importlib.util,os,runpy; d=os.path.dirname(importlib.util.find_spec('torch').origin); print(d); print(runpy.run_path(os.path.join(d,'version.py'))['__version__'])"
  OUTPUT_VARIABLE torch_facts OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_missing)
if(torch_missing)
  message(FATAL_ERROR "torch is not installed for ${Python_EXECUTABLE}: pip install torch==2.13.0 first")
endif()
string(REPLACE "\n" ";" torch_facts "${torch_facts}")
list(GET torch_facts 0 TORCH_DIR)
list(GET torch_facts 1 TORCH_VERSION)
if(NOT TORCH_VERSION MATCHES "^2\\.13\\.")
  message(FATAL_ERROR "torch ${TORCH_VERSION} found, this tree builds against torch 2.13")
endif()

add_library(torch_headers INTERFACE)
add_library(torch::headers ALIAS torch_headers)
target_include_directories(torch_headers SYSTEM INTERFACE
  ${TORCH_DIR}/include ${TORCH_DIR}/include/torch/csrc/api/include)
foreach(name c10 torch_cpu torch_python)
  add_library(torch::${name} SHARED IMPORTED)
  set_target_properties(torch::${name} PROPERTIES IMPORTED_LOCATION ${TORCH_DIR}/lib/lib${name}.so)
  target_link_libraries(torch::${name} INTERFACE torch_headers)
endforeach()
