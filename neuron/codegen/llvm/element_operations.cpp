#include "neuron/codegen/llvm/element_operations.h"

#include <limits>

#include "neuron/base/error.h"
#include "neuron/codegen/llvm/conversions.h"
#include "neuron/codegen/llvm/integer_operations.h"
#include "neuron/codegen/llvm/math.h"

namespace neuron::codegen {

namespace {

using ir::ComparisonDirection;
using ir::Opcode;
using llvm::Value;

[[noreturn]] void unsupported(Opcode opcode, DType dtype) {
  fail(ErrorKind::Internal, "generated kernels have no {} of {}", ir::op_info(opcode).mnemonic, dtype_name(dtype));
}

Value* unary_float(const Lanes& lanes, Opcode opcode, DType dtype, Value* x) {
  auto& b = lanes.builder();
  switch (opcode) {
    case Opcode::Abs:
      return lanes.absolute(x);
    case Opcode::Ceil:
      return lanes.unary(llvm::Intrinsic::ceil, x);
    case Opcode::Floor:
      return lanes.unary(llvm::Intrinsic::floor, x);
    case Opcode::Negate:
      return b.CreateFNeg(x);
    case Opcode::Real:
      return x;
    case Opcode::Imag:
      return lanes.number(x, 0);
    case Opcode::RoundNearestEven:
      return lanes.unary(llvm::Intrinsic::roundeven, x);
    case Opcode::RoundNearestAfz: {
      // The largest number below one half keeps 0.49999997 from becoming 1.
      double half = dtype == DType::Float64 ? 0x1.fffffffffffffp-2 : 0x1.fffffep-2;
      return lanes.unary(llvm::Intrinsic::trunc, b.CreateFAdd(x, lanes.copy_sign(lanes.number(x, half), x)));
    }
    case Opcode::Sqrt:
      return lanes.unary(llvm::Intrinsic::sqrt, x);
    case Opcode::Rsqrt:
      return b.CreateFDiv(lanes.number(x, 1), lanes.unary(llvm::Intrinsic::sqrt, x));
    case Opcode::Sign: {
      Value* zero = lanes.number(x, 0);
      Value* signed_one = lanes.copy_sign(lanes.number(x, 1), x);
      return lanes.select(b.CreateFCmpONE(x, zero), signed_one, x);
    }
    case Opcode::IsFinite:
      return b.CreateFCmpOLT(lanes.absolute(x), lanes.number(x, std::numeric_limits<double>::infinity()));
    default:
      break;
  }
  std::string_view name = math_function_of(opcode);
  if (name.empty()) unsupported(opcode, dtype);
  return emit_math(lanes, name, {&x, 1});
}

Value* unary_integer(const Lanes& lanes, Opcode opcode, DType dtype, Value* x) {
  auto& b = lanes.builder();
  const bool boolean = dtype == DType::Bool;
  Value* zero = lanes.integer(x, 0);
  switch (opcode) {
    case Opcode::Abs:
      if (!is_signed_integer(dtype)) return x;
      return lanes.select(b.CreateICmpSLT(x, zero), b.CreateNeg(x), x);
    case Opcode::Negate:
      return b.CreateNeg(x);
    case Opcode::Not:
      return b.CreateNot(x);
    case Opcode::CountLeadingZeros:
      if (boolean) return b.CreateNot(x);
      return b.CreateIntrinsic(llvm::Intrinsic::ctlz, {x->getType()}, {x, b.getFalse()});
    case Opcode::PopulationCount:
      return boolean ? x : lanes.unary(llvm::Intrinsic::ctpop, x);
    case Opcode::Imag:
      return zero;
    case Opcode::Ceil:
    case Opcode::Floor:
    case Opcode::Real:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
      return x;
    case Opcode::IsFinite:
      return lanes.splat(b.getTrue());
    case Opcode::Sign: {
      if (boolean) return x;
      Value* positive = lanes.select(b.CreateICmpNE(x, zero), lanes.integer(x, 1), zero);
      if (!is_signed_integer(dtype)) return positive;
      return lanes.select(b.CreateICmpSLT(x, zero), lanes.integer(x, -1), positive);
    }
    default:
      unsupported(opcode, dtype);
  }
}

Value* binary_float(const Lanes& lanes, Opcode opcode, DType dtype, Value* x, Value* y) {
  auto& b = lanes.builder();
  switch (opcode) {
    case Opcode::Add:
      return b.CreateFAdd(x, y);
    case Opcode::Subtract:
      return b.CreateFSub(x, y);
    case Opcode::Multiply:
      return b.CreateFMul(x, y);
    case Opcode::Divide:
      return b.CreateFDiv(x, y);
    // x when it is a NaN; otherwise what maxps and minps give: y when it is a NaN, and of equal operands y.
    case Opcode::Maximum:
      return lanes.select(lanes.is_nan(x), x, lanes.select(b.CreateFCmpOGT(x, y), x, y));
    case Opcode::Minimum:
      return lanes.select(lanes.is_nan(x), x, lanes.select(b.CreateFCmpOLT(x, y), x, y));
    default:
      break;
  }
  Value* operands[] = {x, y};
  if (opcode == Opcode::Power) return emit_math(lanes, "pow", operands);
  if (opcode == Opcode::Atan2) return emit_math(lanes, "atan2", operands);
  if (opcode == Opcode::Remainder) return emit_math(lanes, "fmod", operands);
  unsupported(opcode, dtype);
}

Value* binary_boolean(const Lanes& lanes, Opcode opcode, Value* x, Value* y) {
  auto& b = lanes.builder();
  switch (opcode) {
    case Opcode::Add:
    case Opcode::Or:
    case Opcode::Maximum:
      return b.CreateOr(x, y);
    case Opcode::And:
    case Opcode::Multiply:
    case Opcode::Minimum:
      return b.CreateAnd(x, y);
    case Opcode::Xor:
    case Opcode::Subtract:
      return b.CreateXor(x, y);
    case Opcode::Divide:
    case Opcode::Power:
      return b.CreateOr(x, b.CreateNot(y));
    case Opcode::Remainder:
      return b.CreateAnd(x, b.CreateNot(y));
    default:
      unsupported(opcode, DType::Bool);
  }
}

Value* binary_integer(const Lanes& lanes, Opcode opcode, DType dtype, Value* x, Value* y) {
  auto& b = lanes.builder();
  const bool is_unsigned = is_unsigned_integer(dtype);
  switch (opcode) {
    case Opcode::Add:
      return b.CreateAdd(x, y);
    case Opcode::Subtract:
      return b.CreateSub(x, y);
    case Opcode::Multiply:
      return b.CreateMul(x, y);
    case Opcode::And:
      return b.CreateAnd(x, y);
    case Opcode::Or:
      return b.CreateOr(x, y);
    case Opcode::Xor:
      return b.CreateXor(x, y);
    case Opcode::Maximum:
      return lanes.select(is_unsigned ? b.CreateICmpUGT(x, y) : b.CreateICmpSGT(x, y), x, y);
    case Opcode::Minimum:
      return lanes.select(is_unsigned ? b.CreateICmpULT(x, y) : b.CreateICmpSLT(x, y), x, y);
    case Opcode::Divide:
      return emit_integer_divide(lanes, dtype, x, y);
    case Opcode::Remainder:
      return emit_integer_remainder(lanes, dtype, x, y);
    case Opcode::Power:
      return emit_integer_power(lanes, dtype, x, y);
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
      return emit_shift(lanes, opcode, x, y);
    default:
      unsupported(opcode, dtype);
  }
}

Value* compare(const Lanes& lanes, ComparisonDirection direction, DType dtype, Value* x, Value* y) {
  using llvm::CmpInst;
  auto& b = lanes.builder();
  const int row = static_cast<int>(direction);  // EQ, NE, LT, LE, GT, GE
  static constexpr CmpInst::Predicate floats[] = {CmpInst::FCMP_OEQ, CmpInst::FCMP_UNE, CmpInst::FCMP_OLT,
                                                  CmpInst::FCMP_OLE, CmpInst::FCMP_OGT, CmpInst::FCMP_OGE};
  static constexpr CmpInst::Predicate signeds[] = {CmpInst::ICMP_EQ,  CmpInst::ICMP_NE,  CmpInst::ICMP_SLT,
                                                   CmpInst::ICMP_SLE, CmpInst::ICMP_SGT, CmpInst::ICMP_SGE};
  static constexpr CmpInst::Predicate unsigneds[] = {CmpInst::ICMP_EQ,  CmpInst::ICMP_NE,  CmpInst::ICMP_ULT,
                                                     CmpInst::ICMP_ULE, CmpInst::ICMP_UGT, CmpInst::ICMP_UGE};
  if (is_float(dtype)) return b.CreateFCmp(floats[row], x, y);
  return b.CreateICmp(is_signed_integer(dtype) ? signeds[row] : unsigneds[row], x, y);
}

Value* bitcast(const Lanes& lanes, Value* x, DType from, DType to) {
  auto& b = lanes.builder();
  llvm::Type* type = lanes.of(Lanes::memory_type(b.getContext(), to));
  return emit_from_memory(lanes, b.CreateBitCast(emit_to_memory(lanes, x, from), type), to);
}

// The part after "neuron.", empty when the composite is not one of functions.def.
std::string_view function_name(const ir::Operation& operation) {
  static constexpr std::string_view names[] = {
#define NEURON_FUNCTION(name, operands) #name,
#include "neuron/ir/functions.def"
#undef NEURON_FUNCTION
  };
  const auto* attribute = operation.attributes.find("name");
  const auto* text = attribute ? std::get_if<std::string>(attribute) : nullptr;
  if (text == nullptr || !text->starts_with("neuron.")) return {};
  std::string_view name = std::string_view(*text).substr(7);
  for (std::string_view known : names) {
    if (known == name) return name;
  }
  return {};
}

Value* function(const Lanes& lanes, std::string_view name, DType dtype, std::span<Value* const> x) {
  if (is_float(dtype)) {
    if (name == "trunc") return lanes.unary(llvm::Intrinsic::trunc, x[0]);
    if (name == "fma") return lanes.fma(x[0], x[1], x[2]);
    return emit_math(lanes, name, x);
  }
  if (name == "trunc") return x[0];
  fail(ErrorKind::Internal, "generated kernels have no {} of {}", name, dtype_name(dtype));
}

// One by one: what neighbours have in common is made use of where whole lines are made (kernel_emitter.h).
Value* random_number(const Lanes& lanes, DType dtype, std::span<Value* const> x) {
  return lanes.call_each(random_routine(dtype, false), Lanes::register_type(lanes.builder().getContext(), dtype),
                         llvm::ArrayRef<Value*>(x.data(), x.size()));
}

// Whether a result of bfloat16 operands is a bfloat16 without being rounded.
bool is_exact(const ir::Operation& operation) {
  switch (operation.opcode) {
    case Opcode::Abs:
    case Opcode::Ceil:
    case Opcode::Clamp:
    case Opcode::Floor:
    case Opcode::Imag:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Negate:
    case Opcode::Real:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::Sign:
      return true;
    default:
      return operation.opcode == Opcode::Composite && function_name(operation) == "trunc";
  }
}

// Operands wide (float32 for narrow floats), result wide.
Value* emit_wide(const Lanes& lanes, const ir::Operation& operation, DType dtype, std::span<Value* const> x) {
  const Opcode opcode = operation.opcode;
  switch (ir::op_info(opcode).category) {
    case ir::OpCategory::Unary:
      return is_float(dtype) ? unary_float(lanes, opcode, dtype, x[0]) : unary_integer(lanes, opcode, dtype, x[0]);
    case ir::OpCategory::Binary:
      if (opcode == Opcode::Compare) {
        return compare(lanes, operation.attributes.get<ComparisonDirection>("comparison_direction"), dtype, x[0], x[1]);
      }
      return emit_binary(lanes, opcode, dtype, x[0], x[1]);
    case ir::OpCategory::Ternary: {  // Clamp
      Value* raised = emit_binary(lanes, Opcode::Maximum, dtype, x[1], x[0]);
      return emit_binary(lanes, Opcode::Minimum, dtype, raised, x[2]);
    }
    default:
      break;
  }
  std::string_view name = opcode == Opcode::Composite ? function_name(operation) : std::string_view();
  if (name.empty()) unsupported(opcode, dtype);
  return function(lanes, name, dtype, x);
}

}  // namespace

Value* emit_binary(const Lanes& lanes, Opcode opcode, DType dtype, Value* x, Value* y) {
  if (dtype == DType::Bool) return binary_boolean(lanes, opcode, x, y);
  if (!is_float(dtype)) return binary_integer(lanes, opcode, dtype, x, y);
  return binary_float(lanes, opcode, compute_dtype(dtype), x, y);
}

Value* emit_operation(const Lanes& lanes, const ir::Graph& graph, const ir::Operation& operation,
                      std::span<Value* const> operands) {
  const DType from = graph.type(operation.operands[0]).dtype, to = graph.type(operation.results[0]).dtype;
  if (is_random(operation)) return random_number(lanes, to, operands);
  switch (operation.opcode) {
    case Opcode::Convert:
      return emit_convert(lanes, operands[0], from, to);
    case Opcode::BitcastConvert:
      return bitcast(lanes, operands[0], from, to);
    case Opcode::Select:
      return lanes.select(operands[0], operands[1], operands[2]);
    default:
      break;
  }
  if (!is_reduced_float(from)) return emit_wide(lanes, operation, from, operands);
  llvm::SmallVector<Value*, 4> wide;
  for (Value* operand : operands) wide.push_back(emit_widen(lanes, operand, from));
  Value* result = emit_wide(lanes, operation, from, {wide.data(), wide.size()});
  if (to == DType::BFloat16 && is_exact(operation)) return result;  // in register form as it is
  return is_reduced_float(to) ? emit_narrow(lanes, result, to) : result;
}

llvm::Constant* literal_constant(llvm::LLVMContext& context, const ir::Literal& literal) {
  const DType dtype = literal.type.dtype;
  check_internal(literal.is_splat(), "generated kernels take splat constants only; this one is {}",
                 ir::to_string(literal.type));
  llvm::Type* type = Lanes::register_type(context, dtype);
  if (type->isFloatingPointTy()) return llvm::ConstantFP::get(type, ir::literal_double(literal));
  uint64_t bits = 0;
  for (size_t i = 0; i < dtype_size(dtype); ++i) bits |= static_cast<uint64_t>(literal.bytes[i]) << (8 * i);
  return llvm::ConstantInt::get(type, dtype == DType::Bool ? bits != 0 : bits);
}

llvm::Constant* reducer_identity(llvm::LLVMContext& context, Opcode reducer, DType dtype) {
  llvm::Type* type = Lanes::register_type(context, dtype);
  check_internal(!is_reduced_float(dtype), "a reduction accumulates in {}; narrow floats are converted first",
                 dtype_name(dtype));
  const bool low = reducer == Opcode::Maximum;
  const bool extreme = low || reducer == Opcode::Minimum;
  if (is_float(dtype)) {
    if (extreme) return llvm::ConstantFP::getInfinity(type, low);
    return llvm::ConstantFP::get(type, reducer == Opcode::Multiply ? 1.0 : 0.0);
  }
  const unsigned bits = type->getIntegerBitWidth();
  if (dtype == DType::Bool)
    return llvm::ConstantInt::get(type,
                                  reducer == Opcode::Minimum || reducer == Opcode::And || reducer == Opcode::Multiply);
  if (extreme) {
    const bool is_unsigned = is_unsigned_integer(dtype);
    llvm::APInt value = low ? (is_unsigned ? llvm::APInt::getMinValue(bits) : llvm::APInt::getSignedMinValue(bits))
                            : (is_unsigned ? llvm::APInt::getMaxValue(bits) : llvm::APInt::getSignedMaxValue(bits));
    return llvm::ConstantInt::get(context, value);
  }
  if (reducer == Opcode::And) return llvm::Constant::getAllOnesValue(type);
  return llvm::ConstantInt::get(type, reducer == Opcode::Multiply ? 1 : 0);
}

std::string_view random_routine(DType dtype, bool line) {
  switch (dtype) {
    case DType::UInt32:
      return line ? "neuron_random_words" : "neuron_random_word";
    case DType::UInt64:
      return line ? "neuron_random_long_words" : "neuron_random_long_word";
    case DType::Float32:
      return line ? "neuron_random_normals" : "neuron_random_normal";
    default:
      return line ? "neuron_random_normals_double" : "neuron_random_normal_double";
  }
}

bool is_random(const ir::Operation& operation) {
  return operation.opcode == Opcode::Composite && function_name(operation).starts_with("random_");
}

bool is_elementwise(const ir::Operation& operation) {
  switch (ir::op_info(operation.opcode).category) {
    case ir::OpCategory::Unary:
    case ir::OpCategory::Binary:
    case ir::OpCategory::Ternary:
      return operation.opcode != Opcode::Complex;
    default:
      return operation.opcode == Opcode::Composite && !function_name(operation).empty();
  }
}

int operation_cost(const ir::Graph& graph, const ir::Operation& operation) {
  const DType dtype = operation.operands.empty() ? DType::Float32 : graph.type(operation.operands[0]).dtype;
  const DType compute = compute_dtype(dtype);
  switch (operation.opcode) {
    case Opcode::BroadcastInDim:
    case Opcode::Constant:
    case Opcode::Reshape:
      return 0;
    case Opcode::Divide:
    case Opcode::Sqrt:
      return is_integer(dtype) ? 20 : 4;
    case Opcode::Rsqrt:
      return 8;
    case Opcode::Power:
      return is_integer(dtype) ? 100 : math_cost("pow", compute);
    case Opcode::Remainder:
      return is_integer(dtype) ? 22 : math_cost("fmod", compute);
    case Opcode::Atan2:
      return math_cost("atan2", compute);
    case Opcode::Convert: {
      const DType to = graph.type(operation.results[0]).dtype;
      const bool float8 = dtype_size(is_reduced_float(dtype) ? dtype : to) == 1 && is_float(to);
      return float8 ? 10 : to == DType::BFloat16 ? 4 : 1;
    }
    case Opcode::Composite: {
      std::string_view name = function_name(operation);
      const DType to = graph.type(operation.results[0]).dtype;
      if (name == "random_bits") return to == DType::UInt64 ? 80 : 40;
      if (name == "random_normal") return to == DType::Float64 ? 400 : 65;
      return name == "trunc" || name == "fma" ? 1 : math_cost(name, compute);
    }
    default:
      break;
  }
  std::string_view name = math_function_of(operation.opcode);
  return name.empty() ? 1 : math_cost(name, compute);
}

}  // namespace neuron::codegen
