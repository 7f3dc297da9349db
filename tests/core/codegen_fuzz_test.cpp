// Random regions: the generated kernel against the interpreter, and the same operations as one region against one
// region each.
#include "codegen_harness.h"
#include "neuron/ir/random_functions.h"

namespace neuron::codegen {
namespace {

using ir::ComparisonDirection;
using ir::Opcode;
using ir::Value;

// Only operations that the interpreter defines exactly.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {}

  RegionSpec make(Reduction reduction) {
    const int rank = static_cast<int>(pick(3)) + (reduction == Reduction::Outer ? 2 : 1);
    RegionBuilder r(rank, reduction);
    for (int i = 0, n = 1 + static_cast<int>(pick(4)); i < n; ++i) add_input(r);
    const int operations = 3 + static_cast<int>(pick(12));
    for (int i = 0; i < operations; ++i) add_operation(r);
    if (reduction == Reduction::None) {
      for (int i = 0, n = 1 + static_cast<int>(pick(3)); i < n; ++i) r.result(any(), inner(true));
    } else {
      reduce_some(r);
    }
    return r.finish();
  }

  std::vector<int64_t> sizes(const RegionSpec& spec) {
    std::vector<int64_t> all;
    for (int d = 0; d < spec.rank; ++d) all.push_back(1 + static_cast<int64_t>(pick(4)));
    all.back() = static_cast<int64_t>(pick(300));
    if (spec.reduction == Reduction::Inner && pick(4) == 0) all.back() = 4000 + static_cast<int64_t>(pick(900));
    if (spec.reduction == Reduction::Outer)
      all[all.size() - 2] = static_cast<int64_t>(pick(600)), all.back() = 2 + static_cast<int64_t>(pick(80));
    return all;
  }

 private:
  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_()) % count; }
  Value any() { return values_[pick(static_cast<uint32_t>(values_.size()))]; }
  InnerStride inner(bool output = false) {
    const uint32_t choice = pick(output ? 4 : 6);
    return choice == 0 ? InnerStride::Other : choice == 5 ? InnerStride::Zero : InnerStride::One;
  }
  // Any earlier value as `dtype`.
  Value operand(RegionBuilder& r, DType dtype) { return r.builder.convert(any(), dtype); }

  void add_input(RegionBuilder& r) {
    static constexpr DType dtypes[] = {DType::Float32, DType::Float32, DType::Float32, DType::BFloat16,
                                       DType::Float16, DType::Float64, DType::Int32,   DType::Int64,
                                       DType::UInt8,   DType::Bool,    DType::Int16};
    switch (pick(6)) {
      case 0:
        return values_.push_back(r.scalar(pick(2) ? DType::Float64 : DType::Int64, DType::Float32));
      case 1:
        return values_.push_back(r.index(inner(), pick(2) ? DType::Int64 : DType::Int32));
      default:
        values_.push_back(r.tensor(dtypes[pick(std::size(dtypes))], inner()));
    }
  }

  void add_operation(RegionBuilder& r) {
    static constexpr DType dtypes[] = {DType::Float32, DType::Float32, DType::Float32, DType::BFloat16,
                                       DType::Float64, DType::Int32,   DType::Int64};
    static constexpr Opcode binary[] = {Opcode::Add,    Opcode::Subtract, Opcode::Multiply,
                                        Opcode::Divide, Opcode::Maximum,  Opcode::Minimum};
    static constexpr Opcode unary[] = {Opcode::Abs, Opcode::Negate, Opcode::Sign};
    auto& b = r.builder;
    const DType dtype = dtypes[pick(std::size(dtypes))];
    switch (pick(7)) {
      case 0:
        return values_.push_back(b.unary(unary[pick(3)], operand(r, dtype)));
      case 1:
        return values_.push_back(
            b.compare(static_cast<ComparisonDirection>(pick(6)), operand(r, dtype), operand(r, dtype)));
      case 2:
        return values_.push_back(b.select(operand(r, DType::Bool), operand(r, dtype), operand(r, dtype)));
      case 3:
        return values_.push_back(b.binary(binary[pick(6)], operand(r, dtype), r.constant(dtype, 1 + pick(5))));
      case 4:
        return values_.push_back(b.unary(is_float(dtype) ? Opcode::Sqrt : Opcode::Not, operand(r, dtype)));
      case 5: {
        Value element = r.index(inner()), seed = r.scalar(DType::Int64, DType::Int64);
        return values_.push_back(pick(2) ? ir::random_bits(b, element, seed, seed, DType::UInt32)
                                         : ir::random_normal(b, element, seed, seed, DType::Float32));
      }
      default:
        return values_.push_back(b.binary(binary[pick(6)], operand(r, dtype), operand(r, dtype)));
    }
  }

  void reduce_some(RegionBuilder& r) {
    static constexpr Opcode reducers[] = {Opcode::Add, Opcode::Maximum, Opcode::Minimum, Opcode::Multiply};
    for (int i = 0, n = 1 + static_cast<int>(pick(3)); i < n; ++i) {
      const DType dtype = pick(4) == 0 ? DType::Int32 : DType::Float32;
      Value reduced = r.reduce(reducers[pick(4)], operand(r, dtype), 1);
      if (pick(2)) reduced = r.builder.add(reduced, r.builder.constant_like(reduced, 2));
      r.result(reduced);
      if (r.spec.reduction != Reduction::Inner) continue;
      values_.push_back(r.spread(reduced));
      add_operation(r);
    }
    if (pick(3) != 0) r.result(any(), inner(true));
  }

  std::mt19937 random_;
  std::vector<Value> values_;
};

