// Elements as unsigned integers in whose order they are sorted: NaN is greater than every number, all NaN are equal,
// and so are zeros of both signs. A key packed above its position in the line makes any sort a stable one.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "neuron/kernels/elements.h"
#include "neuron/kernels/sort_network.h"

namespace neuron::kernels {

// The key of a float given as bits; `infinity` is the bit pattern of infinity.
template <typename Bits>
constexpr Bits float_key(Bits bits, Bits infinity) {
  constexpr auto kSign = static_cast<Bits>(Bits(1) << (sizeof(Bits) * 8 - 1));
  const auto magnitude = static_cast<Bits>(bits & ~kSign);
  if (magnitude > infinity) return static_cast<Bits>(~Bits(0));
  if (magnitude == 0) return kSign;
  return static_cast<Bits>((bits & kSign) != 0 ? ~bits : bits | kSign);
}

// The ascending key of a stored element.
template <typename E>
constexpr auto order_key(typename E::Storage stored) {
  using S = typename E::Storage;
  if constexpr (std::is_same_v<E, BFloat16Element>) {
    return float_key<uint16_t>(stored, 0x7f80);
  } else if constexpr (std::is_same_v<E, Float16Element>) {
    return float_key<uint16_t>(stored, 0x7c00);
  } else if constexpr (std::is_same_v<typename E::Compute, double>) {
    return float_key<uint64_t>(std::bit_cast<uint64_t>(E::load(stored)), 0x7ff0000000000000ull);
  } else if constexpr (std::is_same_v<typename E::Compute, float>) {
    return float_key<uint32_t>(std::bit_cast<uint32_t>(E::load(stored)), 0x7f800000u);
  } else if constexpr (std::is_same_v<E, BoolElement>) {
    return static_cast<uint8_t>(E::load(stored));
  } else {
    using U = std::make_unsigned_t<S>;
    constexpr auto kSign = static_cast<U>(std::is_signed_v<S> ? U(1) << (sizeof(S) * 8 - 1) : U(0));
    return static_cast<U>(static_cast<U>(stored) ^ kSign);
  }
}

// A key and a position that fit one register; lines of at most 2^32 elements with keys of at most 32 bits.
struct PackedEntry {
  uint64_t bits;
  static PackedEntry of(uint64_t key, int64_t position) { return {key << 32 | static_cast<uint64_t>(position)}; }
  uint64_t key() const { return bits >> 32; }
  int64_t position() const { return static_cast<int64_t>(bits & 0xffffffffu); }
  friend bool operator<(PackedEntry x, PackedEntry y) { return x.bits < y.bits; }
};

struct WideEntry {
  uint64_t bits;
  int64_t place;
  static WideEntry of(uint64_t key, int64_t position) { return {key, position}; }
  uint64_t key() const { return bits; }
  int64_t position() const { return place; }
  friend bool operator<(const WideEntry& x, const WideEntry& y) {
    return x.bits != y.bits ? x.bits < y.bits : x.place < y.place;
  }
};

// body(Entry{}) with the entry type for keys of an element type and lines of a length.
template <typename E, typename Body>
void with_entry(int64_t length, const Body& body) {
  if (sizeof(order_key<E>(typename E::Storage{})) <= 4 && length <= int64_t{1} << 32) {
    body(PackedEntry{});
  } else {
    body(WideEntry{});
  }
}

// The key of the wanted direction: descending keys are the complement, in the key's own width.
template <typename E>
uint64_t directed_key(typename E::Storage stored, bool descending) {
  auto key = order_key<E>(stored);
  return static_cast<uint64_t>(descending ? static_cast<decltype(key)>(~key) : key);
}

// Sorts entries of keys of `key_bytes` bytes whose positions ascend from 0. Least significant digit first, a byte at a
// time: a byte that is the same in all keys costs nothing but its count. `spare` is memory kept between calls.
template <typename Entry>
void sort_entries(std::vector<Entry>& entries, std::vector<Entry>& spare, int key_bytes) {
  constexpr size_t kFewEntries = 96;
  const size_t count = entries.size();
  if constexpr (std::is_same_v<Entry, PackedEntry>) {
    if (count >= 2 && count <= kLongestNetwork) return sort_in_network(&entries[0].bits, static_cast<int64_t>(count));
  }
  if (count < kFewEntries) return std::sort(entries.begin(), entries.end());
  spare.resize(count);
  std::vector<size_t> starts(static_cast<size_t>(key_bytes) * 256);
  for (const Entry& entry : entries) {
    const uint64_t key = entry.key();
    for (int digit = 0; digit < key_bytes; ++digit)
      ++starts[static_cast<size_t>(digit) * 256 + (key >> (8 * digit) & 255)];
  }
  for (int digit = 0; digit < key_bytes; ++digit) {
    size_t* start = starts.data() + static_cast<size_t>(digit) * 256;
    if (start[entries[0].key() >> (8 * digit) & 255] == count) continue;
    size_t sum = 0;
    for (int value = 0; value < 256; ++value) {
      const size_t here = start[value];
      start[value] = sum;
      sum += here;
    }
    for (const Entry& entry : entries) spare[start[entry.key() >> (8 * digit) & 255]++] = entry;
    entries.swap(spare);
  }
}

}  // namespace neuron::kernels
