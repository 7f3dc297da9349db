// An exponential moving average along the last dimension, y[t] = decay * y[t-1] + (1 - decay) * x[t], as a custom
// operator with a kernel of its own on neuron memory. The command joins the stream: nothing waits, and what PyTorch
// records before and after it stays in order. moving_average.py builds it and adds the gradient.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>

#include "neuron/foreign_torch.h"

namespace {

struct Rows {
  const float* input;
  float* output;
  int64_t length;
  float decay;
  bool reverse;
};

void average(const Rows& rows, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = rows.input + row * rows.length;
    float* y = rows.output + row * rows.length;
    float state = 0;
    for (int64_t i = 0; i < rows.length; ++i) {
      const int64_t t = rows.reverse ? rows.length - 1 - i : i;
      state = rows.decay * state + (1 - rows.decay) * x[t];
      y[t] = state;
    }
  }
}

at::Tensor check(const at::Tensor& input, double decay) {
  TORCH_CHECK_TYPE(input.scalar_type() == at::kFloat, "moving_average: expected float32, got ", input.scalar_type());
  TORCH_CHECK(input.dim() > 0, "moving_average: expected at least one dimension");
  TORCH_CHECK_VALUE(decay >= 0 && decay < 1, "moving_average: expected 0 <= decay < 1, got ", decay);
  return input.contiguous();
}

at::Tensor moving_average_neuron(const at::Tensor& input, double decay, bool reverse) {
  const at::Tensor x = check(input, decay);
  at::Tensor y = at::empty_like(x);
  if (x.numel() == 0) return y;
  const Rows rows{static_cast<const float*>(neuron::foreign::address(x)),
                  static_cast<float*>(neuron::foreign::address(y)), x.size(-1), static_cast<float>(decay), reverse};
  const int64_t count = x.numel() / rows.length;
  const auto body = [rows, count](int threads) {
    return neuron_parallel_for(
        threads, count, /*grain=*/std::max<int64_t>(1, 16384 / rows.length),
        [](void* context, int64_t begin, int64_t end) { average(*static_cast<const Rows*>(context), begin, end); },
        const_cast<Rows*>(&rows));
  };
  neuron::foreign::enqueue("moving_average", x.device().index(),
                           {neuron::foreign::range(y, NEURON_WRITE), neuron::foreign::range(x, NEURON_READ)}, body);
  return y;
}

at::Tensor moving_average_cpu(const at::Tensor& input, double decay, bool reverse) {
  const at::Tensor x = check(input, decay);
  at::Tensor y = at::empty_like(x);
  if (x.numel() == 0) return y;
  const Rows rows{x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), x.size(-1), static_cast<float>(decay),
                  reverse};
  average(rows, 0, x.numel() / rows.length);
  return y;
}

}  // namespace

TORCH_LIBRARY(foreign_example, m) { m.def("moving_average(Tensor input, float decay, bool reverse=False) -> Tensor"); }
TORCH_LIBRARY_IMPL(foreign_example, PrivateUse1, m) { m.impl("moving_average", &moving_average_neuron); }
TORCH_LIBRARY_IMPL(foreign_example, CPU, m) { m.impl("moving_average", &moving_average_cpu); }