class CodegenFuzz : public ::testing::TestWithParam<Reduction> {};

TEST_P(CodegenFuzz, KernelsEqualTheInterpreter) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomGraph random(seed);
    RegionSpec spec = random.make(GetParam());
    // Whether or not this processor can run it.
    if (seed <= 5) {
      EXPECT_NE(host_compiler().disassemble(spec, HostTarget::Avx512).find("kernel:"), std::string::npos);
    }
    for (int i = 0; i < 3; ++i) check_region(spec, random.sizes(spec), 0, seed % 3 == 0);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Reductions, CodegenFuzz,
                         ::testing::Values(Reduction::None, Reduction::Inner, Reduction::Outer));

// Transcendentals have no exact reference, but their bits may not depend on what they are fused with.
TEST(CodegenFusion, OneRegionHasTheBitsOfThreeRegions) {
  const int64_t n = 1003;
  std::vector<float> x(n), e(n), t(n), separate(n), fused(n);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i - 500) * 0.037f;
  auto run = [n](const RegionSpec& spec, std::vector<void*> pointers) {
    std::vector<int64_t> strides(pointers.size(), 1);
    std::vector<uint64_t> scalars(pointers.size(), 0);
    compiled(spec, detected_host_target())->run({&n, pointers.data(), strides.data(), scalars.data(), 1});
  };
  auto unary = [&](Opcode opcode) {
    RegionBuilder r(1);
    r.result(r.builder.unary(opcode, r.tensor(DType::Float32)));
    return r.finish();
  };
  run(unary(Opcode::Logistic), {x.data(), e.data()});
  run(unary(Opcode::Tanh), {e.data(), t.data()});
  {
    RegionBuilder r(1);
    Value a = r.tensor(DType::Float32), b = r.tensor(DType::Float32);
    r.result(r.builder.multiply(a, b));
    run(r.finish(), {t.data(), x.data(), separate.data()});
  }
  RegionBuilder r(1);
  Value a = r.tensor(DType::Float32);
  r.result(r.builder.multiply(r.builder.unary(Opcode::Tanh, r.builder.unary(Opcode::Logistic, a)), a));
  run(r.finish(), {x.data(), fused.data()});
  EXPECT_EQ(separate, fused);
}

}  // namespace
}  // namespace neuron::codegen
