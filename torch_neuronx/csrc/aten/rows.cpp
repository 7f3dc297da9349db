#include "torch_neuronx/csrc/aten/rows.h"

#include <c10/core/WrapDimMinimal.h>

namespace neuron::aten {

namespace {

// Beyond this many dimensions a region may not find a form it can iterate; contiguous tensors always do.
constexpr int64_t kMaxUnmergedRank = 6;

bool in_mask(uint64_t mask, int64_t d) { return (mask >> d & 1) != 0; }

bool merges(const at::Tensor& tensor, uint64_t mask) {
  if (tensor.dim() > kMaxUnmergedRank) return tensor.is_contiguous();
  int64_t inner = -1;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    if (!in_mask(mask, d) || tensor.size(d) == 1) continue;
    if (inner >= 0 && tensor.stride(d) != tensor.stride(inner) * tensor.size(inner)) return false;
    inner = d;
  }
  return true;
}

}  // namespace

void require_row_dtype(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  if (!has_dtype(type) || tensor.is_complex()) decline();
  const DType dtype = dtype_of(type);
  if (is_float(dtype) && dtype_size(dtype) == 1) decline();
  if (is_unsigned_integer(dtype) && dtype != DType::UInt8) decline();
}

uint64_t dimension_mask(at::IntArrayRef dims, int64_t rank) {
  if (rank == 0) return 0;
  if (dims.empty()) return rank >= 64 ? ~uint64_t{0} : (uint64_t{1} << rank) - 1;
  uint64_t mask = 0;
  for (int64_t dim : dims) mask |= uint64_t{1} << c10::maybe_wrap_dim(dim, rank);
  return mask;
}

uint64_t innermost_run(const at::Tensor& tensor, uint64_t mask) {
  uint64_t run = 0;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    if (in_mask(mask, d)) {
      run |= uint64_t{1} << d;
    } else if (run != 0 && tensor.size(d) != 1) {
      bool only_ones = true;
      for (int64_t e = 0; e < tensor.dim(); ++e) only_ones &= !in_mask(run, e) || tensor.size(e) == 1;
      if (!only_ones) break;
    }
  }
  return run;
}

at::DimVector kept_sizes(const at::Tensor& tensor, uint64_t mask) {
  at::DimVector sizes(tensor.sizes());
  for (size_t d = 0; d < sizes.size(); ++d)
    if ((mask >> d & 1) != 0) sizes[d] = 1;
  return sizes;
}

int64_t reduced_count(const at::Tensor& tensor, uint64_t mask) {
  int64_t count = 1;
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (in_mask(mask, d)) count *= tensor.size(d);
  return count;
}

at::Tensor alias(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(tensor.storage()), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), tensor.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, tensor.storage_offset());
  return view;
}

at::Tensor with_dimension(const at::Tensor& result, const at::Tensor& self, int64_t dimension) {
  if (result.dim() == self.dim()) return result;
  at::DimVector sizes(result.sizes()), strides(result.strides());
  sizes.insert(sizes.begin() + dimension, 1);
  strides.insert(strides.begin() + dimension, 1);
  return alias(result, sizes, strides);
}

at::Tensor mergeable(const at::Tensor& tensor, uint64_t mask) {
  if (tensor.numel() == 0) {
    // Row-major with the sizes as they are (torch counts 0 as 1 there): these merge.
    at::DimVector strides(static_cast<size_t>(tensor.dim()));
    int64_t stride = 1;
    for (size_t d = strides.size(); d-- > 0;) {
      strides[d] = stride;
      stride *= tensor.sizes()[d];
    }
    return alias(tensor, tensor.sizes(), strides);
  }
  return merges(tensor, mask) ? tensor : contiguous(tensor);
}

void record_rows(const lowering::Operator& op, DType common, at::IntArrayRef sizes, uint64_t mask,
                 std::span<const at::Tensor> outputs, std::span<const Input> inputs,
                 std::span<const int64_t> attributes) {
  for (const at::Tensor& output : outputs)
    if (output.is_complex()) decline();  // an out= tensor that the CPU converts to
  if (mask != 0) return record_row(op, common, sizes, mask, outputs, inputs, attributes);
  // Nothing is reduced: a reduced dimension of size 1 in front.
  Dims padded(std::span<const int64_t>(sizes.data(), sizes.size()));
  padded.insert(0, 1);
  record_row(op, common, at::IntArrayRef(padded.data(), padded.size()), 1, outputs, inputs, attributes);
}

void record_reduction(const ReductionSteps& steps, DType common, DType accumulator, const at::Tensor& self,
                      uint64_t mask, const at::Tensor& output, std::initializer_list<Input> extras) {
  at::Tensor current = self, target = output;
  bool first = true;
  if (innermost_run(self, mask) != mask && output.dim() != self.dim()) {
    // Partial results keep every dimension, so the output is seen with the reduced ones as 1 too: the last step alone
    // could not tell which of its dimensions are missing.
    at::DimVector strides(static_cast<size_t>(self.dim()), 0);
    for (int64_t d = 0, next = 0; d < self.dim(); ++d)
      if (!in_mask(mask, d)) strides[static_cast<size_t>(d)] = output.stride(next++);
    target = alias(output, kept_sizes(self, mask), strides);
  }
  for (;;) {
    const uint64_t run = innermost_run(current, mask);
    current = mergeable(current, run);
    if (run == mask) break;
    at::Tensor partial = empty(kept_sizes(current, run), scalar_type_of(accumulator), self.device());
    record_rows(first ? steps.first : steps.next, accumulator, current.sizes(), run, {partial}, {Input(current)});
    current = partial;
    mask &= ~run;
    first = false;
  }
  c10::SmallVector<Input, 4> inputs{Input(current)};
  for (const Input& extra : extras) inputs.push_back(extra);
  record_rows(first ? steps.whole : steps.last, common, current.sizes(), mask, {&target, 1},
              std::span(inputs.data(), inputs.size()));
}

void record_row_statistics(const lowering::Operator& op, DType common, const at::Tensor& self, uint64_t mask,
                           std::initializer_list<at::Tensor> outputs, std::initializer_list<Input> extras) {
  at::Tensor rows = self;
  std::vector<at::Tensor> targets(outputs);
  uint64_t rows_mask = mask;
  if (innermost_run(self, mask) != mask) {
    // Reduced dimensions to the back, in order.
    at::DimVector sizes, strides, kept;
    for (bool reduced : {false, true}) {
      for (int64_t d = 0; d < self.dim(); ++d) {
        if (in_mask(mask, d) != reduced) continue;
        sizes.push_back(self.size(d));
        strides.push_back(self.stride(d));
        if (!reduced) kept.push_back(self.size(d));
      }
    }
    rows = alias(self, sizes, strides);
    rows_mask = ((uint64_t{1} << (sizes.size() - kept.size())) - 1) << kept.size();
    for (at::Tensor& target : targets) {
      if (target.dim() != self.dim()) continue;
      at::DimVector kept_strides;
      for (int64_t d = 0; d < self.dim(); ++d)
        if (!in_mask(mask, d)) kept_strides.push_back(target.stride(d));
      target = alias(target, kept, kept_strides);
    }
  }
  rows = mergeable(rows, rows_mask);
  c10::SmallVector<Input, 4> inputs{Input(rows)};
  for (const Input& extra : extras) inputs.push_back(extra);
  record_rows(op, common, rows.sizes(), rows_mask, targets, std::span(inputs.data(), inputs.size()));
}

}  // namespace neuron::aten
