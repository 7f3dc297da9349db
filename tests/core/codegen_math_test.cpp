// Every float32 function over a dense sweep of all floats, against the C library in double; bitwise the same on every
// target.
#include "codegen_harness.h"

#include <functional>

namespace neuron::codegen {
namespace {

using ir::Opcode;
using ir::Value;

// A prime: all exponents, mixed mantissas.
constexpr uint32_t kStep = 4099;

const std::vector<float>& sweep() {
  static const std::vector<float> values = [] {
    std::vector<float> all;
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += kStep)
      all.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    for (float x :
         {0.0f,   -0.0f,  1.0f,        -1.0f,       INFINITY, -INFINITY, NAN,   0x1p-149f, -0x1p-149f,  0x1p-126f,
          88.72f, 88.73f, -87.33f,     -103.9f,     -104.0f,  0.5f,      -0.5f, 2.0f,      0.70710678f, 1.41421356f,
          0.625f, 1e-30f, 1.57079637f, 3.14159274f, 1e15f,    3e38f,     27.0f, 1000.0f}) {
      all.push_back(x);
    }
    return all;
  }();
  return values;
}

double ulps_apart(float result, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(result) || std::isnan(rounded)) return std::isnan(result) && std::isnan(rounded) ? 0 : 1e9;
  if (std::isinf(result) || std::isinf(rounded)) {
    if (result == rounded) return 0;
    // The largest number and infinity are neighbours.
    return std::fabs(std::isinf(result) ? rounded : result) == 3.40282347e38f &&
                   std::signbit(result) == std::signbit(rounded)
               ? 1
               : 1e9;
  }
  if (exact == 0 || result == 0) {
    if (exact == 0) return result == 0 && std::signbit(result) == std::signbit(exact) ? 0 : 1e9;
    if (std::signbit(result) != std::signbit(exact)) return 1e9;
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(static_cast<double>(result) - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

std::vector<float> run(const RegionSpec& spec, HostTarget target, std::vector<std::vector<float>> inputs) {
  auto executable = host_compiler().compile_for(spec, target);
  std::vector<float> out(inputs[0].size());
  std::vector<void*> pointers;
  for (auto& input : inputs) pointers.push_back(input.data());
  pointers.push_back(out.data());
  std::vector<int64_t> strides(pointers.size(), 1);
  std::vector<uint64_t> scalars(inputs.size(), 0);
  const auto n = static_cast<int64_t>(out.size());
  executable->run({&n, pointers.data(), strides.data(), scalars.data(), 1});
  return out;
}

void check(const char* name, const RegionSpec& spec, const std::vector<std::vector<float>>& inputs, double bound,
           const std::function<double(size_t)>& exact) {
  SCOPED_TRACE(name);
  std::vector<float> first;
  for (HostTarget target : runnable_targets()) {
    std::vector<float> out = run(spec, target, inputs);
    if (!first.empty()) {
      size_t different = 0;
      for (size_t i = 0; i < out.size(); ++i)
        different += std::memcmp(&out[i], &first[i], 4) != 0 && !(std::isnan(out[i]) && std::isnan(first[i]));
      EXPECT_EQ(different, 0u) << "bits differ between targets";
      continue;
    }
    first = out;
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const double distance = ulps_apart(out[i], exact(i));
      if (distance > worst) worst = distance, at = i;
    }
    EXPECT_LE(worst, bound) << fmt::format("at {:a} {:a}: {:a} instead of {:a}", inputs[0][at], inputs.back()[at],
                                           out[at], exact(at));
    std::printf("  %-9s %.3f ulp\n", name, worst);
  }
}

void check_unary(const char* name, double bound, double (*exact)(double),
                 std::function<Value(RegionBuilder&, Value)> emit) {
  RegionBuilder r(1);
  r.result(emit(r, r.tensor(DType::Float32)));
  const auto& x = sweep();
  check(name, r.finish(), {x}, bound, [&](size_t i) { return exact(x[i]); });
}

void check_opcode(const char* name, double bound, double (*exact)(double), Opcode opcode) {
  check_unary(name, bound, exact, [opcode](RegionBuilder& r, Value x) { return r.builder.unary(opcode, x); });
}

void check_function(const char* name, double bound, double (*exact)(double)) {
  check_unary(name, bound, exact, [name](RegionBuilder& r, Value x) { return r.builder.function(name, x); });
}

TEST(CodegenMath, OperationsOfStableHlo) {
  check_opcode("exp", 0.8, std::exp, Opcode::Exponential);
  check_opcode("expm1", 0.51, std::expm1, Opcode::ExponentialMinusOne);
  check_opcode("log", 1.0, std::log, Opcode::Log);
  check_opcode("log1p", 0.51, std::log1p, Opcode::LogPlusOne);
  check_opcode("tanh", 1.1, std::tanh, Opcode::Tanh);
  check_opcode(
      "logistic", 2.3, [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); },
      Opcode::Logistic);
  check_opcode("sin", 0.51, std::sin, Opcode::Sine);
  check_opcode("cos", 0.51, std::cos, Opcode::Cosine);
  check_opcode("tan", 0.51, std::tan, Opcode::Tan);
  check_opcode("cbrt", 0.51, std::cbrt, Opcode::Cbrt);
  check_opcode("rsqrt", 1.5, [](double x) { return 1 / std::sqrt(x); }, Opcode::Rsqrt);
  check_opcode("sqrt", 0.5, std::sqrt, Opcode::Sqrt);
}

TEST(CodegenMath, Functions) {
  check_function("acos", 0.51, std::acos);
  check_function("acosh", 0.51, std::acosh);
  check_function("asin", 0.51, std::asin);
  check_function("asinh", 0.51, std::asinh);
  check_function("atan", 0.51, std::atan);
  check_function("atanh", 0.51, std::atanh);
  check_function("cosh", 0.51, std::cosh);
  check_function("sinh", 0.51, std::sinh);
  check_function("erf", 0.85, std::erf);
  check_function("erfc", 0.55, std::erfc);
  check_function("exp2", 0.51, std::exp2);
  check_function("log10", 0.51, std::log10);
  check_function("log2", 0.51, std::log2);
}

// Its error is absolute: it crosses zero, and for negative x it is a difference.
TEST(CodegenMath, GeluDerivative) {
  RegionBuilder r(1);
  r.result(r.builder.function("gelu_derivative", r.tensor(DType::Float32)));
  const RegionSpec spec = r.finish();
  const auto& x = sweep();
  std::vector<float> first;
  for (HostTarget target : runnable_targets()) {
    const std::vector<float> out = run(spec, target, {x});
    if (first.empty()) first = out;
    double worst = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_TRUE(std::memcmp(&out[i], &first[i], 4) == 0 || std::isnan(out[i])) << x[i] << ": bits differ";
      const double density = std::exp(-0.5 * x[i] * x[i]) / std::sqrt(2 * std::numbers::pi);
      const double exact = 0.5 * std::erfc(-x[i] / std::numbers::sqrt2) + x[i] * density;
      ASSERT_EQ(std::isnan(out[i]), std::isnan(exact)) << x[i];
      if (!std::isnan(exact)) worst = std::max(worst, std::fabs(out[i] - exact));
    }
    EXPECT_LE(worst, 1.2e-7);
    std::printf("  gelu_derivative %.2e\n", worst);
  }
}

