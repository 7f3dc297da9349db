// Library kernels: what is not generated (GEMM, gather, sort, strided copies …). Each is named, plain to call, and
// found in one table; an operation with several implementations keeps an ordered list, the first that accepts wins and
// the others can say why they refused (implementation_list.h).
//
// Kernels run on the executor's thread and use parallel_for with `threads`; their results do not depend on it. They may
// raise neuron::Error (an index out of range); what they have written until then has no value, and the caller poisons
// their outputs. They never call back into eager or torch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "neuron/base/dtype.h"
#include "neuron/base/scalar.h"
#include "neuron/base/small_vector.h"

namespace neuron::kernels {

struct TensorView {
  void* data = nullptr;  // element [0, …, 0]
  DType dtype = DType::Float32;
  Dims sizes;
  Dims strides;  // in elements; may be 0 or negative for inputs

  int rank() const { return static_cast<int>(sizes.size()); }
  int64_t numel() const {
    int64_t count = 1;
    for (int64_t size : sizes) count *= size;
    return count;
  }
  bool is_contiguous() const;
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

struct Call {
  std::span<const TensorView> outputs;
  std::span<const TensorView> inputs;
  std::span<const int64_t> attributes;  // meaning is documented at each kernel's row
  std::span<const Scalar> scalars;
  int threads = 1;
};

struct Kernel {
  std::string_view name;
  void (*run)(const Call&);
  // True: must run even when all its outputs died unread, because it can raise (embedding, index, gather).
  bool may_raise = false;
};

// Null when there is no such kernel. Pointers live for the whole process.
const Kernel* find_kernel(std::string_view name);
std::span<const Kernel* const> all_kernels();

// Registration from a .cpp file of this folder: a static object per kernel, no central list to edit.
class KernelRegistration {
 public:
  explicit KernelRegistration(const Kernel& kernel);
};

}  // namespace neuron::kernels
