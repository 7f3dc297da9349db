// Standard normal numbers in float32 from pairs of random words (Box and Muller, 1958), for lanes of any number: the
// same operations, so the same bits, in scalar code and in every kind of vector.
//
// Only files that define NEURON_INLINE for their instruction set include this header. Lanes has the types Words (32-bit
// integers) and Floats, and operations on them.
#pragma once

namespace neuron {
namespace {

// -2 log(v) for v = x 2^-31 of x in [1, 2^31]: v = 2^k m with m in [sqrt(1/2), sqrt(2)), and
// log(1 + f) = f - f^2/2 + f^3 p(f) with relative error 2^-27.3.
template <typename Lanes>
NEURON_INLINE typename Lanes::Floats minus_twice_log(typename Lanes::Floats x) {
  constexpr float kCoefficients[] = {-0x1.555554p-1, 0x1.000226p-1, -0x1.99a01cp-2, 0x1.54728ap-2,
                                     -0x1.22d92ep-2, 0x1.0d8242p-2, -0x1.055ec6p-2, 0x1.38c9dep-3};
  constexpr unsigned kRootHalf = 0x3f3504f3, kScale = 31u << 23;
  const auto distance = Lanes::subtract(Lanes::as_words(x), Lanes::words(kRootHalf + kScale));
  const auto significand = Lanes::add(Lanes::both(distance, Lanes::words(0x7fffff)), Lanes::words(kRootHalf));
  const auto f = Lanes::subtract(Lanes::as_floats(significand), Lanes::floats(1));
  const auto k = Lanes::to_floats(Lanes::template shift_right_signed<23>(distance));
  auto p = Lanes::floats(kCoefficients[7]);
  for (int i = 6; i >= 0; --i) p = Lanes::multiply_add(p, f, Lanes::floats(kCoefficients[i]));
  const auto square = Lanes::multiply(f, f);
  auto rest = Lanes::multiply_add(Lanes::multiply(square, f), p, square);
  rest = Lanes::multiply_add(k, Lanes::floats(-0x1.7f7d1cp-19f), rest);  // the low part of 2 log 2
  rest = Lanes::multiply_add(f, Lanes::floats(-2), rest);
  return Lanes::multiply_add(k, Lanes::floats(-0x1.62e4p0f), rest);
}

// sin(2 pi t) for t in [0, 1/4], with relative error 2^-25.
template <typename Lanes>
NEURON_INLINE typename Lanes::Floats sine_of_turns(typename Lanes::Floats t) {
  constexpr float kCoefficients[] = {0x1.921fb6p2f, -0x1.4abbeep5f, 0x1.466ee4p6f, -0x1.32e03cp6f, 0x1.466de4p5f};
  const auto square = Lanes::multiply(t, t);
  auto p = Lanes::floats(kCoefficients[4]);
  for (int i = 3; i >= 0; --i) p = Lanes::multiply_add(p, square, Lanes::floats(kCoefficients[i]));
  return Lanes::multiply(p, t);
}

// The radius is that of v = (floor(a / 2) | 1) 2^-31, rounded to float32; the upper two bits of b are the signs of
// cosine and sine, the next 24 the angle in its quadrant, at odd multiples of 2^-26 turns.
template <typename Lanes>
NEURON_INLINE void box_muller(typename Lanes::Words a, typename Lanes::Words b, typename Lanes::Floats& cosine,
                              typename Lanes::Floats& sine) {
  const auto one = Lanes::words(1), sign = Lanes::words(0x80000000u);
  const auto v = Lanes::to_floats(Lanes::either(Lanes::template shift_right<1>(a), one));
  const auto radius = Lanes::square_root(minus_twice_log<Lanes>(v));
  const auto angle = Lanes::either(Lanes::both(Lanes::template shift_right<6>(b), Lanes::words(0xffffff)), one);
  const auto t = Lanes::multiply(Lanes::to_floats(angle), Lanes::floats(0x1p-26f));
  const auto x = Lanes::multiply(radius, sine_of_turns<Lanes>(Lanes::subtract(Lanes::floats(0.25f), t)));
  const auto y = Lanes::multiply(radius, sine_of_turns<Lanes>(t));
  cosine = Lanes::as_floats(Lanes::differ(Lanes::as_words(x), Lanes::both(b, sign)));
  sine = Lanes::as_floats(Lanes::differ(Lanes::as_words(y), Lanes::both(Lanes::template shift_left<1>(b), sign)));
}

}  // namespace
}  // namespace neuron
