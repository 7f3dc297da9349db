// Internal to the interpreter: the binary operations on two elements, used by elementwise operations, reducers, windows
// and scatter alike, so that each has one definition.
#pragma once

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

// Integers wrap around: computed on the unsigned type, where that is defined. Unsigned types narrower than int would
// be promoted to (signed) int, whose product can overflow; hence at least `unsigned`.
template <typename T>
using Wrapping = std::conditional_t<(sizeof(T) < sizeof(unsigned)), unsigned, std::make_unsigned_t<T>>;

template <typename T>
bool is_nan(T x) {
  if constexpr (is_complex_type<T>) {
    return std::isnan(x.real()) || std::isnan(x.imag());
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(x);
  } else {
    return false;
  }
}

// Complex numbers are ordered by real part, then imaginary part (StableHLO).
template <typename T>
bool greater(T x, T y) {
  if constexpr (is_complex_type<T>) {
    return x.real() > y.real() || (x.real() == y.real() && x.imag() > y.imag());
  } else {
    return x > y;
  }
}

template <typename T>
T add(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return x || y;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(Wrapping<T>(x) + Wrapping<T>(y));
  } else {
    return x + y;
  }
}

template <typename T>
T subtract(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return x != y;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(Wrapping<T>(x) - Wrapping<T>(y));
  } else {
    return x - y;
  }
}

// Complex: the four products of the definition, each rounded; no special treatment of infinities, as in PyTorch.
template <typename T>
T multiply(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return x && y;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(Wrapping<T>(x) * Wrapping<T>(y));
  } else if constexpr (is_complex_type<T>) {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  } else {
    return x * y;
  }
}

// Integers truncate. Division by zero gives all bits set, and the smallest integer divided by -1 is itself: what XLA
// gives, and what never traps. Complex: Smith's method (R. L. Smith, Algorithm 116, 1962), as numpy and PyTorch do.
template <typename T>
T divide(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return x || !y;
  } else if constexpr (std::is_integral_v<T>) {
    if (y == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
      if (y == -1) return static_cast<T>(-Wrapping<T>(x));
    }
    return static_cast<T>(x / y);
  } else if constexpr (is_complex_type<T>) {
    using R = typename T::value_type;
    R a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
    if (std::fabs(c) >= std::fabs(d)) {
      if (c == 0 && d == 0) return {a / std::fabs(c), b / std::fabs(c)};
      R ratio = d / c, scale = R(1) / (c + d * ratio);
      return {(a + b * ratio) * scale, (b - a * ratio) * scale};
    }
    R ratio = c / d, scale = R(1) / (c * ratio + d);
    return {(a * ratio + b) * scale, (b * ratio - a) * scale};
  } else {
    return x / y;
  }
}

// Sign of the dividend. By zero: the dividend.
template <typename T>
T remainder(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return x && !y;
  } else if constexpr (std::is_integral_v<T>) {
    if (y == 0) return x;
    if constexpr (std::is_signed_v<T>) {
      if (y == -1) return 0;
    }
    return static_cast<T>(x % y);
  } else {
    return std::fmod(x, y);
  }
}

// A NaN wins; of equal operands (zeros of either sign) the second is taken, as x86's maxps and PyTorch do.
template <typename T>
T maximum(T x, T y) {
  if (is_nan(x)) return x;
  if (is_nan(y)) return y;
  return greater(x, y) ? x : y;
}

template <typename T>
T minimum(T x, T y) {
  if (is_nan(x)) return x;
  if (is_nan(y)) return y;
  return greater(y, x) ? x : y;
}

// Integers by repeated squaring; a negative exponent gives 0 unless the base is 1 or -1.
template <typename T>
T power(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return x || !y;
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) {
      if (y < 0 && x == -1) return y % 2 != 0 ? -1 : 1;
      if (y < 0) return x == 1 ? 1 : 0;
    }
    Wrapping<T> result = 1, base = static_cast<Wrapping<T>>(x);
    for (auto exponent = static_cast<std::make_unsigned_t<T>>(y); exponent != 0; exponent >>= 1) {
      if (exponent & 1) result *= base;
      base *= base;
    }
    return static_cast<T>(result);
  } else if constexpr (is_complex_type<T>) {
    return T(std::pow(std::complex<double>(x), std::complex<double>(y)));
  } else {
    return static_cast<T>(std::pow(static_cast<double>(x), static_cast<double>(y)));
  }
}

// Calls body(function) with the C++ function of a binary opcode, for use as `reducer`; false when T has none.
template <typename T, typename Body>
bool with_reducer(ir::Opcode opcode, Body&& body) {
  using ir::Opcode;
  switch (opcode) {
    case Opcode::Add:
      return body([](T x, T y) { return add(x, y); }), true;
    case Opcode::Multiply:
      return body([](T x, T y) { return multiply(x, y); }), true;
    case Opcode::Maximum:
      return body([](T x, T y) { return maximum(x, y); }), true;
    case Opcode::Minimum:
      return body([](T x, T y) { return minimum(x, y); }), true;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (opcode) {
      case Opcode::And:
        return body([](T x, T y) { return static_cast<T>(x & y); }), true;
      case Opcode::Or:
        return body([](T x, T y) { return static_cast<T>(x | y); }), true;
      case Opcode::Xor:
        return body([](T x, T y) { return static_cast<T>(x ^ y); }), true;
      default:
        break;
    }
  }
  return false;
}

// The value that changes nothing when combined with another by one of with_reducer()'s opcodes.
template <typename T>
T reducer_identity(ir::Opcode opcode) {
  using ir::Opcode;
  switch (opcode) {
    case Opcode::Multiply:
      return T(1);
    case Opcode::Maximum:
    case Opcode::Minimum: {
      bool low = opcode == Opcode::Maximum;
      if constexpr (is_complex_type<T>) {
        using R = typename T::value_type;
        R extreme = low ? -std::numeric_limits<R>::infinity() : std::numeric_limits<R>::infinity();
        return {extreme, extreme};
      } else if constexpr (std::is_floating_point_v<T>) {
        return low ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
      } else {
        return low ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
      }
    }
    case Opcode::And:
      if constexpr (std::is_same_v<T, bool>) {
        return true;
      } else if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(~T{0});
      } else {
        return T(0);
      }
    default:
      return T(0);
  }
}

}  // namespace neuron::interpret
