// The free blocks of one pool, found by size in constant time: lists for 16 ranges of sizes in each power of two, and
// bitmaps of those that are not empty. The most recently freed block of a list is handed out first: its memory is in
// the caches.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "neuron/runtime/block_links.h"

namespace neuron::runtime {

class FreeLists {
 public:
  void insert(Block* block) {
    const Place place = place_of(block->size);
    Block*& head = heads_[place.row][place.column];
    links(block).previous_free = nullptr;
    links(block).next_free = head;
    if (head != nullptr) links(head).previous_free = block;
    head = block;
    columns_[place.row] |= static_cast<uint16_t>(1u << place.column);
    rows_ |= uint64_t{1} << place.row;
  }

  void remove(Block* block) {
    BlockLinks& own = links(block);
    if (own.next_free != nullptr) links(own.next_free).previous_free = own.previous_free;
    if (own.previous_free != nullptr) {
      links(own.previous_free).next_free = own.next_free;
      return;
    }
    const Place place = place_of(block->size);
    heads_[place.row][place.column] = own.next_free;
    if (own.next_free != nullptr) return;
    columns_[place.row] &= static_cast<uint16_t>(~(1u << place.column));
    if (columns_[place.row] == 0) rows_ &= ~(uint64_t{1} << place.row);
  }

  // A block of at least `size` bytes that accept(block) is content with, or null; it stays in its list. Prefers the
  // smallest range of sizes that has one.
  template <typename Accept>
  Block* find(size_t size, Accept accept) const {
    Place place = place_of(size);
    for (;;) {
      uint32_t columns = columns_[place.row] & (~uint32_t{0} << place.column);
      while (columns != 0) {
        place.column = std::countr_zero(columns);
        for (Block* block = heads_[place.row][place.column]; block != nullptr; block = links(block).next_free) {
          if (block->size >= size && accept(block)) return block;
        }
        columns &= columns - 1;
      }
      if (place.row == kRows - 1) return nullptr;
      const uint64_t rows = rows_ & (~uint64_t{0} << (place.row + 1));
      if (rows == 0) return nullptr;
      place = {std::countr_zero(rows), 0};
    }
  }

 private:
  static constexpr int kRows = 48, kColumns = 16;
  struct Place {
    int row, column;
  };
  static Place place_of(size_t size) {
    const int row = std::bit_width(size) - 1;
    return {row, static_cast<int>((size >> (row - 4)) & (kColumns - 1))};
  }

  uint64_t rows_ = 0;
  std::array<uint16_t, kRows> columns_{};
  std::array<std::array<Block*, kColumns>, kRows> heads_{};
};

}  // namespace neuron::runtime
