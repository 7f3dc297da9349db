// An object file in executable memory.
#pragma once

#include <memory>
#include <string>

#include "neuron/codegen/llvm/emitter.h"

namespace neuron::codegen {

class LoadedCode {
 public:
  // Throws Error(Runtime) when the object cannot be linked.
  explicit LoadedCode(const std::string& object);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  KernelFunction kernel() const { return kernel_; }

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
  KernelFunction kernel_ = nullptr;
};

}  // namespace neuron::codegen
