// GEMM: every implementation against float64, over odd sizes, strides, transpositions, offsets, dtypes and threads.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/kernels/gemm.h"
#include "neuron/kernels/gemm_inner.h"
#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/matrix_units.h"

namespace neuron::kernels {
namespace {

// A matrix in memory with a layout of the test's choice.
struct Matrix {
  DType dtype;
  int64_t batch, rows, columns;
  std::vector<char> bytes;
  GemmOperand operand;

  Matrix(DType dtype, int64_t batch, int64_t rows, int64_t columns, bool transposed = false, int64_t padding = 0,
         int64_t offset = 0, int64_t inner = 1)
      : dtype(dtype), batch(batch), rows(rows), columns(columns) {
    int64_t leading = ((transposed ? rows : columns) + padding) * inner;
    int64_t matrix = leading * (transposed ? columns : rows);
    bytes.resize((matrix * batch + offset + 64) * dtype_size(dtype));
    auto start = (reinterpret_cast<uintptr_t>(bytes.data()) + 63) / 64 * 64 + offset * dtype_size(dtype);
    operand = {reinterpret_cast<void*>(start), matrix, transposed ? inner : leading, transposed ? leading : inner};
  }
  char* at(int64_t b, int64_t i, int64_t j) const {
    return static_cast<char*>(operand.data) +
           (b * operand.batch + i * operand.row + j * operand.column) * static_cast<int64_t>(dtype_size(dtype));
  }
  double value(int64_t b, int64_t i, int64_t j) const { return load_as_double(dtype, at(b, i, j)); }

  // The same values in every layout of equal seed.
  void fill(uint32_t seed) {
    std::mt19937 random(seed);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          store_from_double(dtype, (static_cast<int>(random() % 2001) - 1000) / 1000.0, at(b, i, j));
  }
};

struct Case {
  int64_t batch, m, n, k;
  bool transpose_a = false, transpose_b = false;
};

GemmProblem make_problem(const Matrix& a, const Matrix& b, const Matrix& result) {
  GemmProblem p;
  p.dtype = a.dtype;
  p.result_dtype = result.dtype;
  p.batch = result.batch;
  p.m = result.rows;
  p.n = result.columns;
  p.k = a.columns;
  p.a = a.operand;
  p.b = b.operand;
  p.result = result.operand;
  return p;
}

// |result - float64 reference| <= (k + 2) * epsilon * sum |a||b| plus one rounding to the result.
void expect_close(const GemmProblem& p, const Matrix& a, const Matrix& b, const Matrix& result, const Matrix* addend) {
  double epsilon = a.dtype == DType::Float64 ? 2.3e-16 : 1.2e-7;
  double rounding = p.result_dtype == DType::BFloat16  ? 1.0 / 256
                    : p.result_dtype == DType::Float16 ? 1.0 / 2048
                                                       : epsilon;
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = 0, magnitude = 0;
        for (int64_t l = 0; l < p.k; ++l) {
          double product = a.value(batch, i, l) * b.value(batch, l, j);
          sum += product;
          magnitude += std::abs(product);
        }
        sum *= p.alpha.as_double();
        magnitude *= std::abs(p.alpha.as_double());
        if (addend != nullptr) {
          sum += p.beta.as_double() * addend->value(batch, i, j);
          magnitude += std::abs(p.beta.as_double() * addend->value(batch, i, j));
        }
        double allowed = (static_cast<double>(p.k) + 2) * epsilon * magnitude + rounding * std::abs(sum);
        ASSERT_NEAR(result.value(batch, i, j), sum, allowed)
            << batch << ", " << i << ", " << j << " of m " << p.m << " n " << p.n << " k " << p.k;
      }
    }
  }
}

