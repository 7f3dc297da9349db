// One rule for the bits of a float32 rounded to bfloat16 (docs/numerics.md), whoever rounds it: the plain function,
// loops over elements and lines, the stores of matrix products, the interpreter and generated kernels. Lengths cover
// the vector loops and what they leave over.
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "codegen_harness.h"
#include "interpret_testing.h"
#include "neuron/base/processor.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/gemm_microkernel.h"

namespace neuron {
namespace {

using Narrow = std::vector<uint16_t>;

struct Rounding {
  uint32_t value;
  uint16_t expected;
};
constexpr Rounding kRoundings[] = {
    // NaN: quiet and signalling, of either sign, with a payload in the lower or the upper half.
    {0x7fc00000, 0x7fc0},
    {0xffc00000, 0x7fc0},
    {0x7f800001, 0x7fc0},
    {0xff800001, 0x7fc0},
    {0x7fffffff, 0x7fc0},
    {0xffffffff, 0x7fc0},
    {0xffb54321, 0x7fc0},
    // Infinities, the largest number, ties, zeros and subnormal numbers.
    {0x7f800000, 0x7f80},
    {0xff800000, 0xff80},
    {0x7f7fffff, 0x7f80},
    {0x3f808000, 0x3f80},
    {0x3f818000, 0x3f82},
    {0xbf808001, 0xbf81},
    {0x80000000, 0x8000},
    {0x00018000, 0x0002},
    {0x807f8000, 0x8080},
};
constexpr int64_t kCount = std::size(kRoundings);

class Bfloat16Rounding : public testing::TestWithParam<int64_t> {
 protected:
  Bfloat16Rounding() {
    for (int64_t i = 0; i < GetParam(); ++i) {
      values.push_back(std::bit_cast<float>(kRoundings[i % kCount].value));
      expected.push_back(kRoundings[i % kCount].expected);
    }
  }
  int64_t count() const { return GetParam(); }

  std::vector<float> values;
  Narrow expected;
};

TEST_P(Bfloat16Rounding, OfElementsAndLines) {
  Narrow plain, element, line(expected.size());
  for (float value : values) {
    plain.push_back(float_to_bfloat16(value));
    element.push_back(kernels::BFloat16Element::store(value));
  }
  kernels::narrow_bfloat16(values.data(), line.data(), count());
  EXPECT_EQ(plain, expected);
  EXPECT_EQ(element, expected);
  EXPECT_EQ(line, expected);
}

TEST_P(Bfloat16Rounding, OfProducts) {
  std::vector<const kernels::GemmMicrokernel*> sets{&kernels::gemm_microkernel_avx2};
  if (processor_features().runs_avx512()) sets.push_back(&kernels::gemm_microkernel_avx512);
  if (kernels::has_bfloat16_units()) sets.push_back(&kernels::gemm_microkernel_bfloat16);
  for (const auto* set : sets) {
    Narrow stored(expected.size());
    set->store(kernels::PackedSource::BFloat16, values.data(), count(), stored.data());
    EXPECT_EQ(stored, expected) << set->name;
  }
}

TEST_P(Bfloat16Rounding, OfTheInterpreter) {
  interpret::Buffer input(DType::Float32, Dims{count()});
  std::memcpy(input.bytes.data(), values.data(), input.bytes.size());
  const interpret::Buffer result = interpret::testing::run(
      {input}, [](ir::Builder& b, auto& parameters) { return b.convert(parameters[0], DType::BFloat16); });
  EXPECT_EQ(interpret::testing::values<uint16_t>(result), expected);
}

TEST_P(Bfloat16Rounding, OfGeneratedKernels) {
  codegen::RegionBuilder region(1);
  region.result(region.builder.convert(region.tensor(DType::Float32), DType::BFloat16));
  const codegen::RegionSpec spec = region.finish();
  std::vector<codegen::HostTarget> targets{codegen::HostTarget::Avx2};
  if (codegen::detected_host_target() == codegen::HostTarget::Avx512) targets.push_back(codegen::HostTarget::Avx512);
  for (codegen::HostTarget target : targets) {
    Narrow result(expected.size());
    const int64_t sizes[] = {count()}, strides[] = {1, 1};
    void* const pointers[] = {values.data(), result.data()};
    const uint64_t scalars[] = {0};
    codegen::host_compiler().compile_for(spec, target)->run({sizes, pointers, strides, scalars, 1});
    EXPECT_EQ(result, expected) << codegen::host_target_name(target);
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, Bfloat16Rounding, testing::Values(1, 7, 16, 23, 100));

}  // namespace
}  // namespace neuron
