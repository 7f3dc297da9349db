// Elementwise operations of two and three operands.
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>

#include "neuron/interpret/arithmetic.h"
#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

namespace {

using ir::Opcode;

template <typename T, typename F>
void map(const Buffer& x, const Buffer& y, Buffer& out, F f) {
  for (int64_t i = 0, n = out.numel(); i < n; ++i) out.data<T>()[i] = f(x.data<T>()[i], y.data<T>()[i]);
}

enum class Shift { Left, RightArithmetic, RightLogical };

// Amounts outside [0, bits) shift everything out; negative ones count as large, as in StableHLO.
template <typename T>
T shift(Shift kind, T x, T y) {
  using U = std::make_unsigned_t<T>;
  constexpr int bits = 8 * sizeof(T);
  auto amount = static_cast<U>(y);
  if (kind == Shift::RightArithmetic) {
    auto by = amount >= U(bits) ? bits - 1 : static_cast<int>(amount);
    return static_cast<T>(static_cast<std::make_signed_t<T>>(x) >> by);
  }
  if (amount >= U(bits)) return 0;
  if (kind == Shift::Left) return static_cast<T>(static_cast<uint64_t>(static_cast<U>(x)) << amount);
  return static_cast<T>(static_cast<U>(x) >> amount);
}

template <typename T>
bool arithmetic(Opcode opcode, const Buffer& x, const Buffer& y, Buffer& out) {
  switch (opcode) {
    case Opcode::Add:
      return map<T>(x, y, out, add<T>), true;
    case Opcode::Subtract:
      return map<T>(x, y, out, subtract<T>), true;
    case Opcode::Multiply:
      return map<T>(x, y, out, multiply<T>), true;
    case Opcode::Divide:
      return map<T>(x, y, out, divide<T>), true;
    case Opcode::Maximum:
      return map<T>(x, y, out, maximum<T>), true;
    case Opcode::Minimum:
      return map<T>(x, y, out, minimum<T>), true;
    case Opcode::Power:
      return map<T>(x, y, out, power<T>), true;
    default:
      break;
  }
  if constexpr (!is_complex_type<T>) {
    if (opcode == Opcode::Remainder) return map<T>(x, y, out, remainder<T>), true;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (opcode == Opcode::Atan2) {
      map<T>(x, y, out, [](T a, T b) { return static_cast<T>(std::atan2(double{a}, double{b})); });
      return true;
    }
  }
  if constexpr (std::is_integral_v<T>) {
    switch (opcode) {
      case Opcode::And:
        return map<T>(x, y, out, [](T a, T b) { return static_cast<T>(a & b); }), true;
      case Opcode::Or:
        return map<T>(x, y, out, [](T a, T b) { return static_cast<T>(a | b); }), true;
      case Opcode::Xor:
        return map<T>(x, y, out, [](T a, T b) { return static_cast<T>(a ^ b); }), true;
      default:
        break;
    }
  }
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    auto by = [&](Shift kind) { map<T>(x, y, out, [kind](T a, T b) { return shift(kind, a, b); }); };
    switch (opcode) {
      case Opcode::ShiftLeft:
        return by(Shift::Left), true;
      case Opcode::ShiftRightArithmetic:
        return by(Shift::RightArithmetic), true;
      case Opcode::ShiftRightLogical:
        return by(Shift::RightLogical), true;
      default:
        break;
    }
  }
  return false;
}

template <typename T>
bool compare_elements(ir::ComparisonDirection direction, T x, T y) {
  using enum ir::ComparisonDirection;
  if (direction == EQ) return x == y;
  if (direction == NE) return x != y;
  if (is_nan(x) || is_nan(y)) return false;
  switch (direction) {
    case LT:
      return greater(y, x);
    case LE:
      return !greater(x, y);
    case GT:
      return greater(x, y);
    default:
      return !greater(y, x);
  }
}

// (real, imaginary) pairs are how a complex buffer is laid out.
void interleave(const Buffer& real, const Buffer& imaginary, Buffer& out) {
  size_t size = dtype_size(real.dtype);
  for (int64_t i = 0, n = out.numel(); i < n; ++i) {
    std::memcpy(out.bytes.data() + 2 * i * size, real.bytes.data() + i * size, size);
    std::memcpy(out.bytes.data() + (2 * i + 1) * size, imaginary.bytes.data() + i * size, size);
  }
}

// The predicate of select may be one element for all, in StableHLO.
void select(const Invocation& call) {
  const Buffer& predicate = call.operand(0);
  size_t size = dtype_size(call.result().dtype);
  bool splat = predicate.sizes.empty();
  for (int64_t i = 0, n = call.result().numel(); i < n; ++i) {
    const Buffer& source = predicate.data<bool>()[splat ? 0 : i] ? call.operand(1) : call.operand(2);
    std::memcpy(call.result().bytes.data() + i * size, source.bytes.data() + i * size, size);
  }
}

}  // namespace

void evaluate_binary(const Invocation& call) {
  if (call.operation.opcode == Opcode::Complex) return interleave(call.operand(0), call.operand(1), call.result());
  Buffer x_scratch, y_scratch, wide = make_wide(call.result());
  const Buffer &x = widen(call.operand(0), x_scratch), &y = widen(call.operand(1), y_scratch);
  visit(x.dtype, [&]<typename T>(Tag<T>) {
    if (!arithmetic<T>(call.operation.opcode, x, y, wide)) unsupported(call, call.operand(0).dtype);
  });
  narrow(std::move(wide), call.result());
}

void evaluate_compare(const Invocation& call) {
  auto direction = call.operation.attributes.get<ir::ComparisonDirection>("comparison_direction");
  Buffer x_scratch, y_scratch;
  const Buffer &x = widen(call.operand(0), x_scratch), &y = widen(call.operand(1), y_scratch);
  visit(x.dtype, [&]<typename T>(Tag<T>) {
    for (int64_t i = 0, n = x.numel(); i < n; ++i)
      call.result().data<bool>()[i] = compare_elements(direction, x.data<T>()[i], y.data<T>()[i]);
  });
}

void evaluate_ternary(const Invocation& call) {
  if (call.operation.opcode == Opcode::Select) return select(call);
  // Clamp: minimum(maximum(x, low), high); the bounds may be one element for all.
  Buffer low_scratch, x_scratch, high_scratch, wide = make_wide(call.result());
  const Buffer& low = widen(call.operand(0), low_scratch);
  const Buffer& x = widen(call.operand(1), x_scratch);
  const Buffer& high = widen(call.operand(2), high_scratch);
  visit(x.dtype, [&]<typename T>(Tag<T>) {
    for (int64_t i = 0, n = x.numel(); i < n; ++i) {
      T lower = low.data<T>()[low.sizes.empty() ? 0 : i], upper = high.data<T>()[high.sizes.empty() ? 0 : i];
      wide.data<T>()[i] = minimum(maximum(x.data<T>()[i], lower), upper);
    }
  });
  narrow(std::move(wide), call.result());
}

}  // namespace neuron::interpret
