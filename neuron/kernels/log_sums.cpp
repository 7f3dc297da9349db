// Kernel "logcumsumexp": log(exp(x0) + … + exp(xi)) along a line, in double, each element rounded once.
#include <algorithm>
#include <cmath>

#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/lines.h"

namespace neuron::kernels {
namespace {

// log(exp(x) + exp(y)); of two equal infinities, that infinity.
double add_exponentials(double x, double y) {
  if (x != x || y != y) return x + y;
  const double low = std::min(x, y), high = std::max(x, y);
  return low == high && std::isinf(low) ? low : std::log1p(std::exp(low - high)) + high;
}

// outputs: result; inputs: self, of its shape; attributes: dimension.
void run(const Call& call) {
  TensorView out = as_lines(call.outputs[0]), self = as_lines(call.inputs[0]);
  const int64_t dimension = call.attributes[0], length = self.sizes[dimension];
  dispatch_float(self.dtype, [&](auto element) {
    using E = decltype(element);
    using S = typename E::Storage;
    for_each_line<2>({&out, &self}, dimension, call.threads, [&](const Line<2>& line) {
      double sum = -HUGE_VAL;
      for (int64_t i = 0; i < length; ++i) {
        sum = add_exponentials(static_cast<double>(E::load(self.as<S>()[line.offsets[1] + i * line.strides[1]])), sum);
        out.as<S>()[line.offsets[0] + i * line.strides[0]] = E::store(static_cast<typename E::Compute>(sum));
      }
    });
  });
}

const KernelRegistration registration({.name = "logcumsumexp", .run = run});

}  // namespace
}  // namespace neuron::kernels
