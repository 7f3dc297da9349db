#include <atomic>
#include <thread>

#include "codegen_harness.h"

#include "neuron/base/error.h"

namespace neuron::codegen {
namespace {

using ir::ComparisonDirection;
using ir::Opcode;
using ir::Value;

constexpr DType kReal[] = {DType::Bool,       DType::UInt8,    DType::UInt16,  DType::UInt32,  DType::UInt64,
                           DType::Int8,       DType::Int16,    DType::Int32,   DType::Int64,   DType::Float8E4M3FN,
                           DType::Float8E5M2, DType::BFloat16, DType::Float16, DType::Float32, DType::Float64};

TEST(CodegenElementwise, ChainOfEveryStrideClassAndRank) {
  for (int rank = 1; rank <= 4; ++rank) {
    RegionBuilder r(rank);
    Value x = r.tensor(DType::Float32), y = r.tensor(DType::Float32, InnerStride::Other),
          z = r.tensor(DType::Float32, InnerStride::Zero);
    Value a = r.scalar(DType::Float64, DType::Float32);
    auto& b = r.builder;
    Value sum = b.add(b.multiply(x, y), b.subtract(z, a));
    r.result(b.maximum(sum, r.constant(DType::Float32, 0)));
    r.result(b.compare(ComparisonDirection::LT, x, y), InnerStride::Other);
    RegionSpec spec = r.finish();
    for (int64_t inner : {0, 1, 7, 31, 32, 33, 100, 257}) {
      std::vector<int64_t> sizes{3, 2, 5, 2};
      sizes.resize(static_cast<size_t>(rank));
      sizes.back() = inner;
      SCOPED_TRACE(fmt::format("rank {} inner {}", rank, inner));
      check_region(spec, sizes);
    }
  }
}

TEST(CodegenElementwise, Bfloat16OfEveryLength) {
  for (DType other : {DType::BFloat16, DType::Float32}) {
    RegionBuilder r(2);
    Value x = r.tensor(DType::BFloat16), y = r.tensor(other), z = r.tensor(DType::BFloat16, InnerStride::Zero);
    auto& b = r.builder;
    Value sum = b.add(b.multiply(x, b.convert(y, DType::BFloat16)), z);
    r.result(sum);
    r.result(b.unary(Opcode::Exponential, b.select(b.compare(ComparisonDirection::LT, x, sum), x, sum)));
    RegionSpec spec = r.finish();
    for (int64_t inner = 1; inner < 150; inner += inner < 70 ? 1 : 13) {
      SCOPED_TRACE(fmt::format("{} inner {}", dtype_name(other), inner));
      check_region(spec, {3, inner}, 1, true);
    }
  }
}

TEST(CodegenElementwise, Bfloat16KeepsWhatItOnlyMoves) {
  RegionBuilder r(1);
  Value x = r.tensor(DType::BFloat16), y = r.tensor(DType::BFloat16);
  Value zero = r.constant(DType::BFloat16, 0);
  r.result(r.builder.select(r.builder.compare(ComparisonDirection::LT, y, zero), y, x));
  RegionSpec spec = r.finish();
  std::vector<uint16_t> patterns(65536), zeros(patterns.size());
  for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
  for (HostTarget target : runnable_targets()) {
    auto executable = host_compiler().compile_for(spec, target);
    for (int64_t n : {int64_t{65536}, int64_t{65536 - 5}}) {
      std::vector<uint16_t> out(patterns.size());
      void* pointers[] = {patterns.data(), zeros.data(), out.data()};
      int64_t strides[] = {1, 1, 1};
      uint64_t scalars[] = {0, 0};
      executable->run({&n, pointers, strides, scalars, 1});
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], patterns[i]);
    }
  }
}

TEST(CodegenElementwise, EmptyOuterDimensionDoesNothing) {
  RegionBuilder r(3);
  r.result(r.builder.negate(r.tensor(DType::Float32)));
  check_region(r.finish(), {2, 0, 5});
}