const Case kCases[] = {
    {1, 1, 1, 1},
    {1, 1, 37, 19},
    {1, 37, 1, 19},
    {1, 5, 7, 1},
    {2, 14, 32, 256},
    {3, 6, 16, 257, true},
    {1, 13, 33, 300, false, true},
    {2, 29, 65, 31, true, true},
    {1, 130, 70, 513, false, true},
    {1, 70, 1100, 20, true},
    {1, 400, 40, 24, false, true},
    {1, 200, 600, 301, true},
    {1, 64, 200, 40, false, true},
    {1, 32, 75, 602, false, true},
    {2, 20, 40, 1024},
    {1, 40, 1024, 30},
    {1, 1024, 40, 30, true},
};

// Beyond those: several blocks of every kind on matrix units, one or two tiles high or wide, without whole steps.
const Case kMatrixCases[] = {
    {1, 40, 300, 1300},        {1, 70, 600, 900, true},   {1, 20, 2500, 300}, {1, 33, 2200, 450, false, true},
    {2, 100, 100, 33},         {1, 9, 70, 5, true, true}, {1, 48, 16, 64},    {1, 90, 11, 700, true},
    {1, 200, 90, 2100, false}, {3, 32, 32, 32},
};

// A few vectors, and a matrix whose rows run along the sum.
const Case kInnerCases[] = {
    {1, 1, 37, 19, false, true},
    {2, 8, 65, 300, false, true},
    {1, 3, 130, 64, true, true},
    {1, 7, 200, 2, false, true},
    {1, 70, 1, 513},
    {3, 33, 8, 95},
    {1, 129, 5, 31, false, true},
    {1, 1, 1, 1000},
    {1, 2, 1100, 257, true, true},
    {2, 6, 66, 33, false, true},
};

// A few vectors, and a matrix whose rows run across the sum.
const Case kOuterCases[] = {
    {1, 1, 37, 19},       {2, 8, 65, 300},   {1, 3, 130, 64, true},
    {1, 7, 5, 33},        {1, 5, 300, 2},    {1, 70, 1, 513, true},
    {3, 33, 8, 95, true}, {1, 2, 1100, 257}, {1, 200, 3, 31, true, true},
};

class EachImplementation : public testing::TestWithParam<std::tuple<const Implementation<GemmProblem>*, DType>> {};

TEST_P(EachImplementation, AgreesWithFloat64) {
  auto [implementation, dtype] = GetParam();
  if (implementation == &gemm_packed_bfloat16 && !has_bfloat16_units()) GTEST_SKIP() << "no AVX512-BF16 here";
  if (implementation == &gemm_matrix_units && !has_bfloat16_matrix_units()) GTEST_SKIP() << "no AMX-BF16 here";
  std::vector<Case> cases;
  if (implementation != &gemm_outer) cases.insert(cases.end(), std::begin(kInnerCases), std::end(kInnerCases));
  if (implementation != &gemm_inner) cases.insert(cases.end(), std::begin(kOuterCases), std::end(kOuterCases));
  if (implementation != &gemm_inner && implementation != &gemm_outer) {
    cases.insert(cases.end(), std::begin(kCases), std::end(kCases));
  }
  if (implementation == &gemm_matrix_units) {
    cases.insert(cases.end(), std::begin(kMatrixCases), std::end(kMatrixCases));
  }
  for (const Case& c : cases) {
    Matrix a(dtype, c.batch, c.m, c.k, c.transpose_a, 3), b(dtype, c.batch, c.k, c.n, c.transpose_b, 1);
    Matrix result(dtype, c.batch, c.m, c.n, false, 2), addend(dtype, c.batch, c.m, c.n);
    a.fill(1), b.fill(2), addend.fill(3);
    GemmProblem p = make_problem(a, b, result);
    const bool few = implementation == &gemm_matrix_units && std::min(c.m, c.n) <= 4;
    ASSERT_EQ(implementation->refuse(p).text(), few ? "few vectors are streamed faster" : "");
    implementation->run(p);
    expect_close(p, a, b, result, nullptr);
    p.addend = addend.operand;
    p.addend_dtype = dtype;
    p.alpha = Scalar::of(0.5);
    p.beta = Scalar::of(-2.0);
    implementation->run(p);
    expect_close(p, a, b, result, &addend);
  }
}

