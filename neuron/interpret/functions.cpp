// The functions of functions.def: through double and rounded once, but for trunc and fma, which are exact,
// and random numbers, which have bits of their own.
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "neuron/base/random_numbers.h"
#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

namespace {

// Asymptotic series after shifting the argument above 10 by the recurrence psi(x) = psi(x + 1) - 1/x; reflection for
// negative x. Abramowitz & Stegun 6.3.5, 6.3.7, 6.3.18. Poles: -inf at +0, +inf at -0, NaN at negative integers.
double digamma(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    double fraction = x - std::trunc(x);
    if (fraction == 0 || std::isinf(x)) return std::numeric_limits<double>::quiet_NaN();
    return digamma(1.0 - x) - std::numbers::pi / std::tan(std::numbers::pi * fraction);
  }
  double shifted = 0;
  for (; x < 10; x += 1) shifted -= 1.0 / x;
  if (std::isinf(x)) return x;
  double z = 1.0 / (x * x);
  // Bernoulli numbers B(2k) / 2k, k = 1 … 7.
  double series =
      z * (1.0 / 12 - z * (1.0 / 120 -
                           z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  return shifted + std::log(x) - 0.5 / x - series;
}

// A rough start (Winitzki's formula) polished by Newton's method on erf, which converges to double precision. Near ±1
// the iteration is on erfc, where erf has no digits left.
double erfinv(double y) {
  if (!(std::fabs(y) <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (std::fabs(y) == 1) return std::copysign(std::numeric_limits<double>::infinity(), y);
  if (y == 0) return y;
  double a = 0.147, magnitude = std::fabs(y);
  double log_term = std::log1p(-magnitude * magnitude);
  double t = 2 / (std::numbers::pi * a) + log_term / 2;
  double x = std::sqrt(std::sqrt(t * t - log_term / a) - t);
  for (int i = 0; i < 4; ++i) {
    double error = magnitude > 0.5 ? (1 - magnitude) - std::erfc(x) : std::erf(x) - magnitude;
    double slope = 2 / std::sqrt(std::numbers::pi) * std::exp(-x * x);
    double step = error / slope;
    x -= step / (1 + x * step);  // Halley's correction
  }
  return std::copysign(x, y);
}

// std::lgamma writes the global signgam.
double log_gamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

using RealFunction = double (*)(double);
using ComplexFunction = std::complex<double> (*)(const std::complex<double>&);

double gelu_derivative(double x) {
  const double density = std::exp(-0.5 * x * x) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return 0.5 * std::erfc(-x * (std::numbers::sqrt2 / 2)) + x * density;
}

struct Function {
  std::string_view name;
  RealFunction real;
  ComplexFunction complex;  // null: real only
};

constexpr double ln2 = std::numbers::ln2;

const Function table[] = {
    {"acos", [](double x) { return std::acos(x); }, [](const std::complex<double>& x) { return std::acos(x); }},
    {"acosh", [](double x) { return std::acosh(x); }, [](const std::complex<double>& x) { return std::acosh(x); }},
    {"asin", [](double x) { return std::asin(x); }, [](const std::complex<double>& x) { return std::asin(x); }},
    {"asinh", [](double x) { return std::asinh(x); }, [](const std::complex<double>& x) { return std::asinh(x); }},
    {"atan", [](double x) { return std::atan(x); }, [](const std::complex<double>& x) { return std::atan(x); }},
    {"atanh", [](double x) { return std::atanh(x); }, [](const std::complex<double>& x) { return std::atanh(x); }},
    {"cosh", [](double x) { return std::cosh(x); }, [](const std::complex<double>& x) { return std::cosh(x); }},
    {"digamma", digamma, nullptr},
    {"erf", [](double x) { return std::erf(x); }, nullptr},
    {"erfc", [](double x) { return std::erfc(x); }, nullptr},
    {"erfinv", erfinv, nullptr},
    {"exp2", [](double x) { return std::exp2(x); }, [](const std::complex<double>& x) { return std::exp(x * ln2); }},
    {"gelu_derivative", gelu_derivative, nullptr},
    {"lgamma", log_gamma, nullptr},
    {"log10", [](double x) { return std::log10(x); }, [](const std::complex<double>& x) { return std::log10(x); }},
    {"log2", [](double x) { return std::log2(x); }, [](const std::complex<double>& x) { return std::log(x) / ln2; }},
    {"sinh", [](double x) { return std::sinh(x); }, [](const std::complex<double>& x) { return std::sinh(x); }},
    {"trunc", [](double x) { return std::trunc(x); }, nullptr},
};

bool fused_multiply_add(const Invocation& call) {
  Buffer scratch[3], wide = make_wide(call.result());
  const Buffer* x[3];
  for (size_t i = 0; i < 3; ++i) x[i] = &widen(call.operand(i), scratch[i]);
  visit(wide.dtype, [&]<typename T>(Tag<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      for (int64_t i = 0, n = wide.numel(); i < n; ++i)
        wide.data<T>()[i] = std::fma(x[0]->data<T>()[i], x[1]->data<T>()[i], x[2]->data<T>()[i]);
    } else {
      unsupported(call, wide.dtype);
    }
  });
  narrow(std::move(wide), call.result());
  return true;
}

// random_bits, random_normal.
template <typename T>
void random_numbers(const Invocation& call, T (*number)(uint64_t seed, uint64_t offset, uint64_t element)) {
  const auto *elements = call.operand(0).data<uint64_t>(), *seeds = call.operand(1).data<uint64_t>(),
             *offsets = call.operand(2).data<uint64_t>();
  T* to = call.result().data<T>();
  for (int64_t i = 0, n = call.result().numel(); i < n; ++i) to[i] = number(seeds[i], offsets[i], elements[i]);
}

bool random_function(const Invocation& call) {
  switch (call.result().dtype) {
    case DType::UInt32:
      random_numbers(call, random_word);
      return true;
    case DType::UInt64:
      random_numbers(call, random_long_word);
      return true;
    case DType::Float32:
      random_numbers(call, random_normal);
      return true;
    case DType::Float64:
      random_numbers(call, random_normal_double);
      return true;
    default:
      unsupported(call, call.result().dtype);
  }
}

}  // namespace

bool evaluate_function(std::string_view name, const Invocation& call) {
  if (name == "fma") return fused_multiply_add(call);
  if (name.starts_with("random_")) return random_function(call);
  const Function* function = nullptr;
  for (const Function& entry : table) {
    if (entry.name == name) function = &entry;
  }
  if (function == nullptr) return false;
  Buffer scratch, wide = make_wide(call.result());
  const Buffer& x = widen(call.operand(0), scratch);
  visit(x.dtype, [&]<typename T>(Tag<T>) {
    for (int64_t i = 0, n = x.numel(); i < n; ++i) {
      T element = x.data<T>()[i];
      T& out = wide.data<T>()[i];
      if constexpr (std::is_floating_point_v<T>) {
        out = static_cast<T>(function->real(element));
      } else if constexpr (is_complex_type<T>) {
        if (function->complex == nullptr)
          fail(ErrorKind::Internal, "{} is not defined for {}", name, dtype_name(x.dtype));
        out = T(function->complex(std::complex<double>(element)));
      } else {
        if (name != "trunc") fail(ErrorKind::Internal, "{} is not defined for {}", name, dtype_name(x.dtype));
        out = element;
      }
    }
  });
  narrow(std::move(wide), call.result());
  return true;
}

}  // namespace neuron::interpret
