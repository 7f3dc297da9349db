// Random numbers in plain operations: docs/numerics.md in StableHLO.
#include <algorithm>
#include <numbers>

#include "neuron/base/error.h"
#include "neuron/base/philox.h"
#include "neuron/ir/builder.h"
#include "neuron/ir/decompositions.h"

namespace neuron::ir {

namespace {

// Formulas on unsigned 64-bit integers of one shape; a number stands for a splat.
struct Integers {
  Builder& b;
  Value splat(Value like, int64_t number) { return b.constant_int(b.type(like), number); }
  Value low(Value x) { return both(x, 0xffffffff); }
  Value both(Value x, int64_t bits) { return b.binary(Opcode::And, x, splat(x, bits)); }
  Value differ(Value x, Value y) { return b.binary(Opcode::Xor, x, y); }
  Value either(Value x, Value y) { return b.binary(Opcode::Or, x, y); }
  Value right(Value x, int bits) { return b.binary(Opcode::ShiftRightLogical, x, splat(x, bits)); }
  Value left(Value x, int bits) { return b.binary(Opcode::ShiftLeft, x, splat(x, bits)); }
  Value add(Value x, int64_t y) { return b.add(x, splat(x, y)); }
  Value times(Value x, int64_t y) { return b.multiply(x, splat(x, y)); }
  // x where the bit of `selector` is set, otherwise y.
  Value where(Value selector, int64_t bit, Value x, Value y) {
    return b.select(b.compare(ComparisonDirection::NE, both(selector, bit), splat(selector, 0)), x, y);
  }
};

struct Words {
  Value words[4];
};

// Philox4x32-10. 32-bit words in 64-bit integers, so that a product is whole.
Words philox_words(Integers& i, Value seed, Value counter) {
  Value x[4] = {i.low(counter), i.right(counter, 32), i.splat(counter, 0), i.splat(counter, 0)};
  Value key[2] = {i.low(seed), i.right(seed, 32)};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    Value p = i.times(x[0], kPhiloxMultipliers[0]), q = i.times(x[2], kPhiloxMultipliers[1]);
    Value next[4] = {i.differ(i.differ(i.right(q, 32), x[1]), key[0]), i.low(q),
                     i.differ(i.differ(i.right(p, 32), x[3]), key[1]), i.low(p)};
    std::copy(next, next + 4, x);
    for (int k = 0; k < 2; ++k) key[k] = i.low(i.add(key[k], kPhiloxKeySteps[k]));
  }
  return {{x[0], x[1], x[2], x[3]}};
}

// The block of elements that share `group` elements' sixteen counters.
Words words_of(Integers& i, Value element, Value seed, Value offset, int group_bits) {
  Value counter = i.b.add(offset, i.left(i.right(element, group_bits), 4));
  return philox_words(i, seed, i.b.add(counter, i.both(element, 15)));
}

Value long_word(Integers& i, const Words& w, int low) { return i.either(i.left(w.words[low + 1], 32), w.words[low]); }

Value bits(Integers& i, Value element, Value seed, Value offset, DType dtype) {
  const bool wide = dtype == DType::UInt64;
  Words w = words_of(i, element, seed, offset, wide ? 5 : 6);
  if (wide) return i.where(element, 16, long_word(i, w, 2), long_word(i, w, 0));
  Value lower = i.where(element, 16, w.words[1], w.words[0]), upper = i.where(element, 16, w.words[3], w.words[2]);
  return i.b.convert(i.where(element, 32, upper, lower), dtype);
}

// Box and Muller. In float32 with the library's logarithm, sine and cosine: not our bits.
Value normal(Integers& i, Value element, Value seed, Value offset, DType dtype) {
  Builder& b = i.b;
  const bool wide = dtype == DType::Float64;
  auto number = [&](Value x, double factor) {
    Value converted = b.convert(x, dtype);
    return b.multiply(converted, b.constant_like(converted, factor));
  };
  Words w = words_of(i, element, seed, offset, wide ? 5 : 6);
  Value v, angle, cosine_sign, sine_sign;
  if (wide) {
    v = number(i.add(i.right(long_word(i, w, 0), 11), 1), 0x1p-53);
    angle = number(i.right(long_word(i, w, 2), 11), 0x1p-53 * 2 * std::numbers::pi);
  } else {
    Value first = i.where(element, 32, w.words[2], w.words[0]), second = i.where(element, 32, w.words[3], w.words[1]);
    v = number(i.either(i.right(first, 1), i.splat(first, 1)), 0x1p-31);
    angle = number(i.either(i.both(i.right(second, 6), 0xffffff), i.splat(second, 1)), 0x1p-26 * 2 * std::numbers::pi);
    Value one = b.constant_like(v, 1), minus = b.constant_like(v, -1);
    cosine_sign = i.where(second, int64_t{1} << 31, minus, one);
    sine_sign = i.where(second, int64_t{1} << 30, minus, one);
  }
  Value cosine = b.unary(Opcode::Cosine, angle), sine = b.unary(Opcode::Sine, angle);
  if (!wide) cosine = b.multiply(cosine, cosine_sign), sine = b.multiply(sine, sine_sign);
  Value logarithm = b.unary(Opcode::Log, v);
  Value radius = b.unary(Opcode::Sqrt, b.multiply(logarithm, b.constant_like(logarithm, -2)));
  return b.multiply(radius, i.where(element, 16, sine, cosine));
}

}  // namespace

Graph random_decomposition(std::string_view name, const Type& type) {
  Graph graph{std::string(name)};
  Builder b(graph);
  Value operands[3];
  for (Value& operand : operands) operand = graph.add_parameter(type.with(DType::Int64));
  for (Value& operand : operands) operand = b.bitcast_convert(operand, DType::UInt64);
  Integers integers{b};
  const auto [element, seed, offset] = operands;
  Value result = name == "random_bits" ? bits(integers, element, seed, offset, type.dtype)
                                       : normal(integers, element, seed, offset, type.dtype);
  graph.set_results({&result, 1});
  return graph;
}

Graph rng_decomposition(const Type& bits) {
  int64_t count = 1;
  for (Dim dim : bits.dims) count *= dim;
  Graph graph("rng_bit_generator");
  Builder b(graph);
  Integers i{b};
  constexpr DType u64 = DType::UInt64;
  Type one{u64, {1}}, all{u64, {count}};
  Value state = graph.add_parameter({u64, {2}});
  Value seed = b.slice(state, {0}, {1}, {1}), offset = b.slice(state, {1}, {2}, {1});
  auto spread = [&](Value x) { return b.broadcast_in_dim(x, {count}, {0}); };
  Words w = philox_words(i, spread(seed), b.add(spread(offset), b.iota(all, 0)));
  size_t size = dtype_size(bits.dtype);
  Value word = size == 8 ? long_word(i, w, 0) : w.words[0];
  if (size < 4) word = i.both(word, (int64_t{1} << (8 * size)) - 1);
  // To the unsigned type of the size, which holds the word, and from there bit by bit.
  DType plain = size == 8 ? u64 : size == 4 ? DType::UInt32 : size == 2 ? DType::UInt16 : DType::UInt8;
  word = b.convert(word, plain);
  if (plain != bits.dtype) word = b.bitcast_convert(word, bits.dtype);
  Value parts[] = {seed, b.add(offset, b.constant_int(one, count))};
  Value results[] = {b.concatenate(parts, 0), b.reshape(word, bits.dims)};
  graph.set_results(results);
  return graph;
}

}  // namespace neuron::ir
