// Elementwise operations of one operand, and constants.
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>

#include "neuron/base/float_formats.h"
#include "neuron/interpret/arithmetic.h"
#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

namespace {

using ir::Opcode;

// Exact (correctly rounded) operations on the element's own type; NaN for an opcode that is none.
template <typename T>
bool exact_float(Opcode opcode, T x, T& out) {
  switch (opcode) {
    case Opcode::Abs:
      return out = std::fabs(x), true;
    case Opcode::Ceil:
      return out = std::ceil(x), true;
    case Opcode::Floor:
      return out = std::floor(x), true;
    case Opcode::Negate:
      return out = -x, true;
    case Opcode::Real:
      return out = x, true;
    case Opcode::Imag:
      return out = 0, true;
    case Opcode::RoundNearestAfz:
      return out = std::round(x), true;
    case Opcode::RoundNearestEven:
      return out = std::nearbyint(x), true;
    case Opcode::Sign:
      return out = x > 0 ? T(1) : x < 0 ? T(-1) : x, true;
    case Opcode::Sqrt:
      return out = std::sqrt(x), true;
    // Two roundings, as PyTorch does and a code generator can repeat exactly.
    case Opcode::Rsqrt:
      return out = T(1) / std::sqrt(x), true;
    default:
      return false;
  }
}

// Everything else goes through double and is rounded once. What reads alike for real and complex numbers:
template <typename X>
bool analytic(Opcode opcode, X x, X& out) {
  switch (opcode) {
    case Opcode::Cosine:
      return out = std::cos(x), true;
    case Opcode::Exponential:
      return out = std::exp(x), true;
    case Opcode::Log:
      return out = std::log(x), true;
    case Opcode::Logistic:
      return out = 1.0 / (1.0 + std::exp(-x)), true;
    case Opcode::Sine:
      return out = std::sin(x), true;
    case Opcode::Tan:
      return out = std::tan(x), true;
    case Opcode::Tanh:
      return out = std::tanh(x), true;
    default:
      return false;
  }
}

bool transcendental(Opcode opcode, double x, double& out) {
  switch (opcode) {
    case Opcode::Cbrt:
      return out = std::cbrt(x), true;
    case Opcode::ExponentialMinusOne:
      return out = std::expm1(x), true;
    case Opcode::LogPlusOne:
      return out = std::log1p(x), true;
    default:
      return analytic(opcode, x, out);
  }
}

bool transcendental(Opcode opcode, std::complex<double> x, std::complex<double>& out) {
  switch (opcode) {
    case Opcode::Cbrt:
      return out = std::pow(x, 1.0 / 3.0), true;
    case Opcode::ExponentialMinusOne: {
      // exp(a + ib) - 1 without cancellation in the real part: expm1(a) cos(b) - 2 sin(b/2)^2.
      double half = std::sin(x.imag() / 2);
      out = {std::expm1(x.real()) * std::cos(x.imag()) - 2 * half * half, std::exp(x.real()) * std::sin(x.imag())};
      return true;
    }
    case Opcode::LogPlusOne:
      return out = std::log(1.0 + x), true;
    case Opcode::Sqrt:
      return out = std::sqrt(x), true;
    case Opcode::Rsqrt:
      return out = 1.0 / std::sqrt(x), true;
    case Opcode::Negate:
      return out = -x, true;
    case Opcode::Sign:
      return out = x == 0.0 ? x : x / std::abs(x), true;
    default:
      return analytic(opcode, x, out);
  }
}

template <typename T>
bool integer(Opcode opcode, T x, T& out) {
  if constexpr (std::is_same_v<T, bool>) {
    switch (opcode) {
      case Opcode::Not:
        return out = !x, true;
      case Opcode::Abs:
      case Opcode::Sign:
      case Opcode::Real:
      case Opcode::PopulationCount:
        return out = x, true;
      case Opcode::Imag:
        return out = false, true;
      case Opcode::CountLeadingZeros:
        return out = !x, true;
      default:
        return false;
    }
  } else {
    using U = std::make_unsigned_t<T>;
    switch (opcode) {
      case Opcode::Abs:
        return out = x < T(1) ? static_cast<T>(-Wrapping<T>(x)) : x, true;
      case Opcode::CountLeadingZeros:
        return out = static_cast<T>(std::countl_zero(static_cast<U>(x))), true;
      case Opcode::Imag:
        return out = 0, true;
      case Opcode::Negate:
        return out = static_cast<T>(-Wrapping<T>(x)), true;
      case Opcode::Not:
        return out = static_cast<T>(~x), true;
      case Opcode::PopulationCount:
        return out = static_cast<T>(std::popcount(static_cast<U>(x))), true;
      case Opcode::Ceil:
      case Opcode::Floor:
      case Opcode::Real:
      case Opcode::RoundNearestAfz:
      case Opcode::RoundNearestEven:
        return out = x, true;
      case Opcode::Sign:
        return out = static_cast<T>((x > T(0)) - (x < T(1) && x != T(0))), true;
      default:
        return false;
    }
  }
}

template <typename T>
bool apply(Opcode opcode, T x, T& out) {
  if constexpr (std::is_integral_v<T>) {
    return integer(opcode, x, out);
  } else if constexpr (is_complex_type<T>) {
    std::complex<double> value;
    if (!transcendental(opcode, std::complex<double>(x), value)) return false;
    out = T(value);
    return true;
  } else {
    if (exact_float(opcode, x, out)) return true;
    double value;
    if (!transcendental(opcode, double{x}, value)) return false;
    out = static_cast<T>(value);
    return true;
  }
}

// abs, real and imag of complex elements, whose results are real.
template <typename T>
bool real_part_of(Opcode opcode, const Buffer& x, Buffer& out) {
  if (opcode != Opcode::Abs && opcode != Opcode::Real && opcode != Opcode::Imag) return false;
  using R = typename T::value_type;
  for (int64_t i = 0, n = x.numel(); i < n; ++i) {
    T element = x.data<T>()[i];
    out.data<R>()[i] = opcode == Opcode::Real ? element.real()
                       : opcode == Opcode::Imag
                           ? element.imag()
                           : static_cast<R>(std::hypot(double{element.real()}, double{element.imag()}));
  }
  return true;
}

template <typename T>
bool finite(T x) {
  if constexpr (is_complex_type<T>) {
    return std::isfinite(x.real()) && std::isfinite(x.imag());
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isfinite(x);
  } else {
    return true;
  }
}

void constant(const Invocation& call) {
  const auto& literal = call.operation.attributes.get<ir::Literal>("value");
  Buffer& out = call.result();
  size_t size = dtype_size(out.dtype);
  check_internal(literal.type.dtype == out.dtype && (literal.is_splat() || literal.bytes.size() == out.bytes.size()),
                 "constant: the literal has {} bytes of {}, the result {} of {}", literal.bytes.size(),
                 dtype_name(literal.type.dtype), out.bytes.size(), dtype_name(out.dtype));
  for (size_t at = 0; at < out.bytes.size(); at += size)
    std::memcpy(out.bytes.data() + at, literal.bytes.data() + (literal.is_splat() ? 0 : at), size);
  if (out.dtype == DType::Bool) {
    for (std::byte& byte : out.bytes) byte = std::byte{byte != std::byte{0}};
  }
}

}  // namespace

