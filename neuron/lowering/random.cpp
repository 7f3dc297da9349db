// Random numbers: Philox4x32-10 of (seed, offset + position), as docs/numerics.md says. The first inputs of every rule
// are index (row-major position, i64), seed and offset (i64); a distribution's parameters follow.
#include <numbers>

#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"
#include "neuron/lowering/operator_attributes.h"

namespace neuron::lowering {

namespace {

constexpr int kIndex = 0, kSeed = 1, kOffset = 2, kParameters = 3;

// 32-bit words, each in the low half of a 64-bit integer: products of two of them are then one multiplication. What the
// upper halves hold until the last round does not matter, as multiplications do not read them.
struct Words {
  Expression w0, w1, w2, w3;
};

Expression shift_right(Expression x, int bits) { return x.binary(ir::Opcode::ShiftRightLogical, x.same_int(bits)); }
Expression low_half(Expression x) { return x & x.same_int(0xffffffff); }

// The block of four words for a position. Words 2 and 3 of the last round cost nothing unless they are used: dead code.
Words philox(Context& c) {
  Expression counter = number(c, kOffset, DType::Int64) + Expression{c, c.input(kIndex, DType::Int64)};
  Expression seed = number(c, kSeed, DType::Int64);
  Expression k0 = low_half(seed), k1 = shift_right(seed, 32);
  Expression zero = counter.same_int(0);
  Words w{counter, shift_right(counter, 32), zero, zero};
  for (int round = 0; round < 10; ++round) {
    Expression p0 = low_half(w.w0) * w.w0.same_int(0xD2511F53), p1 = low_half(w.w2) * w.w2.same_int(0xCD9E8D57);
    w = {shift_right(p1, 32) ^ w.w1 ^ k0, p1, shift_right(p0, 32) ^ w.w3 ^ k1, p0};
    k0 = low_half(k0 + k0.same_int(0x9E3779B9));
    k1 = low_half(k1 + k1.same_int(0xBB67AE85));
  }
  return {low_half(w.w0), low_half(w.w1), low_half(w.w2), low_half(w.w3)};
}

// Uniform in [0, 1): the top `bits` (<= 24) bits of a word, times 2^-bits.
Expression unit_float(Expression word, int bits = 24) {
  Expression top = shift_right(word, 32 - bits).convert(DType::Int32).convert(DType::Float32);
  return top * (1.0 / static_cast<double>(int64_t{1} << bits));
}
Expression unit_double(Expression low, Expression high) {
  Expression bits = high.binary(ir::Opcode::ShiftLeft, high.same_int(32)) | low;
  return shift_right(bits, 11).convert(DType::Float64) * 0x1p-53;
}
Expression unit(Context& c, const Words& words) {
  return c.compute() == DType::Float64 ? unit_double(words.w0, words.w1) : unit_float(words.w0);
}

Expression parameter(Context& c, int i) { return number(c, kParameters + i, c.compute()); }

// uniform(from, to): below `to` also after the rounding to a narrow float, which has that many significant bits only.
void uniform(Context& c) {
  Words words = philox(c);
  Expression u = unit(c, words);
  switch (c.common()) {
    case DType::BFloat16:
      u = unit_float(words.w0, 8);
      break;
    case DType::Float16:
      u = unit_float(words.w0, 11);
      break;
    case DType::Float8E4M3FN:
      u = unit_float(words.w0, 4);
      break;
    case DType::Float8E5M2:
      u = unit_float(words.w0, 3);
      break;
    default:
      break;
  }
  Expression from = parameter(c, 0), to = parameter(c, 1);
  c.set_output(u * (to - from) + from);
}

// cos(2 pi u) for u in [0, 1), a multiple of 2^-24, within 2.2e-7: -sin(2 pi b) of b = 1/4 - |u - 1/2|, which is exact.
Expression cosine_of_turns(Expression u) {
  constexpr double kSine[] = {6.2831854820251465, -41.34170150756836, 81.605224609375,
                              -76.70417022705078, 42.00777053833008,  -14.381221771240234};
  Expression b = 0.25 - abs(u - 0.5), square = b * b;
  Expression p = square * kSine[5] + kSine[4];
  for (int i = 3; i >= 0; --i) p = p * square + kSine[i];
  return -(b * p);
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
  Words words = philox(c);
  const bool wide = c.compute() == DType::Float64;
  Expression v = 1.0 - unit(c, words);
  Expression radius = sqrt(-2.0 * (wide ? log(v) : log_of_unit(v)));
  if (wide) return radius * cos(2 * std::numbers::pi * unit_double(words.w2, words.w3));
  return radius * cosine_of_turns(unit_float(words.w1));
}
// normal(mean, std).
void normal(Context& c) { c.set_output(standard_normal(c) * parameter(c, 1) + parameter(c, 0)); }
void log_normal(Context& c) { c.set_output(exp(standard_normal(c) * parameter(c, 1) + parameter(c, 0))); }

// bernoulli(probability).
void bernoulli(Context& c) {
  Expression probability{c, c.input(kParameters, DType::Float32)};
  c.set_exact_output(0, unit_float(philox(c).w0) < probability);
}

// native_dropout(input, p) -> (output, mask): kept with probability 1 - p and then scaled by 1 / (1 - p).
void dropout(Context& c) {
  Expression x = operand(c, kParameters);
  Expression keep = 1.0 - number(c, kParameters + 1, DType::Float32);
  Expression mask = unit_float(philox(c).w0) < keep;
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
  Words words = philox(c);
  auto range = static_cast<RandomRange>(c.attribute(0));
  Expression from = number(c, kParameters, DType::Int64), count = number(c, kParameters + 1, DType::Int64);
  if (range == RandomRange::Narrow) return c.set_exact_output(0, shift_right(words.w0 * count, 32) + from);
  Expression bits = words.w1.binary(ir::Opcode::ShiftLeft, words.w1.same_int(32)) | words.w0;
  if (range == RandomRange::Full) return c.set_exact_output(0, bits);
  Expression rest = remainder(bits.convert(DType::UInt64), count.convert(DType::UInt64)).convert(DType::Int64);
  c.set_exact_output(0, rest + from);
}

// exponential(lambda): never 0, so that it can divide.
void exponential(Context& c) {
  const bool wide = c.compute() == DType::Float64;
  Expression v = 1.0 - unit(c, philox(c));
  Expression sample = max(-(wide ? log(v) : log_of_unit(v)), wide ? 0x1p-54 : 0x1p-25);
  c.set_output(sample / parameter(c, 0));
}
// cauchy(median, sigma).
void cauchy(Context& c) {
  Expression angle = std::numbers::pi * (unit(c, philox(c)) - 0.5);
  c.set_output(angle.unary(ir::Opcode::Tan) * parameter(c, 1) + parameter(c, 0));
}
// geometric(p): number of trials up to the first success, 1 or more.
void geometric(Context& c) {
  DType dtype = is_float(c.common()) ? c.compute() : DType::Float32;
  Words words = philox(c);
  Expression u = dtype == DType::Float64 ? unit_double(words.w0, words.w1) : unit_float(words.w0);
  Expression p = number(c, kParameters, dtype);
  c.set_output(max(ceil(log(1.0 - u) / log1p(-p)), 1.0));
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
