#include "neuron/eager/late_error.h"

#include <new>

#include "neuron/eager/command.h"
#include "neuron/eager/stream.h"

namespace neuron::eager {

LateError current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  } catch (const std::bad_alloc&) {
    return {ErrorKind::OutOfMemory, "out of memory: the host has none left for what an operation needs while it runs"};
  } catch (const std::exception& error) {
    return {ErrorKind::Internal, error.what()};
  } catch (...) {
    return {ErrorKind::Internal, "an exception of unknown type"};
  }
}

Cause failure_of(const Command& command) {
  LateError error = current_error();
  std::string shapes;
  for (const Operand& operand : command.inputs()) {
    if (operand.kind != codegen::OperandKind::Tensor) continue;
    std::string sizes;
    for (int d = 0; d < operand.rank; ++d) sizes += fmt::format("{}{}", d ? ", " : "", operand.sizes[d]);
    shapes += fmt::format("{}{}[{}]", shapes.empty() ? "" : ", ", dtype_name(operand.dtype), sizes);
  }
  const std::string location = command.location == nullptr ? "" : fmt::format(", recorded at {}", command.location);
  error.message += fmt::format("\n(raised by the recorded operation #{} {}({}){})",
                               command.sequence & ~kCapturedSequence, command.name(), shapes, location);
  return std::make_shared<const LateError>(std::move(error));
}

}  // namespace neuron::eager
