#include "neuron/codegen/llvm/lanes.h"

#include <llvm/IR/Module.h>

#include "neuron/base/error.h"

namespace neuron::codegen {

llvm::Type* Lanes::register_type(llvm::LLVMContext& context, DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return llvm::Type::getInt1Ty(context);
    case DType::BFloat16:
    case DType::Float32:
      return llvm::Type::getFloatTy(context);
    case DType::Float64:
      return llvm::Type::getDoubleTy(context);
    case DType::Complex64:
    case DType::Complex128:
      fail(ErrorKind::Internal, "generated kernels have no {}", dtype_name(dtype));
    default:
      return llvm::Type::getIntNTy(context, static_cast<unsigned>(8 * dtype_size(dtype)));
  }
}

llvm::Type* Lanes::memory_type(llvm::LLVMContext& context, DType dtype) {
  if (dtype == DType::BFloat16) return llvm::Type::getInt16Ty(context);
  return dtype == DType::Bool ? llvm::Type::getInt8Ty(context) : register_type(context, dtype);
}

bool Lanes::has_wide_registers() const {
  return builder_.GetInsertBlock()->getParent()->getFnAttribute("prefer-vector-width").getValueAsString() == "512";
}

llvm::Value* Lanes::bits(llvm::Value* value) const {
  return builder_.CreateBitCast(value, integer(static_cast<int>(value->getType()->getScalarSizeInBits())));
}

llvm::Value* Lanes::from_bits(llvm::Value* value) const {
  return builder_.CreateBitCast(value, value->getType()->getScalarSizeInBits() == 64 ? f64() : f32());
}

llvm::Value* Lanes::each(llvm::Type* result, llvm::ArrayRef<llvm::Value*> operands,
                         const std::function<llvm::Value*(llvm::ArrayRef<llvm::Value*>)>& function) const {
  if (width_ == 1) return function(operands);
  llvm::Value* all = llvm::PoisonValue::get(of(result));
  llvm::SmallVector<llvm::Value*, 4> lane;
  for (int i = 0; i < width_; ++i) {
    lane.clear();
    for (llvm::Value* operand : operands) lane.push_back(builder_.CreateExtractElement(operand, i));
    all = builder_.CreateInsertElement(all, function(lane), i);
  }
  return all;
}

llvm::Value* Lanes::call_each(std::string_view function, llvm::Type* result,
                              llvm::ArrayRef<llvm::Value*> operands) const {
  llvm::SmallVector<llvm::Type*, 4> types;
  for (llvm::Value* operand : operands) types.push_back(operand->getType()->getScalarType());
  auto* module = builder_.GetInsertBlock()->getModule();
  auto callee = module->getOrInsertFunction(llvm::StringRef(function.data(), function.size()),
                                            llvm::FunctionType::get(result, types, false));
  return each(result, operands, [&](llvm::ArrayRef<llvm::Value*> lane) {
    auto* call = builder_.CreateCall(callee, lane);
    call->setDoesNotThrow();
    return call;
  });
}

}  // namespace neuron::codegen