TEST(CodegenElementwise, IndexOperands) {
  for (DType dtype : {DType::Int64, DType::Int32}) {
    for (InnerStride inner : {InnerStride::Zero, InnerStride::One, InnerStride::Other}) {
      RegionBuilder r(2);
      Value i = r.index(inner, dtype), x = r.tensor(DType::Float32);
      auto& b = r.builder;
      r.result(b.add(x, b.convert(i, DType::Float32)));
      r.result(i);
      check_region(r.finish(), {5, 37});
    }
  }
}

TEST(CodegenElementwise, EveryConversionWithSpecialValues) {
  for (DType from : kReal) {
    RegionBuilder r(1);
    Value x = r.tensor(from);
    for (DType to : kReal) {
      if (to != from) r.result(r.builder.convert(x, to));
    }
    SCOPED_TRACE(std::string(dtype_name(from)));
    check_region(r.finish(), {500}, 0, true, -500, 500);
  }
}

TEST(CodegenElementwise, EveryBinaryOperationOfEveryDtype) {
  constexpr Opcode common[] = {Opcode::Add,     Opcode::Subtract, Opcode::Multiply, Opcode::Divide,
                               Opcode::Maximum, Opcode::Minimum,  Opcode::Remainder};
  constexpr Opcode integral[] = {
      Opcode::And,  Opcode::Or, Opcode::Xor, Opcode::ShiftLeft, Opcode::ShiftRightArithmetic, Opcode::ShiftRightLogical,
      Opcode::Power};
  for (DType dtype : kReal) {
    RegionBuilder r(1);
    Value x = r.tensor(dtype), y = r.tensor(dtype);
    for (Opcode opcode : common) r.result(r.builder.binary(opcode, x, y));
    for (Opcode opcode : integral) {
      const bool shift =
          opcode == Opcode::ShiftLeft || opcode == Opcode::ShiftRightArithmetic || opcode == Opcode::ShiftRightLogical;
      if (!is_float(dtype) && !(shift && dtype == DType::Bool)) r.result(r.builder.binary(opcode, x, y));
    }
    for (int d = 0; d < 6; ++d) r.result(r.builder.compare(static_cast<ComparisonDirection>(d), x, y));
    r.result(r.builder.select(r.builder.compare(ComparisonDirection::LT, x, y), x, y));
    if (dtype != DType::Bool) r.result(r.builder.clamp(x, y, r.builder.binary(Opcode::Maximum, x, y)));
    SCOPED_TRACE(std::string(dtype_name(dtype)));
    check_region(r.finish(), {700}, 0, true, -20, 20);
  }
}

TEST(CodegenElementwise, EveryExactUnaryOperationOfEveryDtype) {
  constexpr Opcode floats[] = {
      Opcode::Abs,  Opcode::Ceil, Opcode::Floor, Opcode::Negate,  Opcode::RoundNearestAfz, Opcode::RoundNearestEven,
      Opcode::Sign, Opcode::Sqrt, Opcode::Rsqrt, Opcode::IsFinite};
  constexpr Opcode integers[] = {Opcode::Abs,     Opcode::CountLeadingZeros, Opcode::Negate,
                                 Opcode::Not,     Opcode::PopulationCount,   Opcode::Sign,
                                 Opcode::IsFinite};
  constexpr Opcode booleans[] = {Opcode::Abs, Opcode::Not, Opcode::Sign, Opcode::PopulationCount,
                                 Opcode::CountLeadingZeros};
  for (DType dtype : kReal) {
    RegionBuilder r(1);
    Value x = r.tensor(dtype);
    if (is_float(dtype)) {
      for (Opcode opcode : floats) r.result(r.builder.unary(opcode, x));
      r.result(r.builder.function("trunc", x));
      Value three[] = {x, x, r.constant(dtype, 0.3)};
      r.result(r.builder.function("fma", three));
    } else if (dtype == DType::Bool) {
      for (Opcode opcode : booleans) r.result(r.builder.unary(opcode, x));
    } else {
      for (Opcode opcode : integers) r.result(r.builder.unary(opcode, x));
    }
    SCOPED_TRACE(std::string(dtype_name(dtype)));
    check_region(r.finish(), {700}, 0, true, -20, 20);
  }
}