INSTANTIATE_TEST_SUITE_P(Gemm, EachImplementation,
                         testing::Combine(testing::Values(&gemm_inner, &gemm_outer, &gemm_packed, &gemm_plain),
                                          testing::Values(DType::Float32, DType::BFloat16, DType::Float16)));
INSTANTIATE_TEST_SUITE_P(GemmBFloat16, EachImplementation,
                         testing::Combine(testing::Values(&gemm_packed_bfloat16, &gemm_matrix_units),
                                          testing::Values(DType::BFloat16)));
INSTANTIATE_TEST_SUITE_P(GemmDouble, EachImplementation,
                         testing::Combine(testing::Values(&gemm_plain), testing::Values(DType::Float64)));

std::vector<char> bits(const Matrix& x) {
  std::vector<char> all;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t i = 0; i < x.rows; ++i)
      for (int64_t j = 0; j < x.columns; ++j) all.insert(all.end(), x.at(b, i, j), x.at(b, i, j) + dtype_size(x.dtype));
  return all;
}

TEST(Gemm, BitsOfBFloat16UnitsDoNotDependOnLayoutOrThreads) {
  for (const Implementation<GemmProblem>* entry : {&gemm_packed_bfloat16, &gemm_matrix_units}) {
    if (entry == &gemm_packed_bfloat16 && !has_bfloat16_units()) continue;
    if (entry == &gemm_matrix_units && !has_bfloat16_matrix_units()) continue;
    std::vector<Case> cases(std::begin(kCases), std::end(kCases));
    if (entry == &gemm_matrix_units) cases.insert(cases.end(), std::begin(kMatrixCases), std::end(kMatrixCases));
    for (const Case& c : cases) {
      for (DType result_dtype : {DType::BFloat16, DType::Float32}) {
        std::vector<char> expected;
        for (int layout = 0; layout < 4; ++layout) {
          Matrix a(DType::BFloat16, c.batch, c.m, c.k, layout % 2 == 1, layout, layout, layout == 3 ? 2 : 1);
          Matrix b(DType::BFloat16, c.batch, c.k, c.n, layout / 2 == 1, 3 * layout, 3 * layout);
          Matrix result(result_dtype, c.batch, c.m, c.n, layout == 2, layout, layout, layout == 3 ? 3 : 1);
          Matrix addend(DType::BFloat16, c.batch, c.m, c.n, layout == 1, layout, layout, layout == 3 ? 2 : 1);
          a.fill(1), b.fill(2), addend.fill(3);
          GemmProblem p = make_problem(a, b, result);
          if (c.k % 2 == 0) p.addend = addend.operand, p.addend_dtype = DType::BFloat16;
          for (int threads : {1, 3}) {
            p.threads = threads;
            entry->run(p);
            std::vector<char> got = bits(result);
            if (expected.empty()) expected = got;
            ASSERT_TRUE(got == expected) << entry->name << " layout " << layout << " threads " << threads << " m "
                                         << c.m << " n " << c.n << " k " << c.k;
          }
        }
      }
    }
  }
}

TEST(Gemm, EverySetRoundsToFloat16Alike) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0xffff0000u; bits += 0x00012345u) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isnan(value)) values.push_back(value);
  }
  for (const GemmMicrokernel* set : {&gemm_microkernel_avx2, detected_gemm_microkernel()}) {
    for (size_t count : {size_t{1}, size_t{15}, size_t{16}, size_t{45}, values.size()}) {
      std::vector<uint16_t> rounded(count);
      set->store(PackedSource::Float16, values.data() + values.size() - count, static_cast<int64_t>(count),
                 rounded.data());
      for (size_t i = 0; i < count; ++i) {
        uint16_t expected;
        store_from_double(DType::Float16, values[values.size() - count + i], &expected);
        ASSERT_EQ(rounded[i], expected) << set->name << ", " << values[values.size() - count + i];
      }
    }
  }
}

