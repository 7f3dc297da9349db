// A bundle of equal lanes in generated code: the one vocabulary of all emitters in this folder. With width 1 it emits
// scalar code, so that per-row values and per-element values come from the same functions and have the same bits.
//
// Values in registers have these LLVM element types: i1 for bool, iN for integers, i8/i16 (the bits) for narrow floats,
// float, double; a bfloat16 is a float whose lower half is zero. In memory a bool is a byte and a bfloat16 an i16.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <functional>
#include <string_view>

#include "neuron/base/dtype.h"

namespace neuron::codegen {

class Lanes {
 public:
  Lanes(llvm::IRBuilder<>& builder, int width) : builder_(builder), width_(width) {}

  llvm::IRBuilder<>& builder() const { return builder_; }
  // Whether the function at work is generated for registers of 64 bytes.
  bool has_wide_registers() const;
  int width() const { return width_; }

  llvm::Type* of(llvm::Type* element) const {
    return width_ == 1 ? element : llvm::FixedVectorType::get(element, width_);
  }
  llvm::Type* i1() const { return of(builder_.getInt1Ty()); }
  llvm::Type* i32() const { return of(builder_.getInt32Ty()); }
  llvm::Type* i64() const { return of(builder_.getInt64Ty()); }
  llvm::Type* f32() const { return of(builder_.getFloatTy()); }
  llvm::Type* f64() const { return of(builder_.getDoubleTy()); }
  llvm::Type* integer(int bits) const { return of(builder_.getIntNTy(bits)); }
  llvm::Type* of(DType dtype) const { return of(register_type(builder_.getContext(), dtype)); }

  // Splat constants.
  llvm::Value* f32(double value) const { return llvm::ConstantFP::get(f32(), value); }
  llvm::Value* f64(double value) const { return llvm::ConstantFP::get(f64(), value); }
  llvm::Value* i32(int64_t value) const { return llvm::ConstantInt::get(i32(), static_cast<uint64_t>(value), true); }
  // Like `like`, float or integer.
  llvm::Value* number(llvm::Value* like, double value) const { return llvm::ConstantFP::get(like->getType(), value); }
  llvm::Value* integer(llvm::Value* like, int64_t value) const {
    return llvm::ConstantInt::get(like->getType(), static_cast<uint64_t>(value), true);
  }
  llvm::Value* splat(llvm::Value* scalar) const {
    return width_ == 1 ? scalar : builder_.CreateVectorSplat(width_, scalar);
  }

  // Reinterpretations of float32 and double.
  llvm::Value* bits(llvm::Value* value) const;
  llvm::Value* from_bits(llvm::Value* value) const;
  // The only way an fma gets into generated code.
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) const {
    return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  }
  llvm::Value* unary(llvm::Intrinsic::ID intrinsic, llvm::Value* x) const {
    return builder_.CreateIntrinsic(intrinsic, {x->getType()}, {x});
  }
  llvm::Value* absolute(llvm::Value* x) const { return unary(llvm::Intrinsic::fabs, x); }
  llvm::Value* copy_sign(llvm::Value* magnitude, llvm::Value* sign) const {
    return builder_.CreateIntrinsic(llvm::Intrinsic::copysign, {magnitude->getType()}, {magnitude, sign});
  }
  llvm::Value* is_nan(llvm::Value* x) const { return builder_.CreateFCmpUNO(x, x); }
  llvm::Value* select(llvm::Value* condition, llvm::Value* on_true, llvm::Value* on_false) const {
    return builder_.CreateSelect(condition, on_true, on_false);
  }

  // `function(operand lanes)` for each lane; `result` is the element type. For what has no vector form.
  llvm::Value* each(llvm::Type* result, llvm::ArrayRef<llvm::Value*> operands,
                    const std::function<llvm::Value*(llvm::ArrayRef<llvm::Value*>)>& function) const;
  // Calls a C function of runtime_functions.h for each lane.
  llvm::Value* call_each(std::string_view function, llvm::Type* result, llvm::ArrayRef<llvm::Value*> operands) const;

  static llvm::Type* register_type(llvm::LLVMContext& context, DType dtype);
  static llvm::Type* memory_type(llvm::LLVMContext& context, DType dtype);

 private:
  llvm::IRBuilder<>& builder_;
  int width_;
};

}  // namespace neuron::codegen