TEST(CodegenElementwise, InPlaceOutputReadsABlockBeforeWritingIt) {
  RegionBuilder r(1);
  Value x = r.tensor(DType::Float32), y = r.tensor(DType::Float32);
  r.result(r.builder.add(x, y));
  r.result(r.builder.subtract(x, y));
  RegionSpec spec = r.finish();
  auto executable = host_compiler().compile(spec);
  for (int64_t n : {5, 64, 1000}) {
    std::vector<float> a(n), b(n);
    for (int64_t i = 0; i < n; ++i) a[i] = static_cast<float>(i), b[i] = static_cast<float>(3 * i + 1);
    void* pointers[] = {a.data(), b.data(), b.data(), a.data()};
    int64_t strides[] = {1, 1, 1, 1};
    uint64_t scalars[] = {0, 0};
    executable->run({&n, pointers, strides, scalars, 1});
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(b[i], static_cast<float>(4 * i + 1));
      ASSERT_EQ(a[i], static_cast<float>(-2 * i - 1));
    }
  }
}

TEST(CodegenElementwise, AnyNonZeroByteOfABoolIsTrue) {
  RegionBuilder r(1);
  Value x = r.tensor(DType::Bool);
  r.result(r.builder.convert(x, DType::Int32));
  r.result(x);
  auto executable = host_compiler().compile(r.finish());
  uint8_t bytes[] = {0, 1, 2, 255, 0, 128};
  int32_t numbers[6];
  uint8_t copies[6];
  int64_t n = 6, strides[] = {1, 1, 1};
  void* pointers[] = {bytes, numbers, copies};
  uint64_t scalar = 0;
  executable->run({&n, pointers, strides, &scalar, 1});
  EXPECT_EQ(std::vector<int32_t>(numbers, numbers + 6), (std::vector<int32_t>{0, 1, 1, 1, 0, 1}));
  EXPECT_EQ(std::vector<uint8_t>(copies, copies + 6), (std::vector<uint8_t>{0, 1, 1, 1, 0, 1}));
}

TEST(CodegenElementwise, ManyThreadsSplitRowsAndColumns) {
  RegionBuilder r(2);
  Value x = r.tensor(DType::Float32), y = r.tensor(DType::Float32, InnerStride::Other);
  r.result(r.builder.multiply(r.builder.add(x, y), y));
  RegionSpec spec = r.finish();
  check_region(spec, {3, 100001});
  check_region(spec, {70001, 5});
}

TEST(CodegenElementwise, TranspositionsGoByTiles) {
  RegionBuilder r(3);
  Value x = r.tensor(DType::Float32, InnerStride::Other), y = r.tensor(DType::Float32);
  r.result(r.builder.subtract(x, y));
  RegionSpec spec = r.finish();
  for (HostTarget target : runnable_targets()) {
    for (int turned : {0, 1}) {
      const int64_t sizes[] = {70, 45, 131};
      const int64_t n = 70 * 45 * 131;
      std::vector<float> a(n), b(n), out(n);
      for (int64_t i = 0; i < n; ++i) a[i] = static_cast<float>(i), b[i] = static_cast<float>(i % 7);
      // x is [131, 45, 70] or [70, 131, 45] in memory.
      std::vector<int64_t> strides =
          turned == 0 ? std::vector<int64_t>{1, 70, 45 * 70} : std::vector<int64_t>{131 * 45, 1, 45};
      const std::vector<int64_t> x_strides = strides;
      for (int k = 0; k < 2; ++k) strides.insert(strides.end(), {45 * 131, 131, 1});
      void* pointers[] = {a.data(), b.data(), out.data()};
      const uint64_t scalars[] = {0, 0};
      for (int threads : {1, 2}) {
        compiled(spec, target)->run({sizes, pointers, strides.data(), scalars, threads});
        int64_t at = 0;
        for (int64_t i = 0; i < sizes[0]; ++i)
          for (int64_t j = 0; j < sizes[1]; ++j)
            for (int64_t k = 0; k < sizes[2]; ++k, ++at)
              ASSERT_EQ(out[at], a[i * x_strides[0] + j * x_strides[1] + k * x_strides[2]] - b[at]);
      }
    }
  }
}

