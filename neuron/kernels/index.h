// Advanced indexing: index tensors pick positions along some dimensions of a tensor, the other dimensions are slices.
#pragma once

#include "neuron/kernels/combine.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {

enum class IndexCheck {
  Wrap,         // negative values count from the end; "index 7 is out of bounds for dimension 0 with size 5"
  NonNegative,  // embedding, index_select, index_add: "index out of range in self"
};

// Where `self` is read or written. The other tensor (result of a read, values of a write) has the block of index
// positions in place of the indexed dimensions: [dimensions before, block, dimensions after].
struct IndexedPlaces {
  std::span<const TensorView> indices;  // int32 or int64, all of the block's shape (stride 0 where broadcast)
  std::span<const int64_t> dimensions;  // of self, one per index tensor
  int64_t position = 0;                 // dimension of the other tensor where the block starts
  IndexCheck check = IndexCheck::Wrap;
};

// All throw Error(Index) for a value out of bounds before they write anything.

// other <- self at the places.
void read_indexed(const IndexedPlaces& places, const TensorView& self, const TensorView& other, int threads);
// self at the places <- other; a place that comes twice keeps the last value in row-major order of the block.
void write_indexed(const IndexedPlaces& places, const TensorView& self, const TensorView& other, int threads);
// self at the places += alpha * other, in row-major order of the block; narrow floats are summed in float32.
void add_indexed(const IndexedPlaces& places, const TensorView& self, const TensorView& other, Scalar alpha,
                 int threads);
// self at the places <- what it holds combined with other, in row-major order of the block. For dtypes that are
// computed as they are stored.
void combine_indexed(const IndexedPlaces& places, const TensorView& self, const TensorView& other, Combine how,
                     int threads);

}  // namespace neuron::kernels
