// Random numbers in generated kernels are the interpreter's, whatever the kernel looks like: lines of neighbours, rows
// that begin anywhere, strides, reductions, values kept for a later pass.
#include "codegen_harness.h"
#include "neuron/ir/random_functions.h"

namespace neuron::codegen {
namespace {

using ir::Opcode;
using ir::Value;

constexpr DType kKinds[] = {DType::UInt32, DType::UInt64, DType::Float32, DType::Float64};

Value make(RegionBuilder& r, DType dtype, Value element, Value seed, Value offset) {
  return (is_float(dtype) ? ir::random_normal : ir::random_bits)(r.builder, element, seed, offset, dtype);
}

Value numbers(RegionBuilder& r, DType dtype, InnerStride inner) {
  Value element = r.index(inner), seed = r.scalar(DType::Int64, DType::Int64),
        offset = r.scalar(DType::Int64, DType::Int64);
  return make(r, dtype, element, seed, offset);
}

TEST(CodegenRandom, ElementwiseRegions) {
  for (DType dtype : kKinds) {
    for (InnerStride inner : {InnerStride::One, InnerStride::Other, InnerStride::Zero}) {
      for (int rank : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{} rank {} stride {}", dtype_name(dtype), rank, static_cast<int>(inner)));
        RegionBuilder r(rank);
        Value number = numbers(r, dtype, inner);
        r.result(number);
        r.result(r.builder.add(r.builder.convert(number, DType::Float32), r.tensor(DType::Float32)));
        RegionSpec spec = r.finish();
        for (int64_t columns : {1, 7, 64, 129, 1024, 2500}) {
          std::vector<int64_t> sizes(static_cast<size_t>(rank), 3);
          sizes.back() = columns;
          check_region(spec, sizes, 0, false);
        }
        // Many short rows, which share groups.
        std::vector<int64_t> sizes(static_cast<size_t>(rank), 5);
        sizes.front() = 90;
        check_region(spec, sizes, 0, false);
      }
    }
  }
}

TEST(CodegenRandom, TwoAtATimeAndTheElementItself) {
  RegionBuilder r(2);
  Value first = numbers(r, kKinds[0], InnerStride::One), second = numbers(r, kKinds[2], InnerStride::Other);
  // The index is read as well, by a body of another width.
  Value element = r.index(InnerStride::One), seed = r.scalar(DType::Int64, DType::Int64);
  Value third = ir::random_bits(r.builder, element, seed, seed, DType::UInt32);
  r.result(r.builder.convert(r.builder.binary(Opcode::Xor, first, third), DType::Bool));
  r.result(r.builder.multiply(second, r.builder.convert(element, DType::Float32)));
  RegionSpec spec = r.finish();
  for (int64_t columns : {5, 100, 3000}) check_region(spec, {4, columns}, 0, false);
}

// An element that is computed has its numbers one by one.
TEST(CodegenRandom, ComputedElements) {
  for (DType dtype : kKinds) {
    RegionBuilder r(1);
    Value element = r.builder.add(r.index(InnerStride::One), r.constant(DType::Int64, 3)),
          seed = r.scalar(DType::Int64, DType::Int64);
    r.result(make(r, dtype, element, seed, seed));
    check_region(r.finish(), {77}, 0, false);
  }
}

TEST(CodegenRandom, Reductions) {
  for (DType dtype : {kKinds[0], kKinds[2]}) {
    for (Reduction reduction : {Reduction::Inner, Reduction::Outer}) {
      for (InnerStride inner : {InnerStride::One, InnerStride::Other}) {
        RegionBuilder r(2, reduction);
        Value number = r.builder.convert(numbers(r, dtype, inner), DType::Float32);
        Value scaled = r.builder.multiply(number, r.tensor(DType::Float32));
        Value sum = r.reduce(Opcode::Add, scaled, 0);
        r.result(sum);
        // Inner: the numbers are needed again in the second pass.
        if (reduction == Reduction::Inner) scaled = r.builder.subtract(scaled, r.spread(sum));
        r.result(scaled);
        RegionSpec spec = r.finish();
        for (int64_t columns : {3, 64, 1100, 4500}) check_region(spec, {5, columns}, 0, false);
        check_region(spec, {600, 40}, 0, false);
      }
    }
  }
}

}  // namespace
}  // namespace neuron::codegen
