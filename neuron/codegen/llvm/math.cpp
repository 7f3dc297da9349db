#include "neuron/codegen/llvm/math.h"

#include <string>

#include "neuron/base/error.h"

namespace neuron::codegen {

namespace {

using llvm::Value;

// The C library's function of the double, or one of ours where C has none.
Value* from_library(const Lanes& lanes, std::string_view name, std::span<Value* const> operands) {
  auto& b = lanes.builder();
  const bool narrow = operands[0]->getType()->getScalarSizeInBits() == 32;
  llvm::SmallVector<Value*, 3> wide;
  for (Value* operand : operands) wide.push_back(narrow ? b.CreateFPExt(operand, lanes.f64()) : operand);
  static constexpr std::string_view ours[] = {"digamma", "erfinv", "logistic"};
  bool own = false;
  for (std::string_view known : ours) own = own || known == name;
  const std::string symbol = own ? "neuron_" + std::string(name) : std::string(name);
  Value* result = lanes.call_each(symbol, b.getDoubleTy(), wide);
  return narrow ? b.CreateFPTrunc(result, lanes.f32()) : result;
}

}  // namespace

std::string_view math_function_of(ir::Opcode opcode) {
  using ir::Opcode;
  switch (opcode) {
    case Opcode::Cbrt:
      return "cbrt";
    case Opcode::Cosine:
      return "cos";
    case Opcode::Exponential:
      return "exp";
    case Opcode::ExponentialMinusOne:
      return "expm1";
    case Opcode::Log:
      return "log";
    case Opcode::LogPlusOne:
      return "log1p";
    case Opcode::Logistic:
      return "logistic";
    case Opcode::Sine:
      return "sin";
    case Opcode::Tan:
      return "tan";
    case Opcode::Tanh:
      return "tanh";
    default:
      return {};
  }
}

Value* emit_math(const Lanes& lanes, std::string_view name, std::span<Value* const> operands) {
  return from_library(lanes, name, operands);
}

int math_cost(std::string_view name, DType dtype) { return 200; }

}  // namespace neuron::codegen
