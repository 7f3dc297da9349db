// A failure found while a command was executed: what a synchronising call, or a read of what the command should have
// written, raises later.
#pragma once

#include <memory>
#include <string>

#include "neuron/base/error.h"

namespace neuron::eager {

struct Command;

struct LateError {
  ErrorKind kind;
  std::string message;

  [[noreturn]] void raise() const { throw Error(kind, message); }
};

// Shared by everything that has no value because of it.
using Cause = std::shared_ptr<const LateError>;

// The exception that is being handled. To be called in a catch block.
LateError current_error();
// The same as the failure of the command, which its text names, with the shapes and where it was recorded.
Cause failure_of(const Command& command);

}  // namespace neuron::eager
