#include "torch_neuronx/csrc/aten/layout.h"

#include <c10/util/strides.h>

#include <algorithm>

namespace neuron::aten {
namespace {

// Strides of each operand over the result's dimensions; 0 where it is broadcast.
at::DimVector expanded_strides(const at::Tensor& operand, at::IntArrayRef sizes) {
  at::DimVector strides(sizes.size(), 0);
  const size_t missing = sizes.size() - static_cast<size_t>(operand.dim());
  for (size_t d = missing; d < sizes.size(); ++d) {
    const auto own = static_cast<int64_t>(d - missing);
    if (operand.size(own) != 1 || sizes[d] == 1) strides[d] = operand.stride(own);
  }
  return strides;
}

// Negative: a is faster than b, positive: b is faster, 0: nothing tells.
int compare(size_t a, size_t b, at::IntArrayRef sizes, std::span<const at::DimVector> operands) {
  for (const at::DimVector& strides : operands) {
    if (strides[a] == 0 || strides[b] == 0) continue;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

}  // namespace

bool broadcast_into(at::DimVector& sizes, at::IntArrayRef other) {
  if (other.size() > sizes.size()) sizes.insert(sizes.begin(), other.size() - sizes.size(), 1);
  for (size_t d = 1; d <= other.size(); ++d) {
    int64_t& size = sizes[sizes.size() - d];
    const int64_t given = other[other.size() - d];
    if (size == given || given == 1) continue;
    if (size != 1) return false;
    size = given;
  }
  return true;
}

bool expands_to(at::IntArrayRef sizes, at::IntArrayRef target) {
  if (sizes.size() > target.size()) return false;
  for (size_t d = 1; d <= sizes.size(); ++d) {
    if (sizes[sizes.size() - d] != 1 && sizes[sizes.size() - d] != target[target.size() - d]) return false;
  }
  return true;
}

at::DimVector pointwise_strides(at::IntArrayRef sizes, std::span<const at::Tensor* const> operands) {
  bool same_shape = true, contiguous = true, channels_last = true, same_dense = true;
  const at::Tensor* first = nullptr;
  for (const at::Tensor* operand : operands) {
    same_shape &= operand->sizes().equals(sizes);
    contiguous &= operand->is_contiguous();
    channels_last &= operand->dim() == 4 && operand->is_contiguous(at::MemoryFormat::ChannelsLast);
    if (first == nullptr) first = operand;
    same_dense &= operand->is_non_overlapping_and_dense() && operand->strides().equals(first->strides());
  }
  if (same_shape && contiguous) return c10::contiguous_strides(sizes);
  if (same_shape && channels_last) {
    return at::DimVector{sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3], sizes[1]};
  }
  if (same_shape && same_dense && first != nullptr) return at::DimVector(first->strides());

  c10::SmallVector<at::DimVector, 4> strides;
  for (const at::Tensor* operand : operands) strides.push_back(expanded_strides(*operand, sizes));
  const std::span<const at::DimVector> view(strides.data(), strides.size());
  // Dimensions from fastest to slowest, by insertion that stops where an order is certain.
  c10::SmallVector<size_t, 6> order(sizes.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = order.size() - 1 - d;
  for (size_t i = 1; i < order.size(); ++i) {
    size_t moving = i;
    for (size_t j = i; j-- > 0;) {
      const int comparison = compare(order[j], order[moving], sizes, view);
      if (comparison < 0) break;
      if (comparison > 0) {
        std::swap(order[j], order[moving]);
        moving = j;
      }
    }
  }
  at::DimVector result(sizes.size());
  int64_t next = 1;
  for (size_t d : order) {
    result[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  }
  return result;
}

}  // namespace neuron::aten
