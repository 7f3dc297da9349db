// Recording of operators that combine elements along dimensions: sets of dimensions become one or several commands over
// one reduced dimension each (docs/numerics.md: dimensions that are not adjacent are several reductions, the innermost
// first). Used by the family files of reductions, softmax, normalisation and losses.
#pragma once

#include "torch_neuronx/csrc/aten/bridge.h"

namespace neuron::aten {

// Goes to the CPU for dtypes the row rules have no arithmetic for: complex, float8, wide unsigned integers.
void require_row_dtype(const at::Tensor& tensor);

// Bit d for each dimension named (negative ones counted from the end). An empty list is every dimension.
uint64_t dimension_mask(at::IntArrayRef dims, int64_t rank);
int64_t reduced_count(const at::Tensor& tensor, uint64_t mask);

// The innermost run of adjacent reduced dimensions; dimensions of size 1 in between do not count.
uint64_t innermost_run(const at::Tensor& tensor, uint64_t mask);
// The tensor's sizes with 1 in the place of each reduced dimension.
at::DimVector kept_sizes(const at::Tensor& tensor, uint64_t mask);

// The tensor's memory under other sizes and strides; no autograd, no dispatch.
at::Tensor alias(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides);
// The result of a reduction of `self` over one dimension with that dimension kept, as size 1.
at::Tensor with_dimension(const at::Tensor& result, const at::Tensor& self, int64_t dimension);
// The tensor itself, or a recorded contiguous copy where its reduced dimensions cannot be merged into one.
at::Tensor mergeable(const at::Tensor& tensor, uint64_t mask);

// The operators that make up a reduction: `whole` where one command suffices, else first, next … and last. What is
// between them has the accumulator's dtype.
struct ReductionSteps {
  const lowering::Operator& whole;
  const lowering::Operator& first;
  const lowering::Operator& next;
  const lowering::Operator& last;
};
// output <- the reduction of `self` over the dimensions of `mask`. `extras` are the further inputs of `whole` and
// `last`.
void record_reduction(const ReductionSteps& steps, DType common, DType accumulator, const at::Tensor& self,
                      uint64_t mask, const at::Tensor& output, std::initializer_list<Input> extras = {});

// An operator of kind Normalize over the dimensions of `mask`, with the tensor as first input, `extras` after it
// (numbers) and outputs that are reduced (with or without the dimensions).
void record_row_statistics(const lowering::Operator& op, DType common, const at::Tensor& self, uint64_t mask,
                           std::initializer_list<at::Tensor> outputs, std::initializer_list<Input> extras);

// A row operator over one set of dimensions, with sizes and mask padded so that 0-dimensional tensors and empty masks
// work.
void record_rows(const lowering::Operator& op, DType common, at::IntArrayRef sizes, uint64_t mask,
                 std::span<const at::Tensor> outputs, std::span<const Input> inputs,
                 std::span<const int64_t> attributes = {});
inline void record_rows(const lowering::Operator& op, DType common, at::IntArrayRef sizes, uint64_t mask,
                        std::initializer_list<at::Tensor> outputs, std::initializer_list<Input> inputs,
                        std::initializer_list<int64_t> attributes = {}) {
  record_rows(op, common, sizes, mask, std::span(outputs.begin(), outputs.size()),
              std::span(inputs.begin(), inputs.size()), std::span(attributes.begin(), attributes.size()));
}

}  // namespace neuron::aten
