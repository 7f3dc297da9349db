// reduce_window. Padding counts as elements equal to init; a window is combined in row-major order, starting from init.
#include <vector>

#include "neuron/interpret/arithmetic.h"
#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

namespace {

// Calls visit(element number, or -1 for padding) for each position of the window that makes result element `position`.
template <typename Visit>
void visit_window(const Invocation& call, const Position& position, Visit visit) {
  const ir::Attributes& attributes = call.operation.attributes;
  const auto& window = attributes.get_ints("window_dimensions");
  const auto& step = attributes.get_ints("window_strides");
  const auto& dilation = attributes.get_ints("window_dilations");
  const auto& padding = attributes.get_ints("padding");
  const Dims& sizes = call.operand(0).sizes;
  Dims strides = row_major_strides(sizes), extent;
  extent.assign(window.begin(), window.end());
  Position within(extent);
  for (int64_t w = 0, count = product(extent); w < count; ++w, within.next()) {
    int64_t at = 0;
    bool inside = true;
    for (size_t d = 0; d < window.size(); ++d) {
      int64_t source = position[d] * step[d] + within[d] * dilation[d] - padding[2 * d];
      inside &= source >= 0 && source < sizes[d];
      at += source * strides[d];
    }
    visit(inside ? at : -1);
  }
}

// Narrow floats accumulate in float32, as in reduce.
bool reduce_simple(const Invocation& call) {
  ir::SimpleReducer reducer = ir::simple_reducer(*call.operation.regions[0]);
  if (!reducer.valid || call.operands.size() != 2) return false;
  Buffer x_scratch, init_scratch, wide = make_wide(call.result());
  const Buffer &x = widen(call.operand(0), x_scratch), &init = widen(call.operand(1), init_scratch);
  bool known = false;
  visit(x.dtype, [&]<typename T>(Tag<T>) {
    known = with_reducer<T>(reducer.opcode, [&](auto op) {
      T start = init.data<T>()[0];
      Position position(wide.sizes);
      for (int64_t i = 0, n = wide.numel(); i < n; ++i, position.next()) {
        T result = start;
        visit_window(call, position, [&](int64_t at) { result = op(result, at < 0 ? start : x.data<T>()[at]); });
        wide.data<T>()[i] = result;
      }
    });
  });
  if (known) narrow(std::move(wide), call.result());
  return known;
}

}  // namespace

void evaluate_reduce_window(const Invocation& call) {
  check_internal(call.operation.regions.size() == 1, "reduce_window: has no body");
  if (reduce_simple(call)) return;
  size_t count = call.results.size();
  Position position(call.result().sizes);
  for (int64_t i = 0, n = call.result().numel(); i < n; ++i, position.next()) {
    std::vector<Buffer> accumulators;
    for (size_t r = 0; r < count; ++r) accumulators.push_back(element_of(call.operand(count + r), 0));
    visit_window(call, position, [&](int64_t at) {
      std::vector<Buffer> elements;
      for (size_t r = 0; r < count; ++r)
        elements.push_back(at < 0 ? element_of(call.operand(count + r), 0) : element_of(call.operand(r), at));
      accumulate(*call.operation.regions[0], accumulators, std::move(elements), call.symbol_sizes);
    });
    for (size_t r = 0; r < count; ++r) set_element(call.result(r), i, accumulators[r]);
  }
}

}  // namespace neuron::interpret
