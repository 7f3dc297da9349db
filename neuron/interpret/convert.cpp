// convert and bitcast_convert. Conversions are those of PyTorch on x86 (docs/numerics.md, "Conversions").
#include <cmath>
#include <complex>
#include <limits>

#include "neuron/base/float_formats.h"
#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

namespace {

// What x86's cvttsd2si does: truncation; NaN and anything out of range give the smallest integer.
template <typename I>
I truncate(double x) {
  double limit = -static_cast<double>(std::numeric_limits<I>::min());
  double whole = std::trunc(x);
  return whole >= -limit && whole < limit ? static_cast<I>(whole) : std::numeric_limits<I>::min();
}

template <typename To>
To float_to_integer(double x) {
  if constexpr (std::is_same_v<To, int64_t>) {
    return truncate<int64_t>(x);
  } else if constexpr (std::is_same_v<To, uint64_t>) {
    constexpr double half = 9223372036854775808.0;
    if (x >= half) return static_cast<uint64_t>(truncate<int64_t>(x - half)) ^ (uint64_t{1} << 63);
    return static_cast<uint64_t>(truncate<int64_t>(x));
  } else if constexpr (std::is_same_v<To, uint32_t>) {
    constexpr double half = 2147483648.0;
    if (x >= half) return static_cast<uint32_t>(truncate<int32_t>(x - half)) ^ (uint32_t{1} << 31);
    return static_cast<uint32_t>(truncate<int32_t>(x));
  } else if constexpr (std::is_same_v<To, uint8_t>) {
    return static_cast<uint8_t>(truncate<int64_t>(x));
  } else {
    return static_cast<To>(truncate<int32_t>(x));
  }
}

template <typename From, typename To>
To convert_element(From x) {
  if constexpr (is_complex_type<From> && is_complex_type<To>) {
    return To(x);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (is_complex_type<From>) {
    return convert_element<typename From::value_type, To>(x.real());
  } else if constexpr (is_complex_type<To>) {
    return To(convert_element<From, typename To::value_type>(x), 0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return float_to_integer<To>(static_cast<double>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace

void evaluate_convert(const Invocation& call) {
  if (call.operation.opcode == ir::Opcode::BitcastConvert) {
    call.result().bytes = call.operand(0).bytes;
    return;
  }
  Buffer scratch, wide = make_wide(call.result());
  const Buffer& x = widen(call.operand(0), scratch);
  visit(x.dtype, [&]<typename From>(Tag<From>) {
    visit(wide.dtype, [&]<typename To>(Tag<To>) {
      for (int64_t i = 0, n = x.numel(); i < n; ++i) wide.data<To>()[i] = convert_element<From, To>(x.data<From>()[i]);
    });
  });
  narrow(std::move(wide), call.result());
}

}  // namespace neuron::interpret