TEST(CodegenCompiler, RefusesWhatIsNoRegionNamingTheOperation) {
  RegionBuilder r(2);
  Value x = r.tensor(DType::Float32);
  r.result(r.builder.reverse(x, {0}));
  try {
    host_compiler().compile(r.finish());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Internal);
    EXPECT_STREQ(error.what(), "reverse is not an operation of a generated region");
  }
}

TEST(CodegenCompiler, KernelsSurviveTheDiskCacheAndDamageIsNoticed) {
  RegionBuilder r(1);
  r.result(r.builder.add(r.tensor(DType::Float32), r.constant(DType::Float32, 1)));
  RegionSpec spec = r.finish();
  std::string bytes = host_compiler().compile(spec)->serialize();
  auto loaded = host_compiler().load(bytes);
  RegionRun run(spec, {77});
  run.fill();
  EXPECT_TRUE(RegionRun::same(run.run(*loaded), run.expected()));
  auto message_of = [](const std::string& damaged) -> std::string {
    try {
      host_compiler().load(damaged);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Runtime);
      return error.what();
    }
    return "no error";
  };
  std::string damaged = bytes;
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_NE(message_of(damaged).find("damaged"), std::string::npos);
  EXPECT_NE(message_of(bytes.substr(0, bytes.size() - 1)).find("damaged"), std::string::npos);
  EXPECT_NE(message_of("short").find("fewer than its header"), std::string::npos);
  damaged = bytes;
  damaged[8] ^= 1;
  EXPECT_NE(message_of(damaged).find("another build"), std::string::npos);
}

TEST(CodegenCompiler, DisassemblesEveryTargetWhateverTheProcessor) {
  RegionBuilder r(1);
  r.result(r.builder.add(r.tensor(DType::Float32), r.tensor(DType::Float32)));
  RegionSpec spec = r.finish();
  const std::string avx2 = host_compiler().disassemble(spec, HostTarget::Avx2);
  const std::string avx512 = host_compiler().disassemble(spec, HostTarget::Avx512);
  EXPECT_NE(avx2.find("vaddps"), std::string::npos);
  EXPECT_NE(avx2.find("%ymm"), std::string::npos);
  EXPECT_EQ(avx2.find("%zmm"), std::string::npos);
  EXPECT_NE(avx512.find("%zmm"), std::string::npos);
}

TEST(CodegenCompiler, CompilesAndRunsOnManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> correct{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &correct] {
      for (int i = 0; i < 8; ++i) {
        RegionBuilder r(1);
        r.result(r.builder.add(r.tensor(DType::Float32), r.constant(DType::Float32, 100 * t + i)));
        RegionSpec spec = r.finish();
        RegionRun run(spec, {77});
        run.fill();
        if (RegionRun::same(run.run(*host_compiler().compile(spec)), run.expected())) ++correct;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(correct, 32);
}

TEST(CodegenRegion, SignatureTellsRegionsApartButNotSizes) {
  auto make = [](double constant, InnerStride inner) {
    RegionBuilder r(1);
    r.result(r.builder.add(r.tensor(DType::Float32, inner), r.constant(DType::Float32, constant)));
    return region_signature(r.finish());
  };
  EXPECT_EQ(make(1, InnerStride::One), make(1, InnerStride::One));
  EXPECT_NE(make(1, InnerStride::One), make(2, InnerStride::One));
  EXPECT_NE(make(1, InnerStride::One), make(1, InnerStride::Other));
}

}  // namespace
}  // namespace neuron::codegen
