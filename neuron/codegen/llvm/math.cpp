#include "neuron/codegen/llvm/math.h"

#include <string>

#include "neuron/codegen/llvm/math_functions.h"

namespace neuron::codegen {

namespace {

using llvm::Value;

// The C library's function of doubles, or one of ours where C has none.
Value* from_library(const Lanes& lanes, std::string_view name, std::span<Value* const> operands) {
  static constexpr std::string_view ours[] = {"digamma", "erfinv", "gelu_derivative", "logistic"};
  bool own = false;
  for (std::string_view known : ours) own = own || known == name;
  const std::string symbol = own ? "neuron_" + std::string(name) : std::string(name);
  return lanes.call_each(symbol, lanes.builder().getDoubleTy(), {operands.data(), operands.size()});
}

Value* in_float(const Lanes& lanes, std::string_view name, Value* x) {
  if (name == "exp") return emit_exp_f32(lanes, x);
  if (name == "log") return emit_log_f32(lanes, x);
  if (name == "tanh") return emit_tanh_f32(lanes, x);
  if (name == "logistic") return emit_logistic_f32(lanes, x);
  if (name == "erf") return emit_erf_f32(lanes, x);
  if (name == "gelu_derivative") return emit_gelu_derivative_f32(lanes, x);
  return nullptr;
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

Value* emit_polynomial(const Lanes& lanes, Value* x, std::initializer_list<double> coefficients) {
  Value* sum = nullptr;
  for (auto c = std::rbegin(coefficients); c != std::rend(coefficients); ++c) {
    Value* term = lanes.number(x, *c);
    sum = sum == nullptr ? term : lanes.fma(sum, x, term);
  }
  return sum;
}

Value* emit_at_most(const Lanes& lanes, Value* x, double limit) {
  Value* bound = lanes.number(x, limit);
  return lanes.select(lanes.builder().CreateFCmpOGT(x, bound), bound, x);
}

Value* emit_at_least(const Lanes& lanes, Value* x, double limit) {
  Value* bound = lanes.number(x, limit);
  return lanes.select(lanes.builder().CreateFCmpOLT(x, bound), bound, x);
}

Value* emit_unless_rare(const Lanes& lanes, Value* rare, Value* fast, std::string_view function,
                        std::span<Value* const> operands) {
  auto& b = lanes.builder();
  auto* parent = b.GetInsertBlock()->getParent();
  auto* from = b.GetInsertBlock();
  auto* slow = llvm::BasicBlock::Create(b.getContext(), "rare", parent);
  auto* join = llvm::BasicBlock::Create(b.getContext(), "join", parent);
  b.CreateCondBr(lanes.width() == 1 ? rare : b.CreateOrReduce(rare), slow, join);
  b.SetInsertPoint(slow);
  Value* exact = lanes.select(rare, from_library(lanes, function, operands), fast);
  b.CreateBr(join);
  join->moveAfter(from);
  b.SetInsertPoint(join);
  auto* result = b.CreatePHI(fast->getType(), 2);
  result->addIncoming(fast, from);
  result->addIncoming(exact, slow);
  return result;
}

Value* emit_math(const Lanes& lanes, std::string_view name, std::span<Value* const> operands) {
  auto& b = lanes.builder();
  if (operands[0]->getType()->getScalarSizeInBits() == 64) return from_library(lanes, name, operands);
  if (Value* result = in_float(lanes, name, operands[0])) return result;
  llvm::SmallVector<Value*, 3> wide;
  for (Value* operand : operands) wide.push_back(b.CreateFPExt(operand, lanes.f64()));
  const std::span<Value* const> doubles(wide.data(), wide.size());
  Value* result = emit_special_f32(lanes, name, doubles);
  if (result == nullptr) result = emit_trigonometric_f32(lanes, name, doubles);
  if (result == nullptr) result = from_library(lanes, name, doubles);
  return b.CreateFPTrunc(result, lanes.f32());
}

int math_cost(std::string_view name, DType dtype) {
  if (dtype == DType::Float64 || name == "lgamma" || name == "digamma" || name == "erfinv") return 300;
  if (name == "exp") return 26;
  if (name == "log") return 32;
  if (name == "logistic") return 30;
  if (name == "erf" || name == "tanh" || name == "gelu_derivative") return 30;
  return name == "pow" ? 200 : 100;
}

}  // namespace neuron::codegen