void evaluate_source(const Invocation& call) {
  if (call.operation.opcode == Opcode::Constant) return constant(call);
  auto dimension = static_cast<size_t>(call.operation.attributes.get_int("iota_dimension"));
  Buffer& out = call.result();
  Position position(out.sizes);
  size_t size = dtype_size(out.dtype);
  for (int64_t i = 0, n = out.numel(); i < n; ++i, position.next())
    store_from_int(out.dtype, position[dimension], out.bytes.data() + i * size);
}

void evaluate_unary(const Invocation& call) {
  Opcode opcode = call.operation.opcode;
  Buffer scratch, wide = make_wide(call.result());
  const Buffer& x = widen(call.operand(0), scratch);
  visit(x.dtype, [&]<typename T>(Tag<T>) {
    if (opcode == Opcode::IsFinite) {
      for (int64_t i = 0, n = x.numel(); i < n; ++i) wide.data<bool>()[i] = finite(x.data<T>()[i]);
      return;
    }
    if constexpr (is_complex_type<T>) {
      if (real_part_of<T>(opcode, x, wide)) return;
    }
    for (int64_t i = 0, n = x.numel(); i < n; ++i) {
      if (!apply(opcode, x.data<T>()[i], wide.data<T>()[i])) unsupported(call, call.operand(0).dtype);
    }
  });
  narrow(std::move(wide), call.result());
}

}  // namespace neuron::interpret
