#include "neuron/runtime/drivers/mapped_memory.h"

#include <sys/mman.h>

#include <cstdint>

namespace neuron::runtime {
namespace {

size_t page_rounded(size_t size) { return (size + 4095) / 4096 * 4096; }

}  // namespace

void* map_memory(size_t size) {
  size = page_rounded(size);
  const size_t reserve = size + kMappingAlignment;
  void* raw = mmap(nullptr, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(raw);
  const size_t address = reinterpret_cast<uintptr_t>(raw);
  const size_t lead = (kMappingAlignment - address % kMappingAlignment) % kMappingAlignment;
  if (lead > 0) munmap(begin, lead);
  char* aligned = begin + lead;
  if (const size_t tail = reserve - lead - size; tail > 0) munmap(aligned + size, tail);
  if (size >= kMappingAlignment) madvise(aligned, size, MADV_HUGEPAGE);
  return aligned;
}

void unmap_memory(void* address, size_t size) { munmap(address, page_rounded(size)); }

}  // namespace neuron::runtime
