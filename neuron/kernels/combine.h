// How a place of a tensor takes a further value: the reductions of scatter and index_reduce.
#pragma once

#include <cstdint>
#include <type_traits>

#include "neuron/kernels/elements.h"

namespace neuron::kernels {

// The numbers are attributes of kernels.
enum class Combine : int64_t { Assign, Add, Multiply, Minimum, Maximum };

// Of a minimum or maximum a NaN wins.
template <Combine kHow, typename C>
C combine(C old, C value) {
  switch (kHow) {
    case Combine::Add:
      return add_wrapping(old, value);
    case Combine::Multiply:
      return multiply_wrapping(old, value);
    case Combine::Minimum:
      return value < old || value != value ? value : old;
    case Combine::Maximum:
      return value > old || value != value ? value : old;
    case Combine::Assign:
      break;
  }
  return value;
}

// body(std::integral_constant<Combine, how>): decided once, not for every element.
template <typename Body>
void with_combine(Combine how, const Body& body) {
  switch (how) {
    case Combine::Assign:
      return body(std::integral_constant<Combine, Combine::Assign>{});
    case Combine::Add:
      return body(std::integral_constant<Combine, Combine::Add>{});
    case Combine::Multiply:
      return body(std::integral_constant<Combine, Combine::Multiply>{});
    case Combine::Minimum:
      return body(std::integral_constant<Combine, Combine::Minimum>{});
    case Combine::Maximum:
      return body(std::integral_constant<Combine, Combine::Maximum>{});
  }
}

}  // namespace neuron::kernels
