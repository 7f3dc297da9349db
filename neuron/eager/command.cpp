#include "neuron/eager/command.h"

#include <algorithm>

namespace neuron::eager {

void Arena::next_chunk(size_t bytes) {
  size_t next = chunks_.empty() ? 0 : chunk_ + 1;
  while (next < chunks_.size() && chunks_[next].size < bytes) ++next;
  if (next == chunks_.size()) {
    size_t size = std::max(kChunk, bytes);
    chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
  }
  chunk_ = next;
  used_ = 0;
}

}  // namespace neuron::eager
