#include "neuron/base/random_numbers.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "neuron/base/philox.h"

#define NEURON_INLINE inline
#include "neuron/base/box_muller.h"

namespace neuron {

namespace {

struct OneLane {
  using Words = uint32_t;
  using Floats = float;
  static Words words(uint32_t x) { return x; }
  static Floats floats(float x) { return x; }
  static Words as_words(Floats x) { return std::bit_cast<uint32_t>(x); }
  static Floats as_floats(Words x) { return std::bit_cast<float>(x); }
  static Floats to_floats(Words x) { return static_cast<float>(static_cast<int32_t>(x)); }
  static Words add(Words x, Words y) { return x + y; }
  static Words subtract(Words x, Words y) { return x - y; }
  static Words both(Words x, Words y) { return x & y; }
  static Words either(Words x, Words y) { return x | y; }
  static Words differ(Words x, Words y) { return x ^ y; }
  template <int bits>
  static Words shift_left(Words x) {
    return x << bits;
  }
  template <int bits>
  static Words shift_right(Words x) {
    return x >> bits;
  }
  template <int bits>
  static Words shift_right_signed(Words x) {
    return static_cast<uint32_t>(static_cast<int32_t>(x) >> bits);
  }
  static Floats subtract(Floats x, Floats y) { return x - y; }
  static Floats multiply(Floats x, Floats y) { return x * y; }
  static Floats multiply_add(Floats x, Floats y, Floats z) { return std::fma(x, y, z); }
  static Floats square_root(Floats x) { return std::sqrt(x); }
};

}  // namespace

uint32_t random_word(uint64_t seed, uint64_t offset, uint64_t element) {
  return philox(seed, offset + element / 64 * 16 + element % 16)[element / 16 % 4];
}

uint64_t random_long_word(uint64_t seed, uint64_t offset, uint64_t element) {
  const auto words = philox(seed, offset + element / 32 * 16 + element % 16);
  const size_t low = element / 16 % 2 * 2;
  return uint64_t{words[low + 1]} << 32 | words[low];
}

float random_normal(uint64_t seed, uint64_t offset, uint64_t element) {
  const auto words = philox(seed, offset + element / 64 * 16 + element % 16);
  const size_t first = element / 32 % 2 * 2;
  float cosine, sine;
  box_muller<OneLane>(words[first], words[first + 1], cosine, sine);
  return element / 16 % 2 == 0 ? cosine : sine;
}

double random_normal_double(uint64_t seed, uint64_t offset, uint64_t element) {
  const uint64_t a = random_long_word(seed, offset, element & ~uint64_t{16}),
                 b = random_long_word(seed, offset, element | 16);
  const double radius = std::sqrt(-2 * std::log(static_cast<double>((a >> 11) + 1) * 0x1p-53));
  const double angle = 2 * std::numbers::pi * (static_cast<double>(b >> 11) * 0x1p-53);
  return radius * (element / 16 % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

}  // namespace neuron
