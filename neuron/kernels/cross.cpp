// Kernel "cross": the cross product of vectors of three elements.
#include <algorithm>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/lines.h"

namespace neuron::kernels {
namespace {

// outputs: result; inputs: both operands, of its shape; attributes: dimension. Narrow floats are computed in float32
// and rounded once.
void run(const Call& call) {
  const TensorView &out = call.outputs[0], &left = call.inputs[0], &right = call.inputs[1];
  dispatch_any(out.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    using S = typename E::Storage;
    for_each_line<3>({&out, &left, &right}, call.attributes[0], call.threads, [&](const Line<3>& line) {
      C x[3], y[3];
      for (int64_t i = 0; i < 3; ++i) {
        x[i] = E::load(left.as<S>()[line.offsets[1] + i * line.strides[1]]);
        y[i] = E::load(right.as<S>()[line.offsets[2] + i * line.strides[2]]);
      }
      for (int64_t i = 0; i < 3; ++i) {
        const int64_t j = (i + 1) % 3, k = (i + 2) % 3;
        C value;
        if constexpr (std::is_integral_v<C>) {
          value = static_cast<C>(static_cast<uint64_t>(multiply_wrapping(x[j], y[k])) -
                                 static_cast<uint64_t>(multiply_wrapping(x[k], y[j])));
        } else {
          value = x[j] * y[k] - x[k] * y[j];
        }
        out.as<S>()[line.offsets[0] + i * line.strides[0]] = E::store(value);
      }
    });
  });
}

const KernelRegistration registration({.name = "cross", .run = run});

}  // namespace
}  // namespace neuron::kernels
