// Kernel "histogram": how many elements lie in each of equal bins.
#include <algorithm>
#include <cmath>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

// Positions are computed in double for integers and double, else in float32, as elements are.
template <typename E>
using Position = std::conditional_t<std::is_same_v<typename E::Compute, float>, float, double>;

// outputs: counts [bins], any real dtype; inputs: elements. scalars: low and high edge. Equal edges stand for the
// extremes of the elements, or for one below and one above when those are equal too. The last bin includes its upper
// edge; elements outside and NaN are not counted.
template <typename E>
void count(const Call& call) {
  using P = Position<E>;
  const TensorView &counts = call.outputs[0], &in = call.inputs[0];
  StridedLoop<1> loop(in.sizes, {&in.strides});
  const auto* elements = in.as<typename E::Storage>();
  auto low = static_cast<P>(call.scalars[0].as_double()), high = static_cast<P>(call.scalars[1].as_double());
  if (low == high && in.numel() > 0) {
    low = high = static_cast<P>(E::load(elements[0]));
    loop.for_each([&](const auto& offsets) {
      auto value = static_cast<P>(E::load(elements[offsets[0]]));
      if (!(value >= low)) low = value;  // a NaN stays and is refused below
      if (!(value <= high)) high = value;
    });
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  if (!std::isfinite(low) || !std::isfinite(high))
    fail(ErrorKind::Runtime, "range of [{}, {}] is not finite", static_cast<double>(low), static_cast<double>(high));
  int64_t bins = counts.sizes[0];
  std::vector<int64_t> found(bins);
  loop.for_each([&](const auto& offsets) {
    auto value = static_cast<P>(E::load(elements[offsets[0]]));
    if (!(value >= low && value <= high)) return;
    auto bin = static_cast<int64_t>((value - low) * static_cast<P>(bins) / (high - low));
    ++found[std::min(bin, bins - 1)];
  });
  char* out = counts.as<char>();
  auto step = counts.strides[0] * static_cast<int64_t>(dtype_size(counts.dtype));
  for (int64_t i = 0; i < bins; ++i) store_from_int(counts.dtype, found[i], out + i * step);
}

void run_histogram(const Call& call) {
  dispatch_real(call.inputs[0].dtype, [&](auto element) { count<decltype(element)>(call); });
}

const KernelRegistration registration({.name = "histogram", .run = run_histogram, .may_raise = true});

}  // namespace
}  // namespace neuron::kernels
