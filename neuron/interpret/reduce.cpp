// reduce. The order of a reduction with a simple reducer is the one of docs/numerics.md, so that the
// result is bitwise the generated kernel's; other reducers take the elements one by one in row-major order.
#include <algorithm>
#include <array>
#include <vector>

#include "neuron/interpret/arithmetic.h"
#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

namespace {

constexpr int64_t inner_chunk = 4096;
constexpr int64_t outer_chunk = 256;
constexpr int lanes = 32;

// A run of adjacent dimensions that are all reduced or all kept; dimensions of size 1 belong to no run.
struct Run {
  int64_t size;
  bool reduced;
};

std::vector<Run> runs_of(const Dims& sizes, const std::vector<int64_t>& dimensions) {
  std::vector<Run> runs;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    bool reduced = std::find(dimensions.begin(), dimensions.end(), static_cast<int64_t>(d)) != dimensions.end();
    if (!runs.empty() && runs.back().reduced == reduced) {
      runs.back().size *= sizes[d];
    } else {
      runs.push_back({sizes[d], reduced});
    }
  }
  return runs;
}

template <typename T, typename Op>
T reduce_inner(const T* row, int64_t count, T init, T identity, Op op) {
  T result = init;
  for (int64_t start = 0; start < count; start += inner_chunk) {
    int64_t end = std::min(count, start + inner_chunk);
    std::array<T, lanes> lane;
    lane.fill(identity);
    for (int64_t i = start; i < end; ++i) lane[(i - start) % lanes] = op(lane[(i - start) % lanes], row[i]);
    for (int half = lanes / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) lane[l] = op(lane[l], lane[l + half]);
    }
    result = op(result, lane[0]);
  }
  return result;
}

template <typename T, typename Op>
T reduce_outer(const T* column, int64_t stride, int64_t count, T init, T identity, Op op) {
  T result = init;
  for (int64_t start = 0; start < count; start += outer_chunk) {
    int64_t end = std::min(count, start + outer_chunk);
    T partial = identity;
    for (int64_t i = start; i < end; ++i) partial = op(partial, column[i * stride]);
    result = op(result, partial);
  }
  return result;
}

// x of (before, count, after) elements, reduced over the middle.
template <typename T, typename Op>
std::vector<T> reduce_middle(const T* x, int64_t before, int64_t count, int64_t after, T init, T identity, Op op) {
  std::vector<T> out(static_cast<size_t>(before * after), init);
  if (count == 0) return out;  // there may be no memory to point into
  for (int64_t b = 0; b < before; ++b) {
    for (int64_t a = 0; a < after; ++a) {
      out[b * after + a] = after == 1 ? reduce_inner(x + b * count, count, init, identity, op)
                                      : reduce_outer(x + b * count * after + a, after, count, init, identity, op);
    }
  }
  return out;
}

// std::vector<bool> has no elements to point at.
struct Flag {
  bool value = false;
};

template <typename T, typename Op>
void reduce_simple(const Buffer& x, const std::vector<int64_t>& dimensions, T init, T identity, Op op, Buffer& out) {
  std::vector<Run> runs = runs_of(x.sizes, dimensions);
  auto reduced = [](const Run& run) { return run.reduced; };
  if (std::none_of(runs.begin(), runs.end(), reduced)) runs.push_back({1, true});
  std::vector<T> values(x.data<T>(), x.data<T>() + x.numel());
  while (std::any_of(runs.begin(), runs.end(), reduced)) {
    size_t last = runs.size() - 1;
    while (!runs[last].reduced) --last;
    int64_t before = 1, after = 1;
    for (size_t r = 0; r < last; ++r) before *= runs[r].size;
    for (size_t r = last + 1; r < runs.size(); ++r) after *= runs[r].size;
    bool final = std::count_if(runs.begin(), runs.end(), reduced) == 1;
    values = reduce_middle<T>(values.data(), before, runs[last].size, after, final ? init : identity, identity, op);
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(last));
  }
  std::copy(values.begin(), values.end(), out.data<T>());
}

bool reduce_simple(const Invocation& call, const std::vector<int64_t>& dimensions) {
  ir::SimpleReducer reducer = ir::simple_reducer(*call.operation.regions[0]);
  if (!reducer.valid || call.operands.size() != 2) return false;
  Buffer x_scratch, init_scratch, wide = make_wide(call.result());
  const Buffer &x = widen(call.operand(0), x_scratch), &init = widen(call.operand(1), init_scratch);
  bool known = false;
  visit(x.dtype, [&]<typename T>(Tag<T>) {
    known = with_reducer<T>(reducer.opcode, [&](auto op) {
      if constexpr (std::is_same_v<T, bool>) {
        auto flags = [op](Flag a, Flag b) { return Flag{op(a.value, b.value)}; };
        reduce_simple<Flag>(x, dimensions, Flag{init.data<bool>()[0]}, Flag{reducer_identity<bool>(reducer.opcode)},
                            flags, wide);
      } else {
        reduce_simple<T>(x, dimensions, init.data<T>()[0], reducer_identity<T>(reducer.opcode), op, wide);
      }
    });
  });
  if (known) narrow(std::move(wide), call.result());
  return known;
}

void reduce_general(const Invocation& call, const std::vector<int64_t>& dimensions) {
  size_t count = call.results.size();
  const Dims& sizes = call.operand(0).sizes;
  Dims out_strides(sizes.size(), 0);
  Dims kept = row_major_strides(call.result().sizes);
  for (size_t d = 0, k = 0; d < sizes.size(); ++d) {
    bool reduced = std::find(dimensions.begin(), dimensions.end(), static_cast<int64_t>(d)) != dimensions.end();
    if (!reduced) out_strides[d] = kept[k++];
  }
  for (size_t r = 0; r < count; ++r) {
    for (int64_t i = 0, n = call.result(r).numel(); i < n; ++i) set_element(call.result(r), i, call.operand(count + r));
  }
  Position position(sizes);
  for (int64_t i = 0, n = call.operand(0).numel(); i < n; ++i, position.next()) {
    int64_t at = offset_of(position.index(), out_strides);
    std::vector<Buffer> accumulators, elements;
    for (size_t r = 0; r < count; ++r) {
      accumulators.push_back(element_of(call.result(r), at));
      elements.push_back(element_of(call.operand(r), i));
    }
    accumulate(*call.operation.regions[0], accumulators, std::move(elements), call.symbol_sizes);
    for (size_t r = 0; r < count; ++r) set_element(call.result(r), at, accumulators[r]);
  }
}

}  // namespace

void evaluate_reduce(const Invocation& call) {
  const auto& dimensions = call.operation.attributes.get_ints("dimensions");
  check_internal(call.operation.regions.size() == 1, "reduce: has no body");
  if (!reduce_simple(call, dimensions)) reduce_general(call, dimensions);
}

}  // namespace neuron::interpret