// docs/numerics.md: a chain of steps of 32 elements; a step is the sum of the even positions plus that of the odd ones.
TEST(Gemm, MatrixUnitsSumStepsInOrder) {
  if (!has_bfloat16_matrix_units()) GTEST_SKIP() << "no AMX-BF16 here";
  const int64_t m = 37, n = 150, k = 1000;
  Matrix a(DType::BFloat16, 1, m, k), b(DType::BFloat16, 1, k, n, true), result(DType::Float32, 1, m, n);
  a.fill(1), b.fill(2);
  gemm_matrix_units.run(make_problem(a, b, result));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t step = 0; step < k; step += 32) {
        float parts[2] = {0, 0};
        for (int64_t l = step; l < std::min(k, step + 32); ++l) {
          float x = static_cast<float>(a.value(0, i, l)), y = static_cast<float>(b.value(0, l, j));
          parts[l % 2] = std::fma(x, y, parts[l % 2]);
        }
        sum += parts[0] + parts[1];
      }
      ASSERT_EQ(result.value(0, i, j), sum) << i << ", " << j;
    }
  }
}

// Memory that ends where a page that cannot be read begins.
struct GuardedElements {
  size_t pages;
  char *memory, *data;
  explicit GuardedElements(size_t bytes)
      : pages((bytes + 4095) / 4096 * 4096),
        memory(static_cast<char*>(
            mmap(nullptr, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        data(memory + pages - bytes) {
    mprotect(memory + pages, 4096, PROT_NONE);
  }
  GuardedElements(const GuardedElements&) = delete;
  ~GuardedElements() { munmap(memory, pages + 4096); }
};

TEST(Gemm, MatrixUnitsReadNothingBehindTheirOperands) {
  if (!has_bfloat16_matrix_units()) GTEST_SKIP() << "no AMX-BF16 here";
  for (int64_t m : {9, 16, 33, 64}) {
    for (int64_t n : {7, 32, 49, 100}) {
      for (int64_t k : {1, 31, 32, 70}) {
        for (int layout = 0; layout < 4; ++layout) {
          GuardedElements a(m * k * 2), b(k * n * 2), result(m * n * 2), addend(n * 2);
          GemmProblem p;
          p.dtype = p.result_dtype = p.addend_dtype = DType::BFloat16;
          p.m = m, p.n = n, p.k = k;
          p.a = {a.data, 0, layout % 2 == 0 ? k : 1, layout % 2 == 0 ? 1 : m};
          p.b = {b.data, 0, layout / 2 == 0 ? n : 1, layout / 2 == 0 ? 1 : k};
          p.result = {result.data, 0, n, 1};
          if (k == 70) p.addend = {addend.data, 0, 0, 1};
          gemm_matrix_units.run(p);
          for (int64_t i = 0; i < m * n * 2; ++i) ASSERT_EQ(result.data[i], 0);
        }
      }
    }
  }
}

TEST(Gemm, MatrixUnitsRoundSpecialNumbersAsOtherSetsDo) {
  if (!has_bfloat16_matrix_units()) GTEST_SKIP() << "no AMX-BF16 here";
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (bool adds : {false, true}) {
    Matrix a(DType::BFloat16, 1, 50, 70), b(DType::BFloat16, 1, 70, 100), result(DType::BFloat16, 1, 50, 100);
    Matrix addend(DType::BFloat16, 1, 50, 100);
    a.fill(1), b.fill(2);
    uint16_t negative_nan = 0xffab, denormal = 0x0003;
    std::memcpy(a.at(0, 40, 69), &negative_nan, sizeof(negative_nan));
    store_from_double(DType::BFloat16, infinity, a.at(0, 3, 1));
    for (int64_t l = 0; l < 70; ++l) {
      std::memcpy(a.at(0, 7, l), &denormal, sizeof(denormal));  // are read as zeros
      store_from_double(DType::BFloat16, 1.0, b.at(0, l, 5));
    }
    std::memcpy(addend.at(0, 7, 6), &denormal, sizeof(denormal));  // is not lost
    store_from_double(DType::BFloat16, nan, addend.at(0, 20, 99));
    GemmProblem p = make_problem(a, b, result);
    if (adds) p.addend = addend.operand, p.addend_dtype = DType::BFloat16;
    gemm_matrix_units.run(p);
    auto bits_at = [&](int64_t i, int64_t j) {
      uint16_t bits;
      std::memcpy(&bits, result.at(0, i, j), sizeof(bits));
      return bits;
    };
    for (int64_t j = 0; j < 100; ++j) {
      EXPECT_EQ(bits_at(40, j), 0x7fc0) << j;
      EXPECT_TRUE(std::isfinite(result.value(0, 39, j)) && std::isfinite(result.value(0, 41, j))) << j;
      EXPECT_EQ(bits_at(7, j), adds && j == 6 ? denormal : 0) << j;
    }
    EXPECT_EQ(result.value(0, 3, 5), infinity);
    EXPECT_EQ(bits_at(20, 99) == 0x7fc0, adds);
    EXPECT_TRUE(std::isfinite(result.value(0, 20, 98)));
  }
}

// Few rows take a transposed b from where it lies, by tiles whose height follows from the distance of its rows.
TEST(Gemm, BitsOfFewRowsDoNotDependOnTheDistanceOfRowsOrInstructionSet) {
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Float16}) {
    for (int64_t m : {5, 9, 16, 17, 20, 33, 48, 64, 70}) {
      for (int64_t k : {1030, 2048}) {
        std::vector<char> expected;
        for (const GemmMicrokernel* kernel :
             {&gemm_microkernel_avx2, &gemm_microkernel_avx512, &gemm_microkernel_bfloat16}) {
          if (kernel == &gemm_microkernel_avx512 && detected_gemm_microkernel() != kernel) continue;
          const bool units = kernel == &gemm_microkernel_bfloat16;
          if (units && (dtype != DType::BFloat16 || !has_bfloat16_units())) continue;
          if (units) expected.clear();  // pairs are another order
          for (int layout = 0; layout < 4; ++layout) {
            const int64_t padding[] = {0, 2048 - k % 2048, 1024, 10};
            Matrix a(dtype, 1, m, k, layout % 2 == 1, layout == 0 ? 0 : padding[layout]);
            Matrix b(dtype, 1, k, 75, layout != 3, padding[layout]), result(dtype, 1, m, 75, layout == 2);
            Matrix bias(dtype, 1, 1, 75);
            a.fill(1), b.fill(2), bias.fill(3);
            bias.operand.row = 0;
            GemmProblem p = make_problem(a, b, result);
            p.addend = bias.operand;
            p.addend_dtype = dtype;
            p.beta = Scalar::of(m % 2 == 0 ? 1.0 : -2.0);
            run_gemm_packed(p, *kernel);
            if (expected.empty()) expect_close(p, a, b, result, &bias);
            std::vector<char> got = bits(result);
            if (expected.empty()) expected = got;
            ASSERT_TRUE(got == expected) << kernel->name << " layout " << layout << " m " << m << " k " << k;
          }
        }
      }
    }
  }
}

TEST(Gemm, BitsOfStreamedProductsDoNotDependOnGapsOrThreads) {
  bool wide = detected_gemm_microkernel() == &gemm_microkernel_avx512;
  for (const InnerProducts* routines : {&inner_products_avx2, &inner_products_avx512}) {
    if (routines == &inner_products_avx512 && !wide) continue;
    for (DType dtype : {DType::Float32, DType::BFloat16, DType::Float16}) {
      for (const Case& c : kInnerCases) {
        std::vector<char> expected;
        for (int layout = 0; layout < 4; ++layout) {
          bool gaps = layout == 3 && !c.transpose_b;  // of a transposed b the stride 1 is what is recorded
          Matrix a(dtype, c.batch, c.m, c.k, c.transpose_a, layout, layout, gaps ? 2 : 1);
          Matrix b(dtype, c.batch, c.k, c.n, c.transpose_b, 3 * layout, 3 * layout, gaps ? 2 : 1);
          Matrix result(dtype, c.batch, c.m, c.n, layout == 2, layout, layout, layout == 3 ? 3 : 1);
          Matrix addend(dtype, c.batch, c.m, c.n, layout == 1, 0, layout);
          a.fill(1), b.fill(2), addend.fill(3);
          GemmProblem p = make_problem(a, b, result);
          p.addend = addend.operand;
          p.addend_dtype = dtype;
          ASSERT_EQ(gemm_inner.refuse(p).text(), "");
          for (int threads : {1, 3}) {
            p.threads = threads;
            run_gemm_inner(p, *routines);
            expect_close(p, a, b, result, &addend);
            std::vector<char> got = bits(result);
            if (expected.empty()) expected = got;
            ASSERT_TRUE(got == expected) << routines->name << " layout " << layout << " threads " << threads << " m "
                                         << c.m << " n " << c.n << " k " << c.k;
          }
        }
      }
    }
  }
}

TEST(Gemm, BitsOfCombinedRowsDoNotDependOnGapsThreadsOrInstructionSet) {
  bool wide = detected_gemm_microkernel() == &gemm_microkernel_avx512;
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Float16}) {
    for (const Case& c : kOuterCases) {
      std::vector<char> expected;
      for (int layout = 0; layout < 4; ++layout) {
        bool gaps = layout == 3 && !c.transpose_a;  // of a transposed a the stride 1 is what is recorded
        Matrix a(dtype, c.batch, c.m, c.k, c.transpose_a, layout, layout, gaps ? 2 : 1);
        Matrix b(dtype, c.batch, c.k, c.n, c.transpose_b, 3 * layout, 3 * layout, gaps ? 2 : 1);
        Matrix result(dtype, c.batch, c.m, c.n, layout == 2, layout, layout, layout == 3 ? 3 : 1);
        Matrix addend(dtype, c.batch, c.m, c.n, layout == 1, 0, layout);
        a.fill(1), b.fill(2), addend.fill(3);
        GemmProblem p = make_problem(a, b, result);
        p.addend = addend.operand;
        p.addend_dtype = dtype;
        ASSERT_EQ(gemm_outer.refuse(p).text(), "");
        for (const InnerProducts* routines : {&inner_products_avx2, &inner_products_avx512}) {
          if (routines == &inner_products_avx512 && !wide) continue;
          for (int threads : {1, 3}) {
            p.threads = threads;
            run_gemm_outer(p, *routines);
            std::vector<char> got = bits(result);
            if (expected.empty()) expected = got;
            ASSERT_TRUE(got == expected) << routines->name << " layout " << layout << " threads " << threads << " m "
                                         << c.m << " n " << c.n << " k " << c.k;
          }
        }
      }
    }
  }
}

