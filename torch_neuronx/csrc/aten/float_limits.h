// What a floating point dtype can hold, by torch's name of it: the checks of random fillers.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <limits>

namespace neuron::aten {

struct FloatLimits {
  int digits = 0;  // bits of the significand, the leading one too; 0 for dtypes that random fillers do not check
  double largest = std::numeric_limits<double>::max();
};

template <typename T>
FloatLimits float_limits_of() {
  return {std::numeric_limits<T>::digits, static_cast<double>(std::numeric_limits<T>::max())};
}

inline FloatLimits float_limits(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::BFloat16:
      return float_limits_of<c10::BFloat16>();
    case c10::ScalarType::Half:
      return float_limits_of<c10::Half>();
    case c10::ScalarType::Float:
      return float_limits_of<float>();
    case c10::ScalarType::Double:
      return float_limits_of<double>();
    default:
      return {};
  }
}

}  // namespace neuron::aten
