// The views that programs take all the time, made in one step: torch's own kernels of them go through the dispatcher
// again, for as_strided. Calls that do not fit are left to those kernels, which raise.
#include <ATen/ops/expand_native.h>
#include <ATen/ops/permute_native.h>
#include <ATen/ops/select_native.h>
#include <ATen/ops/slice_native.h>
#include <ATen/ops/squeeze_native.h>
#include <ATen/ops/t_native.h>
#include <ATen/ops/transpose_native.h>
#include <ATen/ops/unsqueeze_native.h>

#include <algorithm>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/dispatcher.h"
#include "torch_neuronx/csrc/aten/views.h"

namespace neuron::aten {
namespace {

// False: out of range. A 0-dimensional tensor has no dimension to name here.
bool wrap(int64_t& dim, int64_t rank) {
  if (dim < 0) dim += rank;
  return dim >= 0 && dim < rank;
}

at::Tensor view_of(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(self.storage()),
                                                             self.key_set(), self.dtype());
  c10::TensorImpl* impl = view.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(sizes, strides, offset);
  return view;
}

at::Tensor swapped(const at::Tensor& self, size_t a, size_t b) {
  at::DimVector sizes(self.sizes()), strides(self.strides());
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return view_of(self, sizes, strides, self.storage_offset());
}

at::Tensor t(const at::Tensor& self) {
  if (self.dim() != 2) return at::native::t(self);
  return swapped(self, 0, 1);
}

at::Tensor transpose(const at::Tensor& self, int64_t a, int64_t b) {
  int64_t first = a, second = b;
  if (!wrap(first, self.dim()) || !wrap(second, self.dim())) return at::native::transpose(self, a, b);
  return swapped(self, static_cast<size_t>(first), static_cast<size_t>(second));
}

at::Tensor permute(const at::Tensor& self, at::IntArrayRef dims) {
  const int64_t rank = self.dim();
  bool plain = static_cast<int64_t>(dims.size()) == rank && rank <= 64;
  at::DimVector sizes, strides;
  uint64_t seen = 0;
  for (size_t d = 0; plain && d < dims.size(); ++d) {
    int64_t from = dims[d];
    plain = wrap(from, rank) && (seen >> from & 1) == 0;
    if (!plain) break;
    seen |= uint64_t{1} << from;
    sizes.push_back(self.sizes()[static_cast<size_t>(from)]);
    strides.push_back(self.strides()[static_cast<size_t>(from)]);
  }
  if (!plain) return at::native::permute(self, dims);
  return view_of(self, sizes, strides, self.storage_offset());
}

at::Tensor expand(const at::Tensor& self, at::IntArrayRef size, bool implicit) {
  const at::IntArrayRef own = self.sizes(), own_strides = self.strides();
  if (size.size() < own.size()) return at::native::expand(self, size, implicit);
  const size_t added = size.size() - own.size();
  at::DimVector sizes(size), strides(size.size(), 0);
  for (size_t d = size.size(); d-- > 0;) {
    if (d < added) {
      if (size[d] < 0) return at::native::expand(self, size, implicit);
      // As torch's kernel has it: a new dimension of size 1 steps over what is inside, others do not step.
      if (size[d] == 1 && !own.empty()) strides[d] = sizes[d + 1] * strides[d + 1];
    } else if (size[d] == -1 || size[d] == own[d - added]) {
      sizes[d] = own[d - added];
      strides[d] = own_strides[d - added];
    } else if (own[d - added] != 1 || size[d] < 0) {
      return at::native::expand(self, size, implicit);
    }
  }
  return view_of(self, sizes, strides, self.storage_offset());
}

at::Tensor select(const at::Tensor& self, int64_t dim, int64_t index) {
  int64_t at = dim, position = index;
  if (!wrap(at, self.dim()) || !wrap(position, self.sizes()[static_cast<size_t>(at)])) {
    return at::native::select_symint(self, dim, index);
  }
  at::DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t offset = self.storage_offset() + position * strides[static_cast<size_t>(at)];
  sizes.erase(sizes.begin() + at);
  strides.erase(strides.begin() + at);
  return view_of(self, sizes, strides, offset);
}

at::Tensor slice(const at::Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                 int64_t step) {
  int64_t at = dim;
  if (step <= 0 || !wrap(at, self.dim())) return at::native::slice(self, dim, start, end, step);
  at::DimVector sizes(self.sizes()), strides(self.strides());
  int64_t& size = sizes[static_cast<size_t>(at)];
  int64_t& stride = strides[static_cast<size_t>(at)];
  const auto clamped = [&](int64_t value) { return std::clamp<int64_t>(value < 0 ? value + size : value, 0, size); };
  const int64_t first = clamped(start.value_or(0));
  const int64_t last = std::max(first, end.has_value() ? clamped(*end) : size);
  const int64_t offset = self.storage_offset() + first * stride;
  size = last == first ? 0 : (last - first - 1) / step + 1;
  stride *= step;
  return view_of(self, sizes, strides, offset);
}

at::Tensor unsqueeze(const at::Tensor& self, int64_t dim) {
  int64_t at = dim;
  if (!wrap(at, self.dim() + 1)) return at::native::unsqueeze(self, dim);
  at::DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t stride = at >= self.dim() ? 1 : sizes[static_cast<size_t>(at)] * strides[static_cast<size_t>(at)];
  sizes.insert(sizes.begin() + at, 1);
  strides.insert(strides.begin() + at, stride);
  return view_of(self, sizes, strides, self.storage_offset());
}

at::Tensor squeeze(const at::Tensor& self, int64_t dim) {
  int64_t at = dim;
  if (!wrap(at, self.dim())) return at::native::squeeze(self, dim);
  at::DimVector sizes(self.sizes()), strides(self.strides());
  if (sizes[static_cast<size_t>(at)] == 1) {
    sizes.erase(sizes.begin() + at);
    strides.erase(strides.begin() + at);
  }
  return view_of(self, sizes, strides, self.storage_offset());
}

template <typename F>
void add(const char* name, F* function) {
  add_kernel(full_name(name), c10::KernelFunction::makeFromUnboxedRuntimeFunction(function));
}

}  // namespace

void register_strided_views() {
  add("t", &t);
  add("transpose.int", &transpose);
  add("permute", &permute);
  add("expand", &expand);
  add("select.int", &select);
  add("slice.Tensor", &slice);
  add("unsqueeze", &unsqueeze);
  add("squeeze.dim", &squeeze);
}

}  // namespace neuron::aten
