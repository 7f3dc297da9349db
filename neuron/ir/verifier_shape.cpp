// Rules of operations that move elements.
#include <algorithm>

#include "neuron/ir/verifier_rules.h"

namespace neuron::ir {

namespace {

// Start indices of dynamic_slice and dynamic_update_slice: rank-0 integers of one dtype, one per dimension.
void check_starts(const Site& site, size_t first) {
  int rank = site.operand(0).rank();
  site.require(site.operands() == first + static_cast<size_t>(rank), "it has {} start indices, wanted {}",
               static_cast<int64_t>(site.operands()) - static_cast<int64_t>(first), rank);
  for (size_t i = first; i < site.operands(); ++i) {
    site.require(site.operand(i) == site.operand(first), "start indices must have one type");
    site.require(site.operand(i).rank() == 0 && is_integer(site.operand(i).dtype),
                 "start indices must be rank-0 integers");
  }
}

}  // namespace

void check_broadcast_in_dim(const Site& site) {
  const Type &x = site.operand(0), &result = site.result();
  site.require(x.dtype == result.dtype, "the dtype changes");
  const auto& dimensions = site.dimensions("broadcast_dimensions", result.rank());
  site.require(dimensions.size() == static_cast<size_t>(x.rank()), "broadcast_dimensions has {} entries, wanted {}",
               dimensions.size(), x.rank());
  for (int d = 0; d < x.rank(); ++d)
    site.require(x.dims[d] == 1 || x.dims[d] == result.dims[dimensions[d]],
                 "dimension {} is neither 1 nor the size of dimension {} of the result", d, dimensions[d]);
}

void check_reshape(const Site& site) {
  const Type &x = site.operand(0), &result = site.result();
  site.require(x.dtype == result.dtype, "the dtype changes");
  int64_t from = 1, to = 1;
  bool symbolic = false;
  for (Dim dim : x.dims) symbolic |= is_symbolic(dim), from *= dim;
  for (Dim dim : result.dims) symbolic |= is_symbolic(dim), to *= dim;
  site.require(symbolic || from == to, "{} elements cannot become {}", from, to);
}

void check_transpose(const Site& site) {
  Type result = site.operand(0);
  const auto& permutation = site.dimensions("permutation", result.rank());
  site.require(permutation.size() == result.dims.size(), "permutation has {} entries, wanted {}", permutation.size(),
               result.rank());
  for (size_t d = 0; d < permutation.size(); ++d) result.dims[d] = site.operand(0).dims[permutation[d]];
  site.require(site.result() == result, "the result should be {}", to_string(result));
}

void check_slice(const Site& site) {
  Type result = site.operand(0);
  const auto& start = site.ints("start_indices", result.rank());
  const auto& limit = site.ints("limit_indices", result.rank());
  const auto& strides = site.ints("strides", result.rank());
  for (size_t d = 0; d < start.size(); ++d) {
    site.require(strides[d] > 0, "stride {} of dimension {} is not positive", strides[d], d);
    Dim size = result.dims[d];
    bool inside = start[d] >= 0 && start[d] <= limit[d] && (is_symbolic(size) || limit[d] <= size);
    site.require(inside, "[{}, {}) of dimension {} is not inside it", start[d], limit[d], d);
    result.dims[d] = (limit[d] - start[d] + strides[d] - 1) / strides[d];
  }
  site.expect_result(result);
}

void check_dynamic_slice(const Site& site) {
  check_starts(site, 1);
  const Type& x = site.operand(0);
  const auto& sizes = site.ints("slice_sizes", x.rank());
  for (size_t d = 0; d < sizes.size(); ++d)
    site.require(sizes[d] >= 0 && (is_symbolic(x.dims[d]) || sizes[d] <= x.dims[d]),
                 "slice size {} of dimension {} does not fit into it", sizes[d], d);
  Type result{x.dtype, {}};
  result.dims.assign(sizes.begin(), sizes.end());
  site.expect_result(result);
}

void check_dynamic_update_slice(const Site& site) {
  site.require(site.operands() >= 2, "it has no update");
  check_starts(site, 2);
  const Type &x = site.operand(0), &update = site.operand(1);
  site.require(update.dtype == x.dtype && update.rank() == x.rank(),
               "the update must have the operand's dtype and rank");
  for (int d = 0; d < x.rank(); ++d)
    site.require(is_symbolic(x.dims[d]) || is_symbolic(update.dims[d]) || update.dims[d] <= x.dims[d],
                 "dimension {} of the update does not fit", d);
  site.require(site.result() == x, "the result should be {}", to_string(x));
}

void check_concatenate(const Site& site) {
  Type result = site.operand(0);
  int64_t dimension = site.attributes().get_int("dimension");
  site.require(dimension >= 0 && dimension < result.rank(), "dimension is {}, the rank {}", dimension, result.rank());
  bool symbolic = is_symbolic(result.dims[dimension]);
  for (size_t i = 1; i < site.operands(); ++i) {
    const Type& input = site.operand(i);
    site.require(input.dtype == result.dtype && input.rank() == result.rank(), "operands must have one dtype and rank");
    for (int d = 0; d < input.rank(); ++d) {
      if (d == dimension) continue;
      site.require(may_be_equal(input.dims[d], result.dims[d]), "operand {} has another size in dimension {}", i, d);
    }
    symbolic |= is_symbolic(input.dims[dimension]);
    if (!symbolic) result.dims[dimension] += input.dims[dimension];
  }
  if (symbolic) result.dims[dimension] = site.result().rank() > dimension ? site.result().dims[dimension] : 0;
  site.expect_result(result);
}

void check_pad(const Site& site) {
  Type result = site.operand(0);
  site.require(site.operand(1) == Type{result.dtype, {}}, "the padding value must be rank 0 of the operand's dtype");
  const auto& low = site.ints("edge_padding_low", result.rank());
  const auto& high = site.ints("edge_padding_high", result.rank());
  const auto& interior = site.ints("interior_padding", result.rank());
  for (size_t d = 0; d < low.size(); ++d) {
    site.require(interior[d] >= 0 && interior[d] <= 1 << 22, "interior padding {} of dimension {} is out of range",
                 interior[d], d);
    if (is_symbolic(result.dims[d])) {
      bool whole = low[d] == 0 && high[d] == 0 && interior[d] == 0;
      if (!whole) result.dims[d] = site.result().rank() == result.rank() ? site.result().dims[d] : 0;
      continue;
    }
    result.dims[d] += low[d] + high[d] + std::max<int64_t>(result.dims[d] - 1, 0) * interior[d];
    site.require(result.dims[d] >= 0, "dimension {} becomes negative", d);
  }
  site.expect_result(result);
}

void check_reverse(const Site& site) {
  site.dimensions("dimensions", site.operand(0).rank());
  site.require(site.result() == site.operand(0), "the result should be {}", to_string(site.operand(0)));
}

}  // namespace neuron::ir
