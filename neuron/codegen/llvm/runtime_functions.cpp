#include "neuron/codegen/llvm/runtime_functions.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <unordered_map>

#include "neuron/base/random_numbers.h"
#include "neuron/kernels/random_lines.h"

namespace neuron::codegen {

namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);

uint64_t power_unsigned(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

// A negative exponent gives 0 unless the base is 1 or -1.
uint64_t power_signed(int64_t base, int64_t exponent) {
  if (exponent >= 0) return power_unsigned(static_cast<uint64_t>(base), static_cast<uint64_t>(exponent));
  if (base == 1) return 1;
  if (base == -1) return exponent % 2 != 0 ? static_cast<uint64_t>(-1) : 1;
  return 0;
}

// lgamma() also writes a global variable.
double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Recurrence up to 10, then the asymptotic series with Bernoulli numbers (Abramowitz and Stegun 6.3.18); reflection
// below 0.
double digamma(double x) {
  constexpr double pi = 3.14159265358979323846;
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    double whole;
    double fraction = std::modf(x, &whole);
    if (fraction == 0) return std::numeric_limits<double>::quiet_NaN();
    return digamma(1 - x) - pi / std::tan(pi * fraction);
  }
  double sum = 0;
  for (; x < 10; x += 1) sum -= 1 / x;
  if (std::isinf(x)) return x;
  static constexpr double coefficients[] = {-1.0 / 12,  691.0 / 32760, -1.0 / 132, 1.0 / 240,
                                            -1.0 / 252, 1.0 / 120,     -1.0 / 12};
  const double square = 1 / (x * x);
  double series = 0;
  for (double coefficient : coefficients) series = series * square + coefficient;
  return sum + std::log(x) - 0.5 / x + square * series;
}

// Winitzki's approximation, refined by Halley's method on erf (on erfc in the tails, where erf has no digits left).
double inverse_error_function(double y) {
  constexpr double pi = 3.14159265358979323846;
  const double magnitude = std::fabs(y);
  if (!(magnitude <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == 1) return std::copysign(std::numeric_limits<double>::infinity(), y);
  if (magnitude < 1e-8) return y * (std::sqrt(pi) / 2);
  const double a = 0.147;
  const double logarithm = std::log1p(-magnitude * magnitude);
  const double half = 2 / (pi * a) + logarithm / 2;
  double x = std::sqrt(std::sqrt(half * half - logarithm / a) - half);
  for (int i = 0; i < 3; ++i) {
    double error = magnitude < 0.5 ? std::erf(x) - magnitude : (1 - magnitude) - std::erfc(x);
    double step = error / (2 / std::sqrt(pi) * std::exp(-x * x));
    x -= step / (1 + x * step);
  }
  return std::copysign(x, y);
}

double gelu_derivative(double x) {
  const double density = std::exp(-0.5 * x * x) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return 0.5 * std::erfc(-x * (std::numbers::sqrt2 / 2)) + x * density;
}

// Operands as in the graph.
template <auto function>
auto random_number(uint64_t element, uint64_t seed, uint64_t offset) {
  return function(seed, offset, element);
}

const std::unordered_map<std::string_view, void*>& table() {
  auto unary = [](Unary function) { return reinterpret_cast<void*>(function); };
  auto binary = [](Binary function) { return reinterpret_cast<void*>(function); };
  auto any = [](auto function) { return reinterpret_cast<void*>(function); };
  const kernels::RandomLines& lines = kernels::random_lines();
  static const std::unordered_map<std::string_view, void*> functions{
      {"acos", unary(std::acos)},
      {"acosh", unary(std::acosh)},
      {"asin", unary(std::asin)},
      {"asinh", unary(std::asinh)},
      {"atan", unary(std::atan)},
      {"atan2", binary(std::atan2)},
      {"atanh", unary(std::atanh)},
      {"cbrt", unary(std::cbrt)},
      {"cos", unary(std::cos)},
      {"cosh", unary(std::cosh)},
      {"erf", unary(std::erf)},
      {"erfc", unary(std::erfc)},
      {"exp", unary(std::exp)},
      {"exp2", unary(std::exp2)},
      {"expm1", unary(std::expm1)},
      {"fmod", binary(std::fmod)},
      {"lgamma", unary(log_gamma)},
      {"log", unary(std::log)},
      {"log10", unary(std::log10)},
      {"log1p", unary(std::log1p)},
      {"log2", unary(std::log2)},
      {"memcpy", reinterpret_cast<void*>(&std::memcpy)},
      {"memset", reinterpret_cast<void*>(&std::memset)},
      {"neuron_digamma", unary(digamma)},
      {"neuron_erfinv", unary(inverse_error_function)},
      {"neuron_gelu_derivative", unary(gelu_derivative)},
      {"neuron_logistic", unary(logistic)},
      {"neuron_power_signed", any(&power_signed)},
      {"neuron_power_unsigned", any(&power_unsigned)},
      {"neuron_random_long_word", any(&random_number<random_long_word>)},
      {"neuron_random_long_words", any(lines.long_words)},
      {"neuron_random_normal", any(&random_number<random_normal>)},
      {"neuron_random_normal_double", any(&random_number<random_normal_double>)},
      {"neuron_random_normals", any(lines.normals)},
      {"neuron_random_normals_double", any(lines.double_normals)},
      {"neuron_random_word", any(&random_number<random_word>)},
      {"neuron_random_words", any(lines.words)},
      {"pow", binary(std::pow)},
      {"sin", unary(std::sin)},
      {"sinh", unary(std::sinh)},
      {"tan", unary(std::tan)},
      {"tanh", unary(std::tanh)},
  };
  return functions;
}

}  // namespace

void* runtime_function(std::string_view name) {
  auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

}  // namespace neuron::codegen