// Pairs of values from the whole range and near one, with every special value met by every other.
std::pair<std::vector<float>, std::vector<float>> pairs() {
  std::vector<float> x, y;
  std::mt19937 random(7);
  const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN,    2.0f,       -2.0f,
                           3.0f, -3.0f, 0.5f, -0.5f, 1e-40f,   3e38f,     -3e38f, 16777216.0f};
  for (float a : special)
    for (float b : special) x.push_back(a), y.push_back(b);
  for (int i = 0; i < 200000; ++i) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    y.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    x.push_back(std::ldexp(static_cast<float>(random()) * 0x1p-32f, static_cast<int>(random() % 20) - 10));
    y.push_back(std::ldexp(static_cast<float>(random()) * 0x1p-31f - 1, static_cast<int>(random() % 8)));
    x.push_back(-static_cast<float>(random() % 50));
    y.push_back(static_cast<float>(static_cast<int>(random() % 41) - 20));
  }
  return {x, y};
}

TEST(CodegenMath, FunctionsOfTwoValues) {
  auto [x, y] = pairs();
  struct Case {
    const char* name;
    Opcode opcode;
    double (*exact)(double, double);
  };
  const Case cases[] = {
      {"pow", Opcode::Power, std::pow}, {"atan2", Opcode::Atan2, std::atan2}, {"fmod", Opcode::Remainder, std::fmod}};
  for (const Case& c : cases) {
    RegionBuilder r(1);
    Value a = r.tensor(DType::Float32), b = r.tensor(DType::Float32);
    r.result(r.builder.binary(c.opcode, a, b));
    check(c.name, r.finish(), {x, y}, c.opcode == Opcode::Remainder ? 0 : 0.51,
          [&](size_t i) { return c.exact(x[i], y[i]); });
  }
}

TEST(CodegenMath, DoubleAndRareFunctionsAreTheLibrarys) {
  for (DType dtype : {DType::Float64, DType::Float32, DType::Float16}) {
    RegionBuilder r(1);
    Value x = r.tensor(dtype);
    r.result(r.builder.function("lgamma", x));
    r.result(r.builder.function("digamma", x));
    r.result(r.builder.function("erfinv", r.builder.binary(Opcode::Multiply, x, r.constant(dtype, 0.25))));
    r.result(r.builder.unary(Opcode::Tanh, x));
    r.result(r.builder.unary(Opcode::Logistic, x));
    r.result(r.builder.function("atanh", x));
    r.result(r.builder.binary(Opcode::Power, x, x));
    SCOPED_TRACE(std::string(dtype_name(dtype)));
    check_region(r.finish(), {999}, dtype == DType::Float64 ? 64 : 2);
  }
}

}  // namespace
}  // namespace neuron::codegen