TEST(Gemm, NaNAndInfinitySpreadInEveryImplementation) {
  float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Float16}) {
    Matrix a(dtype, 1, 5, 35), b(dtype, 1, 35, 40, true), plain(dtype, 1, 35, 40), result(dtype, 1, 5, 40);
    a.fill(1), b.fill(2);
    store_from_double(dtype, nan, a.at(0, 1, 34));
    store_from_double(dtype, infinity, a.at(0, 2, 33));
    store_from_double(dtype, 1.0, b.at(0, 33, 7));
    store_from_double(dtype, 0.0, b.at(0, 33, 8));
    for (int64_t l = 0; l < 35; ++l) {
      for (int64_t j = 0; j < 40; ++j) store_from_double(dtype, b.value(0, l, j), plain.at(0, l, j));
    }
    GemmProblem p = make_problem(a, b, result);
    for (const Implementation<GemmProblem>* entry :
         {&gemm_inner, &gemm_outer, &gemm_matrix_units, &gemm_packed_bfloat16, &gemm_packed, &gemm_plain}) {
      if (entry == &gemm_outer) p.b = plain.operand;
      if (entry == &gemm_matrix_units) p.b = b.operand;
      if (!entry->refuse(p).empty()) continue;
      entry->run(p);
      for (int64_t j = 0; j < 40; ++j) {
        EXPECT_FALSE(std::isnan(result.value(0, 0, j))) << entry->name;
        EXPECT_TRUE(std::isnan(result.value(0, 1, j))) << entry->name;
      }
      EXPECT_EQ(result.value(0, 2, 7), infinity) << entry->name;
      EXPECT_TRUE(std::isnan(result.value(0, 2, 8))) << entry->name;
    }
  }
}

