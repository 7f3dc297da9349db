// Rules of reductions, contractions, indexed operations, sort and random bits.
#include <algorithm>

#include "neuron/ir/verifier_rules.h"

namespace neuron::ir {

namespace {

using Ints = std::vector<int64_t>;

bool contains(const Ints& list, int64_t value) { return std::find(list.begin(), list.end(), value) != list.end(); }

// `count` inputs of equal dimensions, then as many rank-0 initial values of their dtypes, and a body on both.
void check_inputs_and_inits(const Site& site) {
  size_t count = site.results();
  site.require(count > 0 && site.operands() == 2 * count, "{} results want {} operands", count, 2 * count);
  std::vector<DType> parameters, results;
  for (size_t i = 0; i < count; ++i) {
    site.require(site.operand(i).dims == site.operand(0).dims, "inputs must have equal dimensions");
    site.require(site.operand(count + i) == Type{site.operand(i).dtype, {}},
                 "initial value {} must be rank 0 of its input's dtype", i);
    results.push_back(site.operand(i).dtype);
  }
  parameters = results;
  parameters.insert(parameters.end(), results.begin(), results.end());
  site.expect_region(parameters, results);
}

constexpr int64_t largest_step = 1 << 22;

int64_t window_extent(int64_t size, int64_t dilation) { return size == 0 ? 0 : (size - 1) * dilation + 1; }

// Size of a dimension of windows; -1 when there is none.
int64_t windows(int64_t padded, int64_t extent, int64_t stride) {
  return padded < extent ? 0 : (padded - extent) / stride + 1;
}

void check_positive(const Site& site, std::string_view name, const Ints& list) {
  // The upper limit keeps products with a tensor's size inside 64 bits.
  for (int64_t value : list)
    site.require(value > 0 && value <= largest_step, "{} holds {}; allowed are 1 to {}", name, value, largest_step);
}

// Dimension numbers common to gather and scatter, under their own names.
struct IndexedNames {
  std::string_view window, dropped, batching, indices_batching, map;
};

// `gathered` is gather's result or scatter's updates. Returns the window's operand dimensions in order.
Ints check_addressing(const Site& site, const IndexedNames& names, const Type& x, const Type& indices,
                      const Type& gathered) {
  site.require(is_integer(indices.dtype), "indices must be integers");
  const Ints& window = site.dimensions(names.window, gathered.rank());
  const Ints& dropped = site.dimensions(names.dropped, x.rank());
  const Ints& batching = site.dimensions(names.batching, x.rank());
  const Ints& indices_batching = site.dimensions(names.indices_batching, indices.rank());
  const Ints& map = site.dimensions(names.map, x.rank());
  int64_t vector_dim = site.attributes().get_int("index_vector_dim");
  site.require(vector_dim >= 0 && vector_dim <= indices.rank(), "index_vector_dim is {}, the indices have rank {}",
               vector_dim, indices.rank());
  site.require(batching.size() == indices_batching.size(), "{} and {} have {} and {} entries", names.batching,
               names.indices_batching, batching.size(), indices_batching.size());
  Dim components = vector_dim < indices.rank() ? indices.dims[vector_dim] : 1;
  site.require(may_be_equal(static_cast<Dim>(map.size()), components), "{} has {} entries, an index vector {}",
               names.map, map.size(), components);
  for (int64_t d : batching)
    site.require(!contains(dropped, d) && !contains(map, d), "{} names dimension {}, which is used otherwise",
                 names.batching, d);
  site.require(!contains(indices_batching, vector_dim), "{} names index_vector_dim", names.indices_batching);
  Ints result;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!contains(dropped, d) && !contains(batching, d)) result.push_back(d);
  }
  site.require(result.size() == window.size(), "{} has {} entries, the window has {} dimensions", names.window,
               window.size(), result.size());
  // The other dimensions of the gathered tensor are those of the indices, in order.
  Dims batch;
  for (int d = 0; d < indices.rank(); ++d) {
    if (d != vector_dim) batch.push_back(indices.dims[d]);
  }
  site.require(static_cast<size_t>(gathered.rank()) == batch.size() + window.size(),
               "the gathered tensor has rank {}, wanted {}", gathered.rank(), batch.size() + window.size());
  size_t next = 0;
  for (int64_t d = 0; d < gathered.rank(); ++d) {
    if (contains(window, d)) continue;
    site.require(may_be_equal(gathered.dims[d], batch[next]), "dimension {} of the gathered tensor should be {}", d,
                 batch[next]);
    ++next;
  }
  return result;
}

}  // namespace

void check_reduce(const Site& site) {
  check_inputs_and_inits(site);
  const Type& x = site.operand(0);
  const auto& dimensions = site.dimensions("dimensions", x.rank());
  Dims kept;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!contains(dimensions, d)) kept.push_back(x.dims[d]);
  }
  for (size_t i = 0; i < site.results(); ++i) site.expect_result({site.operand(i).dtype, kept}, i);
}

