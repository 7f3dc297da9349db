// Random numbers, as docs/numerics.md says. The first inputs of every rule are index (row-major position, i64), seed
// and offset (i64); a distribution's parameters follow.
#include <numbers>

#include "neuron/ir/random_functions.h"
#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"
#include "neuron/lowering/operator_attributes.h"

namespace neuron::lowering {

namespace {

constexpr int kIndex = 0, kSeed = 1, kOffset = 2, kParameters = 3;

Expression shift_right(Expression x, int bits) { return x.binary(ir::Opcode::ShiftRightLogical, x.same_int(bits)); }

Expression bits(Context& c, DType dtype) {
  return {c, ir::random_bits(c.builder(), c.input(kIndex, DType::Int64), c.input(kSeed, DType::Int64),
                             c.input(kOffset, DType::Int64), dtype)};
}
Expression word(Context& c) { return bits(c, DType::UInt32); }
Expression long_word(Context& c) { return bits(c, DType::UInt64); }

// Uniform in [0, 1): the top `bits` (<= 24) bits of a word, times 2^-bits.
Expression unit_float(Context& c, int bits = 24) {
  Expression top = shift_right(word(c), 32 - bits).convert(DType::Int32).convert(DType::Float32);
  return top * (1.0 / static_cast<double>(int64_t{1} << bits));
}
Expression unit_double(Context& c) {
  return shift_right(long_word(c), 11).convert(DType::Int64).convert(DType::Float64) * 0x1p-53;
}
Expression unit(Context& c, DType dtype) { return dtype == DType::Float64 ? unit_double(c) : unit_float(c); }

Expression parameter(Context& c, int i) { return number(c, kParameters + i, c.compute()); }

// uniform(from, to): below `to` also after the rounding to a narrow float, which has that many significant bits only.
Expression unit_below(Context& c) {
  switch (c.common()) {
    case DType::BFloat16:
      return unit_float(c, 8);
    case DType::Float16:
      return unit_float(c, 11);
    case DType::Float8E4M3FN:
      return unit_float(c, 4);
    case DType::Float8E5M2:
      return unit_float(c, 3);
    default:
      return unit(c, c.compute());
  }
}
void uniform(Context& c) {
  Expression u = unit_below(c);
  Expression from = parameter(c, 0), to = parameter(c, 1);
  c.set_output(u * (to - from) + from);
}

Expression fma(Expression x, Expression y, Expression z) {
  const ir::Value operands[] = {x, y, z};
  return {x.context(), x.builder().function("fma", operands)};
}

// The logarithm of a float32 in [2^-24, 1], as generated kernels compute it, without what they do for other numbers: x
// = 2^k m with m in [sqrt(1/2), sqrt(2)), and log(1 + f) = f - f^2/2 + f^3 p(f) with relative error 2^-30.3.
Expression log_of_unit(Expression x) {
  constexpr int64_t kRootHalf = 0x3f3504f3;
  constexpr double kCoefficients[] = {0x1.555548p-2,  -0x1.000006p-2, 0x1.99a478p-3,  -0x1.555c4ep-3, 0x1.233b78p-3,
                                      -0x1.fc26acp-4, 0x1.e6c03ep-4,  -0x1.de1004p-4, 0x1.1484e8p-4};
  Expression bits = x.bitcast(DType::Int32), root = bits.same_int(kRootHalf), offset = bits - root;
  Expression f = ((offset & offset.same_int(0x7fffff)) + root).bitcast(DType::Float32) - 1.0;
  Expression k = offset.binary(ir::Opcode::ShiftRightArithmetic, offset.same_int(23)).convert(DType::Float32);
  Expression p = f.same(kCoefficients[8]);
  for (int i = 7; i >= 0; --i) p = fma(p, f, f.same(kCoefficients[i]));
  Expression square = f * f;
  Expression rest = fma(square * f, p, square * -0.5);
  rest = fma(k, f.same(0x1.7f7d1cp-20), rest);
  return fma(k, f.same(0x1.62e4p-1), f + rest);
}

Expression standard_normal(Context& c) {
  return {c, ir::random_normal(c.builder(), c.input(kIndex, DType::Int64), c.input(kSeed, DType::Int64),
                               c.input(kOffset, DType::Int64), c.compute())};
}
// normal(mean, std).
void normal(Context& c) { c.set_output(standard_normal(c) * parameter(c, 1) + parameter(c, 0)); }
void log_normal(Context& c) { c.set_output(exp(standard_normal(c) * parameter(c, 1) + parameter(c, 0))); }

// bernoulli(probability).
void bernoulli(Context& c) {
  Expression probability{c, c.input(kParameters, DType::Float32)};
  c.set_exact_output(0, unit_float(c) < probability);
}

// native_dropout(input, p) -> (output, mask): kept with probability 1 - p and then scaled by 1 / (1 - p).
void dropout(Context& c) {
  Expression x = operand(c, kParameters);
  Expression keep = 1.0 - number(c, kParameters + 1, DType::Float32);
  Expression mask = unit_float(c) < keep;
  Expression scale = select(keep == 0.0, 0.0, 1.0 / keep).convert(x.dtype());
  c.set_output(0, x * select(mask, scale, 0.0));
  if (c.output_count() > 1) c.set_exact_output(1, mask);
}
// native_dropout_backward(grad_output, mask, scale).
void dropout_backward(Context& c) {
  Expression scale = operand(c, 2);
  c.set_output(operand(c, 0) * select(truth(c, 1), scale, 0.0));
}

// random(from, range), attribute RandomRange: integers from `from` up, range of them.
void random_integer(Context& c) {
  auto range = static_cast<RandomRange>(c.attribute(0));
  if (range == RandomRange::Full) return c.set_exact_output(0, long_word(c).convert(DType::Int64));
  Expression from = number(c, kParameters, DType::Int64), count = number(c, kParameters + 1, DType::Int64);
  auto chosen = [&]() -> Expression {
    switch (range) {
      case RandomRange::Narrow:
        return shift_right(word(c).convert(DType::Int64) * count, 32);
      case RandomRange::PowerOfTwo:
        return long_word(c).convert(DType::Int64) & (count - 1.0);
      default:
        return remainder(long_word(c), count.convert(DType::UInt64)).convert(DType::Int64);
    }
  };
  c.set_exact_output(0, chosen() + from);
}

// exponential(lambda): never 0, so that it can divide.
void exponential(Context& c) {
  const bool wide = c.compute() == DType::Float64;
  const double least = wide ? 0x1p-54 : c.common() == DType::Float16 ? 0x1p-24 : 0x1p-25;  // no less is above 0 there
  Expression v = 1.0 - unit(c, c.compute());
  Expression sample = max(-(wide ? log(v) : log_of_unit(v)), least);
  c.set_output(sample / parameter(c, 0));
}
// cauchy(median, sigma).
void cauchy(Context& c) {
  Expression angle = std::numbers::pi * (unit(c, c.compute()) - 0.5);
  c.set_output(angle.unary(ir::Opcode::Tan) * parameter(c, 1) + parameter(c, 0));
}
// geometric(p): number of trials up to the first success, 1 or more.
void geometric(Context& c) {
  DType dtype = is_float(c.common()) ? c.compute() : DType::Float32;
  Expression p = number(c, kParameters, dtype);
  c.set_output(max(ceil(log(1.0 - unit(c, dtype)) / log1p(-p)), 1.0));
}

}  // namespace

std::span<const Rule> random_rules() {
  static const Rule rules[] = {
      {"uniform", uniform},       {"normal", normal},           {"log_normal", log_normal},
      {"bernoulli", bernoulli},   {"native_dropout", dropout},  {"native_dropout_backward", dropout_backward},
      {"random", random_integer}, {"exponential", exponential}, {"cauchy", cauchy},
      {"geometric", geometric},
  };
  return rules;
}

}  // namespace neuron::lowering