TEST(Gemm, BitsDoNotDependOnLayoutThreadsOrInstructionSet) {
  for (DType dtype : {DType::Float32, DType::BFloat16}) {
    for (const Case& c : kCases) {
      std::vector<char> expected;
      for (int layout = 0; layout < 4; ++layout) {
        Matrix a(dtype, c.batch, c.m, c.k, layout % 2 == 1, layout, layout, layout == 3 ? 2 : 1);
        Matrix b(dtype, c.batch, c.k, c.n, layout / 2 == 1, 2 * layout, 3 * layout);
        Matrix result(dtype, c.batch, c.m, c.n, layout == 2, layout, layout, layout == 3 ? 3 : 1);
        Matrix addend(dtype, c.batch, c.m, c.n, layout == 1, 0, layout);
        a.fill(1), b.fill(2), addend.fill(3);
        GemmProblem p = make_problem(a, b, result);
        p.addend = addend.operand;
        p.addend_dtype = dtype;
        for (const GemmMicrokernel* set : {&gemm_microkernel_avx2, detected_gemm_microkernel()}) {
          for (int threads : {1, 2, 3}) {
            p.threads = threads;
            run_gemm_packed(p, *set);
            std::vector<char> got = bits(result);
            if (expected.empty()) expected = got;
            ASSERT_TRUE(got == expected) << "layout " << layout << " " << set->name << " threads " << threads << " m "
                                         << c.m << " n " << c.n << " k " << c.k;
          }
        }
      }
    }
  }
}