void check_reduce_window(const Site& site) {
  check_inputs_and_inits(site);
  Type result = site.operand(0);
  const Ints& sizes = site.ints("window_dimensions", result.rank());
  const Ints& strides = site.ints("window_strides", result.rank());
  const Ints& dilations = site.ints("window_dilations", result.rank());
  const Ints& padding = site.ints("padding", 2 * result.rank());
  check_positive(site, "window_dimensions", sizes);
  check_positive(site, "window_strides", strides);
  check_positive(site, "window_dilations", dilations);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (is_symbolic(result.dims[d])) {
      bool whole = sizes[d] == 1 && strides[d] == 1 && padding[2 * d] == 0 && padding[2 * d + 1] == 0;
      site.require(whole, "the symbolic dimension {} has a window", d);
      continue;
    }
    int64_t padded = result.dims[d] + padding[2 * d] + padding[2 * d + 1];
    result.dims[d] = windows(padded, window_extent(sizes[d], dilations[d]), strides[d]);
  }
  for (size_t i = 0; i < site.results(); ++i) site.expect_result(result.with(site.operand(i).dtype), i);
}

void check_dot_general(const Site& site) {
  const Type &lhs = site.operand(0), &rhs = site.operand(1);
  site.require(lhs.dtype == rhs.dtype, "operands must have one dtype");
  site.require(dtype_class(site.result().dtype) == dtype_class(lhs.dtype), "the result must be of the operands' class");
  const Ints& lhs_batching = site.dimensions("lhs_batching_dimensions", lhs.rank());
  const Ints& rhs_batching = site.dimensions("rhs_batching_dimensions", rhs.rank());
  const Ints& lhs_contracting = site.dimensions("lhs_contracting_dimensions", lhs.rank());
  const Ints& rhs_contracting = site.dimensions("rhs_contracting_dimensions", rhs.rank());
  Type result{site.result().dtype, {}};
  auto check_pairs = [&](const Ints& left, const Ints& right, const char* what) {
    site.require(left.size() == right.size(), "{} and {} {} dimensions", left.size(), right.size(), what);
    for (size_t i = 0; i < left.size(); ++i)
      site.require(may_be_equal(lhs.dims[left[i]], rhs.dims[right[i]]), "{} dimensions {} and {} have different sizes",
                   what, left[i], right[i]);
  };
  check_pairs(lhs_batching, rhs_batching, "batching");
  check_pairs(lhs_contracting, rhs_contracting, "contracting");
  auto add_free = [&](const Type& type, const Ints& batching, const Ints& contracting) {
    for (int64_t d = 0; d < type.rank(); ++d) {
      site.require(!contains(batching, d) || !contains(contracting, d), "dimension {} is batching and contracting", d);
      if (!contains(batching, d) && !contains(contracting, d)) result.dims.push_back(type.dims[d]);
    }
  };
  for (int64_t d : lhs_batching) result.dims.push_back(lhs.dims[d]);
  add_free(lhs, lhs_batching, lhs_contracting);
  add_free(rhs, rhs_batching, rhs_contracting);
  site.expect_result(result);
}

void check_convolution(const Site& site) {
  const Type &input = site.operand(0), &kernel = site.operand(1);
  site.require(input.dtype == kernel.dtype, "operands must have one dtype");
  site.require(dtype_class(site.result().dtype) == dtype_class(input.dtype),
               "the result must be of the operands' class");
  site.require(input.rank() >= 2 && input.rank() == kernel.rank(), "operands must have one rank of at least 2");
  for (const Type* type : {&input, &kernel})
    for (Dim dim : type->dims) site.require(!is_symbolic(dim), "dimensions must be static");
  int spatial = input.rank() - 2;
  const Ints& strides = site.ints("window_strides", spatial);
  const Ints& padding = site.ints("padding", 2 * spatial);
  const Ints& lhs_dilation = site.ints("lhs_dilation", spatial);
  const Ints& rhs_dilation = site.ints("rhs_dilation", spatial);
  for (int64_t flag : site.ints("window_reversal", spatial))
    site.require(flag == 0 || flag == 1, "window_reversal holds {}", flag);
  check_positive(site, "window_strides", strides);
  check_positive(site, "lhs_dilation", lhs_dilation);
  check_positive(site, "rhs_dilation", rhs_dilation);
  int64_t feature_groups = site.attributes().get_int("feature_group_count");
  int64_t batch_groups = site.attributes().get_int("batch_group_count");
  site.require(feature_groups >= 1 && batch_groups >= 1 && (feature_groups == 1 || batch_groups == 1) &&
                   feature_groups <= largest_step && batch_groups <= largest_step,
               "group counts are {} and {}: both at least 1, one of them 1", feature_groups, batch_groups);
  site.require(input.dims[1] == kernel.dims[1] * feature_groups, "{} features do not fit a kernel of {} in {} groups",
               input.dims[1], kernel.dims[1], feature_groups);
  site.require(kernel.dims[0] % feature_groups == 0 && kernel.dims[0] % batch_groups == 0,
               "{} outputs do not divide into groups", kernel.dims[0]);
  site.require(input.dims[0] % batch_groups == 0, "batch {} does not divide into {} groups", input.dims[0],
               batch_groups);
  Type result{site.result().dtype, {input.dims[0] / batch_groups, kernel.dims[0]}};
  for (int d = 0; d < spatial; ++d) {
    int64_t padded = window_extent(input.dims[2 + d], lhs_dilation[d]) + padding[2 * d] + padding[2 * d + 1];
    result.dims.push_back(windows(padded, window_extent(kernel.dims[2 + d], rhs_dilation[d]), strides[d]));
  }
  site.expect_result(result);
}

