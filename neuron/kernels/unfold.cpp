// Kernel "unfold_backward": windows that overlap are added where they came from.
#include <algorithm>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

// outputs: gradient of the input; inputs: gradient of the windows: the input's shape with the number of windows in the
// place of the dimension, then the size of a window; attributes: dimension, step. Each place is the sum over its
// windows in order, in float32 for narrow floats; 0 where no window lies.
void run(const Call& call) {
  const TensorView &to = call.outputs[0], &from = call.inputs[0];
  const auto dimension = static_cast<size_t>(call.attributes[0]);
  const int64_t step = call.attributes[1], length = to.sizes[dimension];
  const int64_t windows = from.sizes[dimension], size = from.sizes[to.sizes.size()];
  const int64_t from_window = from.strides[dimension], from_place = from.strides[to.sizes.size()];
  Dims lines = to.sizes, from_strides;
  lines[dimension] = 1;
  for (size_t d = 0; d < to.sizes.size(); ++d) from_strides.push_back(from.strides[d]);
  const StridedLoop<2> loop(lines, {&to.strides, &from_strides});
  const int64_t inner = loop.inner_size();
  dispatch_any(to.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, inner));
    parallel_for(call.threads, loop.rows() * length, grain, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t row = item / length, place = item % length;
        // Windows first … last hold the place.
        const int64_t first = place < size ? 0 : (place - size) / step + 1;
        const int64_t last = std::min(windows - 1, place / step);
        loop.for_rows(row, row + 1, [&](const auto& offsets) {
          auto* target = to.as<typename E::Storage>() + offsets[0] + place * to.strides[dimension];
          const auto* source = from.as<typename E::Storage>() + offsets[1];
          for (int64_t j = 0; j < inner; ++j) {
            C sum(0);
            for (int64_t window = first; window <= last; ++window) {
              const int64_t at = window * from_window + (place - window * step) * from_place;
              sum = add_wrapping(sum, E::load(source[j * loop.inner_strides()[1] + at]));
            }
            target[j * loop.inner_strides()[0]] = E::store(sum);
          }
        });
      }
    });
  });
}

const KernelRegistration registration({.name = "unfold_backward", .run = run});

}  // namespace
}  // namespace neuron::kernels