TEST(Gemm, IntegersAreExactTo64Bits) {
  int64_t large = std::numeric_limits<int64_t>::max() - 5;
  int64_t a[] = {large, 3, -7, 1}, b[] = {1, 2, large, -1}, result[4];
  GemmProblem p;
  p.dtype = p.result_dtype = p.addend_dtype = DType::Int64;
  p.m = p.n = p.k = 2;
  p.a = {a, 0, 2, 1};
  p.b = {b, 0, 2, 1};
  p.result = {result, 0, 2, 1};
  run_gemm(p);
  auto wrap = [](int64_t x, int64_t y) {
    return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  };
  EXPECT_EQ(result[0], static_cast<int64_t>(static_cast<uint64_t>(large) + static_cast<uint64_t>(wrap(3, large))));
  EXPECT_EQ(result[1], static_cast<int64_t>(static_cast<uint64_t>(wrap(large, 2)) - 3));
  EXPECT_EQ(result[2], static_cast<int64_t>(static_cast<uint64_t>(large) - 7));
  EXPECT_EQ(result[3], -15);

  uint16_t c[] = {65535, 65535}, d[] = {65535, 65535}, wrapped[1];
  p.dtype = p.result_dtype = DType::UInt16;
  p.m = p.n = 1;
  p.a.data = c, p.b.data = d, p.b.row = 1, p.result.data = wrapped;
  run_gemm(p);
  EXPECT_EQ(wrapped[0], static_cast<uint16_t>(2u * (65535u * 65535u)));
}

TEST(Gemm, EmptyInnerDimensionGivesScaledAddend) {
  float addend[] = {1, 2, 3}, result[6] = {9, 9, 9, 9, 9, 9};
  GemmProblem p;
  p.m = 2, p.n = 3, p.k = 0;
  p.result = {result, 0, 3, 1};
  run_gemm(p);
  for (float value : result) EXPECT_EQ(value, 0.0f);
  p.addend = {addend, 0, 0, 1};
  p.beta = Scalar::of(2.0);
  run_gemm(p);
  EXPECT_EQ(result[0], 2.0f);
  EXPECT_EQ(result[5], 6.0f);
}