void check_gather(const Site& site) {
  const Type &x = site.operand(0), &result = site.result();
  site.require(result.dtype == x.dtype, "the dtype changes");
  IndexedNames names{"offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims",
                     "start_index_map"};
  Ints window = check_addressing(site, names, x, site.operand(1), result);
  const Ints& sizes = site.ints("slice_sizes", x.rank());
  const Ints& offsets = site.attributes().get_ints("offset_dims");
  for (int64_t d = 0; d < x.rank(); ++d) {
    site.require(sizes[d] >= 0 && (is_symbolic(x.dims[d]) || sizes[d] <= x.dims[d]),
                 "slice size {} of dimension {} does not fit into it", sizes[d], d);
    site.require(contains(window, d) || sizes[d] <= 1, "dimension {} has no offset dimension but a slice size of {}", d,
                 sizes[d]);
  }
  for (size_t i = 0; i < window.size(); ++i)
    site.require(may_be_equal(result.dims[offsets[i]], sizes[window[i]]), "dimension {} of the result should be {}",
                 offsets[i], sizes[window[i]]);
  site.attributes().get<bool>("indices_are_sorted");
}

void check_scatter(const Site& site) {
  size_t count = site.results();
  site.require(count > 0 && site.operands() == 2 * count + 1, "{} results want {} operands", count, 2 * count + 1);
  const Type &x = site.operand(0), &updates = site.operand(count + 1);
  std::vector<DType> parameters, results;
  for (size_t i = 0; i < count; ++i) {
    site.require(site.operand(i).dims == x.dims && site.operand(count + 1 + i).dims == updates.dims,
                 "inputs and updates must have equal dimensions each");
    site.require(site.operand(count + 1 + i).dtype == site.operand(i).dtype, "update {} must have its input's dtype",
                 i);
    site.require(site.result(i) == site.operand(i), "result {} should be {}", i, to_string(site.operand(i)));
    results.push_back(site.operand(i).dtype);
  }
  parameters = results;
  parameters.insert(parameters.end(), results.begin(), results.end());
  site.expect_region(parameters, results);
  IndexedNames names{"update_window_dims", "inserted_window_dims", "input_batching_dims",
                     "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"};
  Ints window = check_addressing(site, names, x, site.operand(count), updates);
  const Ints& offsets = site.attributes().get_ints("update_window_dims");
  for (size_t i = 0; i < window.size(); ++i) {
    Dim have = updates.dims[offsets[i]], room = x.dims[window[i]];
    site.require(is_symbolic(have) || is_symbolic(room) || have <= room, "dimension {} of the updates does not fit",
                 offsets[i]);
  }
  site.attributes().get<bool>("indices_are_sorted");
  site.attributes().get<bool>("unique_indices");
}

void check_sort(const Site& site) {
  site.require(site.operands() == site.results(), "{} operands give {} results", site.operands(), site.results());
  std::vector<DType> parameters;
  for (size_t i = 0; i < site.operands(); ++i) {
    site.require(site.operand(i).dims == site.operand(0).dims, "operands must have equal dimensions");
    site.require(site.result(i) == site.operand(i), "result {} should be {}", i, to_string(site.operand(i)));
    parameters.insert(parameters.end(), 2, site.operand(i).dtype);
  }
  int64_t dimension = site.attributes().get_int("dimension");
  site.require(dimension >= 0 && dimension < site.operand(0).rank(), "dimension is {}, the rank {}", dimension,
               site.operand(0).rank());
  site.attributes().get<bool>("is_stable");
  site.expect_region(parameters, {DType::Bool});
}

void check_rng_bit_generator(const Site& site) {
  Type state{DType::UInt64, {2}};
  site.require(site.operand(0) == state && site.result(0) == state, "the state must be {}", to_string(state));
  site.require(is_integer(site.result(1).dtype), "the bits must be integers");
  const auto& algorithm = site.attributes().get<std::string>("rng_algorithm");
  site.require(algorithm == "PHILOX", "rng_algorithm is '{}', allowed is 'PHILOX'", algorithm);
}

}  // namespace neuron::ir
