// Device memory as pages of this process.
#pragma once

#include <cstddef>

namespace neuron::runtime {

inline constexpr size_t kMappingAlignment = size_t{2} << 20;

// Fresh zeroed pages that take room only when touched, aligned to 2 MiB and in huge pages where the system has them.
// Null when there is no address space left.
void* map_memory(size_t size);
void unmap_memory(void* address, size_t size);

}  // namespace neuron::runtime
