#include "neuron/codegen/llvm/math_tables.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <numeric>

namespace neuron::codegen {

using llvm::Value;

namespace {

// Lanes [first, first + count) of a vector; those it does not have are undefined.
Value* lanes_of(llvm::IRBuilder<>& b, Value* vector, int first, int count, int defined) {
  llvm::SmallVector<int, 16> mask(static_cast<size_t>(count), llvm::PoisonMaskElem);
  std::iota(mask.begin(), mask.begin() + defined, first);
  return b.CreateShuffleVector(vector, mask);
}

Value* emit_from_memory(const Lanes& lanes, const Table& table, Value* index) {
  auto& b = lanes.builder();
  Value* data = llvm::ConstantDataArray::get(b.getContext(), llvm::ArrayRef(table));
  auto* memory = new llvm::GlobalVariable(*b.GetInsertBlock()->getModule(), data->getType(), true,
                                          llvm::GlobalValue::PrivateLinkage, llvm::cast<llvm::Constant>(data));
  return lanes.each(b.getFloatTy(), {index}, [&](llvm::ArrayRef<Value*> operands) -> Value* {
    return b.CreateLoad(b.getFloatTy(), b.CreateGEP(b.getFloatTy(), memory, b.CreateAnd(operands[0], b.getInt32(7))));
  });
}

}  // namespace

Value* emit_one_of_8(const Lanes& lanes, const Table& table, Value* index) {
  auto& b = lanes.builder();
  const int width = lanes.width();
  if (width == 1) return emit_from_memory(lanes, table, index);
  if (width == 16 && lanes.has_wide_registers()) {
    std::array<float, 16> twice;
    for (size_t i = 0; i < twice.size(); ++i) twice[i] = table[i % 8];
    Value* values = llvm::ConstantDataVector::get(b.getContext(), llvm::ArrayRef(twice));
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {values, index});
  }
  // Registers of eight lanes.
  Value* values = llvm::ConstantDataVector::get(b.getContext(), llvm::ArrayRef(table));
  llvm::SmallVector<Value*, 4> parts;
  for (int first = 0; first < width; first += 8) {
    const int defined = std::min(8, width - first);
    Value* part = width == 8 ? index : lanes_of(b, index, first, 8, defined);
    Value* found = b.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {}, {values, part});
    parts.push_back(defined == 8 ? found : lanes_of(b, found, 0, defined, defined));
  }
  return llvm::concatenateVectors(b, parts);
}

}  // namespace neuron::codegen
