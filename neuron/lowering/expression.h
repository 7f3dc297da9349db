// Formulas written as formulas: a value of a graph with operators and functions. A number stands for a splat of the
// other operand's type. Private to the rules of this folder.
#pragma once

#include <limits>

#include "neuron/lowering/lowering.h"

namespace neuron::lowering {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class Expression {
 public:
  Expression(Context& context, ir::Value value) : context_(&context), value_(value) {}

  operator ir::Value() const { return value_; }  // NOLINT: an expression is its value
  Context& context() const { return *context_; }
  ir::Builder& builder() const { return context_->builder(); }
  ir::Value value() const { return value_; }
  DType dtype() const { return builder().type(value_).dtype; }
  // A splat of this expression's type.
  Expression same(double number) const { return {*context_, builder().constant_like(value_, number)}; }
  Expression same_int(int64_t number) const {
    return {*context_, builder().constant_int(builder().type(value_), number)};
  }
  Expression convert(DType dtype) const { return {*context_, builder().convert(value_, dtype)}; }
  Expression bitcast(DType dtype) const { return {*context_, builder().bitcast_convert(value_, dtype)}; }

  Expression unary(ir::Opcode opcode) const { return {*context_, builder().unary(opcode, value_)}; }
  Expression function(std::string_view name) const { return {*context_, builder().function(name, value_)}; }
  Expression binary(ir::Opcode opcode, Expression y) const {
    return {*context_, builder().binary(opcode, like(y), y.like(*this))};
  }
  Expression compare(ir::ComparisonDirection direction, Expression y) const {
    return {*context_, builder().compare(direction, like(y), y.like(*this))};
  }
  // Of rank 0 beside a tensor: broadcast to its dimensions.
  Expression like(Expression other) const {
    const Dims& dims = builder().type(other).dims;
    if (builder().type(value_).rank() != 0 || dims.empty()) return *this;
    return {*context_, builder().broadcast_in_dim(value_, Dims(dims), {})};
  }

 private:
  Context* context_;
  ir::Value value_;
};

#define NEURON_BINARY(symbol, opcode)                                                                       \
  inline Expression operator symbol(Expression x, Expression y) { return x.binary(ir::Opcode::opcode, y); } \
  inline Expression operator symbol(Expression x, double y) { return x symbol x.same(y); }                  \
  inline Expression operator symbol(double x, Expression y) { return y.same(x) symbol y; }
NEURON_BINARY(+, Add)
NEURON_BINARY(-, Subtract)
NEURON_BINARY(*, Multiply)
NEURON_BINARY(/, Divide)
#undef NEURON_BINARY

#define NEURON_COMPARE(symbol, direction)                         \
  inline Expression operator symbol(Expression x, Expression y) { \
    return x.compare(ir::ComparisonDirection::direction, y);      \
  }                                                               \
  inline Expression operator symbol(Expression x, double y) { return x symbol x.same(y); }
NEURON_COMPARE(==, EQ)
NEURON_COMPARE(!=, NE)
NEURON_COMPARE(<, LT)
NEURON_COMPARE(<=, LE)
NEURON_COMPARE(>, GT)
NEURON_COMPARE(>=, GE)
#undef NEURON_COMPARE

inline Expression operator-(Expression x) { return x.unary(ir::Opcode::Negate); }
// Of truth values, or of the bits of integers.
inline Expression operator!(Expression x) { return x.unary(ir::Opcode::Not); }
inline Expression operator&(Expression x, Expression y) { return x.binary(ir::Opcode::And, y); }
inline Expression operator|(Expression x, Expression y) { return x.binary(ir::Opcode::Or, y); }
inline Expression operator^(Expression x, Expression y) { return x.binary(ir::Opcode::Xor, y); }

inline Expression abs(Expression x) { return x.unary(ir::Opcode::Abs); }
inline Expression exp(Expression x) { return x.unary(ir::Opcode::Exponential); }
inline Expression expm1(Expression x) { return x.unary(ir::Opcode::ExponentialMinusOne); }
inline Expression log(Expression x) { return x.unary(ir::Opcode::Log); }
inline Expression log1p(Expression x) { return x.unary(ir::Opcode::LogPlusOne); }
inline Expression sqrt(Expression x) { return x.unary(ir::Opcode::Sqrt); }
inline Expression tanh(Expression x) { return x.unary(ir::Opcode::Tanh); }
inline Expression sigmoid(Expression x) { return x.unary(ir::Opcode::Logistic); }
inline Expression cos(Expression x) { return x.unary(ir::Opcode::Cosine); }
inline Expression floor(Expression x) { return x.unary(ir::Opcode::Floor); }
inline Expression ceil(Expression x) { return x.unary(ir::Opcode::Ceil); }
inline Expression round(Expression x) { return x.unary(ir::Opcode::RoundNearestEven); }
inline Expression trunc(Expression x) { return x.function("trunc"); }
inline Expression power(Expression x, Expression y) { return x.binary(ir::Opcode::Power, y); }
// Sign of the dividend, as C's fmod and %.
inline Expression remainder(Expression x, Expression y) { return x.binary(ir::Opcode::Remainder, y); }

// NaN wins. Of truth values: or, and.
inline Expression max(Expression x, Expression y) {
  return x.binary(x.dtype() == DType::Bool ? ir::Opcode::Or : ir::Opcode::Maximum, y);
}
inline Expression min(Expression x, Expression y) {
  return x.binary(x.dtype() == DType::Bool ? ir::Opcode::And : ir::Opcode::Minimum, y);
}
inline Expression max(Expression x, double y) { return max(x, x.same(y)); }
inline Expression min(Expression x, double y) { return min(x, x.same(y)); }

inline Expression select(Expression predicate, Expression x, Expression y) {
  Expression on_true = x.like(predicate).like(y), on_false = y.like(on_true);
  return {x.context(), x.builder().select(predicate.like(on_true), on_true, on_false)};
}
inline Expression select(Expression predicate, Expression x, double y) { return select(predicate, x, x.same(y)); }
inline Expression select(Expression predicate, double x, Expression y) { return select(predicate, y.same(x), y); }

// Always false for dtypes without NaN; the comparison folds away there.
inline Expression is_nan(Expression x) { return x != x; }

// The dtype of signed integers as wide as `dtype`.
inline DType same_width_integer(DType dtype) {
  switch (dtype_size(dtype)) {
    case 1:
      return DType::Int8;
    case 2:
      return DType::Int16;
    case 4:
      return DType::Int32;
    default:
      return DType::Int64;
  }
}
// True where the sign bit is set; -0 and negative NaN count.
inline Expression sign_bit(Expression x) { return x.bitcast(same_width_integer(x.dtype())) < 0.0; }

// Input i in the dtype of the arithmetic.
inline Expression operand(Context& context, int i) { return {context, context.input(i, context.compute())}; }
// Input i rounded to common() first, then in the dtype of the arithmetic: comparisons and selections, where a number
// beside a narrow tensor is that tensor's dtype.
inline Expression rounded_operand(Context& context, int i) {
  ir::Value rounded = context.narrow_input(i, context.common());
  return {context, context.expand(context.builder().convert(rounded, context.compute()))};
}
// Input i in `dtype`, of rank 0 when it was recorded as a number.
inline Expression number(Context& context, int i, DType dtype) { return {context, context.narrow_input(i, dtype)}; }
// Input i as a truth value: not equal to zero.
inline Expression truth(Context& context, int i) { return {context, context.input(i, DType::Bool)}; }

}  // namespace neuron::lowering
