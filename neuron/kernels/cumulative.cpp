// Kernels "cumsum", "cumprod", "cummax", "cummin": sequential along a line. Float sums and products run in float64
// (narrow floats: float32) and every element is rounded once; integers wrap at 64 bits.
#include <type_traits>

#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/lines.h"

namespace neuron::kernels {
namespace {

// outputs: result; inputs: self of the same dtype; attributes: dimension.
template <bool kProduct>
void run_cumulative(const Call& call) {
  TensorView result = as_lines(call.outputs[0]), self = as_lines(call.inputs[0]);
  int64_t dimension = call.attributes[0], length = self.sizes[dimension];
  dispatch_any(self.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    using Wide = std::conditional_t<
        std::is_integral_v<C>, uint64_t,
        std::conditional_t<std::is_same_v<typename E::Storage, float>, double,
                           std::conditional_t<std::is_same_v<C, std::complex<float>>, std::complex<double>, C>>>;
    const auto* from = self.as<typename E::Storage>();
    auto* to = result.as<typename E::Storage>();
    for_each_line<2>({&result, &self}, dimension, call.threads, [&](const Line<2>& line) {
      Wide running = kProduct ? Wide(1) : Wide(0);
      for (int64_t i = 0; i < length; ++i) {
        Wide value = static_cast<Wide>(E::load(from[line.offsets[1] + i * line.strides[1]]));
        running = kProduct ? running * value : running + value;
        to[line.offsets[0] + i * line.strides[0]] = E::store(static_cast<C>(running));
      }
    });
  });
}

// outputs: values, indices (int64); inputs: self; attributes: dimension. The last of equal extremes; NaN stays.
template <bool kMaximum>
void run_extreme(const Call& call) {
  TensorView values = as_lines(call.outputs[0]), indices = as_lines(call.outputs[1]), self = as_lines(call.inputs[0]);
  int64_t dimension = call.attributes[0], length = self.sizes[dimension];
  dispatch_real(self.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    const auto* from = self.as<typename E::Storage>();
    auto* to = values.as<typename E::Storage>();
    for_each_line<3>({&values, &indices, &self}, dimension, call.threads, [&](const Line<3>& line) {
      C best{};
      int64_t place = 0;
      for (int64_t i = 0; i < length; ++i) {
        C value = E::load(from[line.offsets[2] + i * line.strides[2]]);
        if (i == 0 || value != value || (best == best && (kMaximum ? value >= best : value <= best))) {
          best = value;
          place = i;
        }
        to[line.offsets[0] + i * line.strides[0]] = E::store(best);
        indices.as<int64_t>()[line.offsets[1] + i * line.strides[1]] = place;
      }
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "cumsum", .run = run_cumulative<false>}),
    KernelRegistration({.name = "cumprod", .run = run_cumulative<true>}),
    KernelRegistration({.name = "cummax", .run = run_extreme<true>}),
    KernelRegistration({.name = "cummin", .run = run_extreme<false>}),
};

}  // namespace
}  // namespace neuron::kernels
