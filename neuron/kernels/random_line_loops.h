// Random numbers in vectors, for files that are compiled once per instruction set. Such a file defines Lanes first:
// the operations of neuron/base/box_muller.h, and these on registers of Words:
//
//   load64, store, splat64(x)  all lanes, 64 bits wide
//   add64, shift_left64, shift_right64
//   product(x, y)              of the low halves of 64-bit lanes
//   differ(x, y, z)            exclusive or
//   joined(x, y)               the low halves of 64-bit lanes of x, and of y in the upper halves
//   chosen(x, y, sign)         y where the sign bit is set, otherwise x
//
// Philox works on words in the low halves of 64-bit lanes, so that products are whole; what the upper halves hold does
// not matter.
#pragma once

#include <algorithm>
#include <cstring>

#include "neuron/base/philox.h"
#include "neuron/base/random_numbers.h"
#include "neuron/kernels/random_lines.h"

namespace neuron::kernels {
namespace {

using Words = Lanes::Words;

// Elements that share sixteen counters.
constexpr int kCounters = 16, kElements = 64, kLongElements = 32;

struct Keys {
  uint64_t keys[kPhiloxRounds][2];
  explicit Keys(uint64_t seed) {
    auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    for (auto& round : keys) {
      round[0] = key0, round[1] = key1;
      key0 += kPhiloxKeySteps[0], key1 += kPhiloxKeySteps[1];
    }
  }
  NEURON_INLINE Words of(int round, int word) const { return Lanes::splat64(keys[round][word]); }
};

// The blocks of some registers of counters side by side: words[r][0 … 3] of counters[r].
template <int count>
NEURON_INLINE void philox_blocks(const Keys& keys, const Words (&counters)[count], Words (&words)[count][4]) {
  const Words multiplier0 = Lanes::splat64(kPhiloxMultipliers[0]), multiplier1 = Lanes::splat64(kPhiloxMultipliers[1]);
  // The first two rounds without what is zero.
  for (int r = 0; r < count; ++r) {
    const Words product0 = Lanes::product(counters[r], multiplier0);
    const Words word0 = Lanes::differ(Lanes::shift_right64<32>(counters[r]), keys.of(0, 0));
    const Words word2 = Lanes::differ(Lanes::shift_right64<32>(product0), keys.of(0, 1));
    const Words next0 = Lanes::product(word0, multiplier0), next1 = Lanes::product(word2, multiplier1);
    words[r][0] = Lanes::differ(Lanes::shift_right64<32>(next1), keys.of(1, 0));
    words[r][1] = next1;
    words[r][2] = Lanes::differ(Lanes::shift_right64<32>(next0), product0, keys.of(1, 1));
    words[r][3] = next0;
  }
#pragma GCC unroll 8
  for (int round = 2; round < kPhiloxRounds; ++round) {
    for (auto& w : words) {
      const Words product0 = Lanes::product(w[0], multiplier0), product1 = Lanes::product(w[2], multiplier1);
      w[0] = Lanes::differ(Lanes::shift_right64<32>(product1), w[1], keys.of(round, 0));
      w[1] = product1;
      w[2] = Lanes::differ(Lanes::shift_right64<32>(product0), w[3], keys.of(round, 1));
      w[3] = product0;
    }
  }
}

// The same for count * Lanes::kCount counters, of which every register holds the even or the odd ones.
template <int count>
NEURON_INLINE void joined_blocks(const Keys& keys, const Words (&counters)[2 * count], Words (&joined)[count][4]) {
  Words words[2 * count][4];
  philox_blocks(keys, counters, words);
  for (int r = 0; r < count; ++r) {
    for (int q = 0; q < 4; ++q) joined[r][q] = Lanes::joined(words[2 * r][q], words[2 * r + 1][q]);
  }
}

// first + step * k for every second k from `parity` on.
NEURON_INLINE Words every_second(uint64_t first, uint64_t step, uint64_t parity) {
  uint64_t lanes[Lanes::kCount / 2];
  for (uint64_t k = 0; k < Lanes::kCount / 2; ++k) lanes[k] = first + step * (2 * k + parity);
  return Lanes::load64(lanes);
}

// What becomes of words: `block` makes the numbers of a whole group of elements from a register's worth of counters at
// `first` of sixteen; `select` those of single elements, `quarter` holding which word each element takes.
struct PlainWords {
  using Number = uint32_t;
  NEURON_INLINE static void block(const Words (&words)[4], Number* to) {
    for (int q = 0; q < 4; ++q) Lanes::store(to + kCounters * q, words[q]);
  }
  NEURON_INLINE static void select(const Words (&words)[4], Words quarter, Number* to) {
    const Words odd = Lanes::shift_left<31>(quarter), upper = Lanes::shift_left<30>(quarter);
    Lanes::store(to,
                 Lanes::chosen(Lanes::chosen(words[0], words[1], odd), Lanes::chosen(words[2], words[3], odd), upper));
  }
};

struct Normals {
  using Number = float;
  NEURON_INLINE static void block(const Words (&words)[4], Number* to) {
    for (int h = 0; h < 2; ++h) {
      Lanes::Floats cosine, sine;
      box_muller<Lanes>(words[2 * h], words[2 * h + 1], cosine, sine);
      Lanes::store(to + 2 * kCounters * h, Lanes::as_words(cosine));
      Lanes::store(to + 2 * kCounters * h + kCounters, Lanes::as_words(sine));
    }
  }
  NEURON_INLINE static void select(const Words (&words)[4], Words quarter, Number* to) {
    const Words odd = Lanes::shift_left<31>(quarter), upper = Lanes::shift_left<30>(quarter);
    Lanes::Floats cosine, sine;
    box_muller<Lanes>(Lanes::chosen(words[0], words[2], upper), Lanes::chosen(words[1], words[3], upper), cosine, sine);
    Lanes::store(to, Lanes::chosen(Lanes::as_words(cosine), Lanes::as_words(sine), odd));
  }
};

// Adjacent elements by whole groups: fill(group, to) makes one; what of a group is not wanted goes beside.
template <int elements, typename Number, typename Fill>
NEURON_INLINE void by_groups(uint64_t first, int64_t count, Number* to, Fill&& fill) {
  while (count > 0) {
    const auto skipped = static_cast<int64_t>(first % elements), wanted = std::min(elements - skipped, count);
    if (wanted == elements) {
      fill(first / elements, to);
    } else {
      alignas(64) Number group[elements];
      fill(first / elements, group);
      std::memcpy(to, group + skipped, static_cast<size_t>(wanted) * sizeof(Number));
    }
    first += static_cast<uint64_t>(wanted);
    to += wanted;
    count -= wanted;
  }
}

template <typename Kind>
NEURON_TARGET void adjacent(uint64_t seed, uint64_t offset, uint64_t first, int64_t count, typename Kind::Number* to) {
  const Keys keys(seed);
  const Words even = every_second(0, 1, 0), odd = every_second(0, 1, 1);
  auto fill = [&](uint64_t group, typename Kind::Number* target) NEURON_TARGET {
    constexpr int kRegisters = kCounters / Lanes::kCount;
    Words counters[2 * kRegisters], words[kRegisters][4];
    for (int r = 0; r < kRegisters; ++r) {
      const Words counter = Lanes::splat64(offset + group * kCounters + static_cast<uint64_t>(r * Lanes::kCount));
      counters[2 * r] = Lanes::add64(counter, even);
      counters[2 * r + 1] = Lanes::add64(counter, odd);
    }
    joined_blocks(keys, counters, words);
    for (int r = 0; r < kRegisters; ++r) Kind::block(words[r], target + r * Lanes::kCount);
  };
  by_groups<kElements>(first, count, to, fill);
}

// Elements from anywhere: a block of Philox each.
template <typename Kind>
NEURON_TARGET void scattered(uint64_t seed, uint64_t offset, uint64_t first, uint64_t step, int64_t count,
                             typename Kind::Number* to) {
  const Keys keys(seed);
  auto counter = [&](Words element) NEURON_TARGET {
    const Words group = Lanes::shift_left64<4>(Lanes::shift_right64<6>(element));
    return Lanes::add64(Lanes::splat64(offset), Lanes::add64(group, Lanes::both(element, Lanes::splat64(15))));
  };
  // Two registers side by side.
  constexpr int kTogether = 2 * Lanes::kCount;
  const uint64_t half = step * Lanes::kCount;
  const Words starts[4] = {every_second(first, step, 0), every_second(first, step, 1),
                           every_second(first + half, step, 0), every_second(first + half, step, 1)};
  for (int64_t done = 0; done < count; done += kTogether) {
    const Words distance = Lanes::splat64(step * static_cast<uint64_t>(done));
    Words elements[4], counters[4], words[2][4];
    for (int r = 0; r < 4; ++r) {
      elements[r] = Lanes::add64(starts[r], distance);
      counters[r] = counter(elements[r]);
    }
    joined_blocks(keys, counters, words);
    typename Kind::Number some[kTogether];
    typename Kind::Number* target = count - done >= kTogether ? to + done : some;
    for (int r = 0; r < 2; ++r) {
      const Words quarter = Lanes::shift_right<4>(Lanes::joined(elements[2 * r], elements[2 * r + 1]));
      Kind::select(words[r], quarter, target + r * Lanes::kCount);
    }
    if (target == some) std::memcpy(to + done, some, static_cast<size_t>(count - done) * sizeof some[0]);
  }
}

template <typename Kind>
void line(uint64_t seed, uint64_t offset, uint64_t first, uint64_t step, int64_t count, typename Kind::Number* to) {
  if (step == 1) return adjacent<Kind>(seed, offset, first, count, to);
  scattered<Kind>(seed, offset, first, step, count, to);
}

NEURON_TARGET void adjacent_long_words(uint64_t seed, uint64_t offset, uint64_t first, int64_t count, uint64_t* to) {
  constexpr int kLong = Lanes::kCount / 2, kRegisters = kCounters / kLong;
  const Keys keys(seed);
  uint64_t numbers[kCounters];
  for (int j = 0; j < kCounters; ++j) numbers[j] = static_cast<uint64_t>(j);
  auto fill = [&](uint64_t group, uint64_t* target) NEURON_TARGET {
    Words counters[kRegisters], words[kRegisters][4];
    for (int r = 0; r < kRegisters; ++r)
      counters[r] = Lanes::add64(Lanes::splat64(offset + group * kCounters), Lanes::load64(numbers + r * kLong));
    philox_blocks(keys, counters, words);
    for (int r = 0; r < kRegisters; ++r) {
      for (int q = 0; q < 2; ++q)
        Lanes::store(target + kCounters * q + kLong * r, Lanes::joined(words[r][2 * q], words[r][2 * q + 1]));
    }
  };
  by_groups<kLongElements>(first, count, to, fill);
}

void long_words(uint64_t seed, uint64_t offset, uint64_t first, uint64_t step, int64_t count, uint64_t* to) {
  if (step == 1) return adjacent_long_words(seed, offset, first, count, to);
  for (int64_t k = 0; k < count; ++k) to[k] = random_long_word(seed, offset, first + step * static_cast<uint64_t>(k));
}

void double_normals(uint64_t seed, uint64_t offset, uint64_t first, uint64_t step, int64_t count, double* to) {
  for (int64_t k = 0; k < count; ++k)
    to[k] = random_normal_double(seed, offset, first + step * static_cast<uint64_t>(k));
}

constexpr RandomLines kRandomLines = {line<PlainWords>, long_words, line<Normals>, double_normals};

}  // namespace
}  // namespace neuron::kernels
