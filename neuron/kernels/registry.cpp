// The table of library kernels, filled by static KernelRegistration objects before main.
#include <unordered_map>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

struct Table {
  std::vector<const Kernel*> order;
  std::unordered_map<std::string_view, const Kernel*> by_name;
};

// A function's static: registrations in other files may run before this file's own initialisers.
Table& table() {
  static Table* instance = new Table;
  return *instance;
}

}  // namespace

KernelRegistration::KernelRegistration(const Kernel& kernel) {
  const Kernel* kept = new Kernel(kernel);
  bool inserted = table().by_name.emplace(kept->name, kept).second;
  check_internal(inserted, "kernel {} is registered twice", kept->name);
  table().order.push_back(kept);
}

const Kernel* find_kernel(std::string_view name) {
  auto found = table().by_name.find(name);
  return found == table().by_name.end() ? nullptr : found->second;
}

std::span<const Kernel* const> all_kernels() { return table().order; }

bool TensorView::is_contiguous() const {
  int64_t expected = 1;
  for (int d = rank() - 1; d >= 0; --d) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1 && strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

}  // namespace neuron::kernels
