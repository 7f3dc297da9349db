// What the allocator keeps in a block (Block::allocator_state).
#pragma once

#include <cstdint>
#include <new>

#include "neuron/runtime/block.h"

namespace neuron::runtime {

struct Segment;
struct StreamUses;

enum class BlockState : uint8_t {
  Spare,  // describes no memory
  Free,   // in a free list
  Live,   // handed out
  Held,   // freed by its owner, waits for other streams
};

struct BlockLinks {
  Segment* segment = nullptr;
  Block *previous = nullptr, *next = nullptr;            // neighbours in the segment, in the order of addresses
  Block *previous_free = nullptr, *next_free = nullptr;  // valid in a free list
  uint64_t freed_at = 0;                                 // position of the block's stream when it was last freed
  StreamUses* uses = nullptr;                            // other streams that used it (record_stream)
  BlockState state = BlockState::Spare;
};
static_assert(sizeof(BlockLinks) <= sizeof(Block::allocator_state));

inline BlockLinks& links(const Block* block) {
  return *std::launder(reinterpret_cast<BlockLinks*>(const_cast<uint8_t*>(block->allocator_state)));
}

}  // namespace neuron::runtime
