// sort: a stable merge sort with the operation's comparator. Not std::stable_sort, because a comparator of a user's
// program need not be an order (a NaN compared with less-than is not), and then the result still has to be defined.
#include <vector>

#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

namespace {

class LineSorter {
 public:
  LineSorter(const Invocation& call, int64_t base, int64_t stride) : call_(call), base_(base), stride_(stride) {}

  // Positions along the line in sorted order.
  std::vector<int64_t> sort(int64_t begin, int64_t end) {
    if (end - begin <= 1) return begin < end ? std::vector<int64_t>{begin} : std::vector<int64_t>{};
    int64_t middle = begin + (end - begin) / 2;
    std::vector<int64_t> left = sort(begin, middle), right = sort(middle, end), merged;
    size_t l = 0, r = 0;
    while (l < left.size() && r < right.size()) {
      // The right one comes first only when it must: that makes the sort stable.
      merged.push_back(before(right[r], left[l]) ? right[r++] : left[l++]);
    }
    merged.insert(merged.end(), left.begin() + static_cast<std::ptrdiff_t>(l), left.end());
    merged.insert(merged.end(), right.begin() + static_cast<std::ptrdiff_t>(r), right.end());
    return merged;
  }

 private:
  // The comparator takes (x0, y0, x1, y1, …) and gives one i1.
  bool before(int64_t x, int64_t y) {
    std::vector<Buffer> arguments;
    for (const Buffer* input : call_.operands) {
      arguments.push_back(element_of(*input, base_ + x * stride_));
      arguments.push_back(element_of(*input, base_ + y * stride_));
    }
    return evaluate_graph(*call_.operation.regions[0], arguments, call_.symbol_sizes)[0].data<bool>()[0];
  }

  const Invocation& call_;
  int64_t base_;
  int64_t stride_;
};

}  // namespace

void evaluate_sort(const Invocation& call) {
  const Dims& sizes = call.operand(0).sizes;
  if (product(sizes) == 0) return;
  if (sizes.empty()) {
    for (size_t r = 0; r < call.results.size(); ++r) call.result(r).bytes = call.operand(r).bytes;
    return;
  }
  int64_t dimension = call.operation.attributes.get_int("dimension");
  if (dimension < 0) dimension += static_cast<int64_t>(sizes.size());
  int64_t stride = row_major_strides(sizes)[dimension], length = sizes[dimension];
  Dims lines = sizes;
  lines[dimension] = 1;
  Dims strides = row_major_strides(sizes);
  Position position(lines);
  for (int64_t line = 0, count = product(lines); line < count; ++line, position.next()) {
    int64_t base = offset_of(position.index(), strides);
    std::vector<int64_t> order = LineSorter(call, base, stride).sort(0, length);
    for (size_t r = 0; r < call.results.size(); ++r) {
      for (int64_t i = 0; i < length; ++i)
        set_element(call.result(r), base + i * stride, element_of(call.operand(r), base + order[i] * stride));
    }
  }
}

}  // namespace neuron::interpret