TEST(Gemm, BetaZeroIgnoresNaNInTheAddendAndNaNInOperandsSpreads) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  float a[] = {1, 2, nan, 4}, b[] = {1, 0, 0, 1}, result[4] = {nan, nan, nan, nan};
  GemmProblem p;
  p.m = p.n = p.k = 2;
  p.a = {a, 0, 2, 1}, p.b = {b, 0, 2, 1}, p.result = {result, 0, 2, 1}, p.addend = {result, 0, 2, 1};
  p.beta = Scalar::of(0.0);
  run_gemm(p);
  EXPECT_EQ(result[0], 1.0f);
  EXPECT_EQ(result[1], 2.0f);
  EXPECT_TRUE(std::isnan(result[2]) && std::isnan(result[3]));
}

TEST(Gemm, KernelTakesAViewCallWithABroadcastBiasInPlace) {
  const Kernel* kernel = find_kernel("gemm");
  ASSERT_NE(kernel, nullptr);
  float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 1, 1}, bias[] = {10, 20}, result[4];
  TensorView inputs[] = {
      {a, DType::Float32, {2, 3}, {3, 1}}, {b, DType::Float32, {3, 2}, {2, 1}}, {bias, DType::Float32, {2}, {1}}};
  TensorView outputs[] = {{result, DType::Float32, {2, 2}, {2, 1}}};
  kernel->run({.outputs = outputs, .inputs = inputs, .attributes = {}, .scalars = {}, .threads = 1});
  EXPECT_EQ(std::vector<float>(result, result + 4), (std::vector<float>{14, 25, 20, 31}));
  inputs[2] = outputs[0];
  Scalar scalars[] = {Scalar::of(1.0), Scalar::of(1.0)};
  kernel->run({.outputs = outputs, .inputs = inputs, .attributes = {}, .scalars = scalars, .threads = 1});
  EXPECT_EQ(std::vector<float>(result, result + 4), (std::vector<float>{18, 30, 30, 42}));
}

TEST(Gemm, KernelTakesVectors) {
  const Kernel* kernel = find_kernel("gemm");
  float a[] = {1, 2, 3, 4, 5, 6}, x[] = {1, 2, 3}, y[] = {100, 200}, result[2], dot[1];
  TensorView matrix{a, DType::Float32, {2, 3}, {3, 1}}, vector{x, DType::Float32, {3}, {1}};
  TensorView inputs[] = {matrix, vector, {y, DType::Float32, {2}, {1}}};
  TensorView product{result, DType::Float32, {2}, {1}};
  kernel->run({.outputs = {&product, 1}, .inputs = inputs, .attributes = {}, .scalars = {}, .threads = 1});
  EXPECT_EQ(std::vector<float>(result, result + 2), (std::vector<float>{114, 232}));
  TensorView pair[] = {vector, vector}, scalar{dot, DType::Float32, {}, {}};
  kernel->run({.outputs = {&scalar, 1}, .inputs = pair, .attributes = {}, .scalars = {}, .threads = 1});
  EXPECT_EQ(dot[0], 14.0f);
}

TEST(Gemm, ExplainsWhyImplementationsRefuse) {
  GemmProblem p;
  p.dtype = p.result_dtype = DType::Int32;
  p.m = p.n = p.k = 4;
  EXPECT_EQ(gemm_implementations().explain(p),
            "gemm: matrix_units refused: takes bfloat16; the problem is i32 to i32; "
            "inner refused: takes float32, bfloat16 and float16; the problem is i32 to i32; "
            "outer refused: takes float32, bfloat16 and float16; the problem is i32 to i32; "
            "packed_bfloat16 refused: takes bfloat16; the problem is i32 to i32; "
            "process_blas refused: takes float32, float64 and complex of one dtype; the problem is i32 to i32; "
            "packed refused: takes float32, bfloat16 and float16; the problem is i32 to i32; plain accepts");
}

}  // namespace
}  // namespace neuron::kernels
