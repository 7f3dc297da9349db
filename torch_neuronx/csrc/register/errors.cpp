#include "torch_neuronx/csrc/register/errors.h"

#include <c10/util/Exception.h>

namespace torch_neuronx {

void rethrow_as_torch(const neuron::Error& error) {
  const std::string message = error.what();
  switch (error.kind()) {
    case neuron::ErrorKind::Index:
      C10_THROW_ERROR(IndexError, message);
    case neuron::ErrorKind::Type:
      C10_THROW_ERROR(TypeError, message);
    case neuron::ErrorKind::Value:
      C10_THROW_ERROR(ValueError, message);
    case neuron::ErrorKind::NotImplemented:
      C10_THROW_ERROR(NotImplementedError, message);
    case neuron::ErrorKind::OutOfMemory:
      C10_THROW_ERROR(OutOfMemoryError, message);
    case neuron::ErrorKind::Internal:
      C10_THROW_ERROR(Error, message + " (internal error of torch-neuronx, please report it)");
    case neuron::ErrorKind::Runtime:
      break;
  }
  C10_THROW_ERROR(Error, message);
}

}  // namespace torch_neuronx
