// Kernels "sum_repeats" and "repeat_interleave": each position as often as it is asked for.
#include "neuron/base/error.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

// body(how often) for each position, in order; raises CPU's text for a negative one.
template <typename Body>
void for_each_repeat(const TensorView& repeats, const Body& body) {
  dispatch_index(repeats.dtype, [&](auto type) {
    const auto* from = repeats.as<decltype(type)>();
    for (int64_t i = 0; i < repeats.sizes[0]; ++i) {
      const int64_t times = from[i * repeats.strides[0]];
      if (times < 0) fail(ErrorKind::Runtime, "repeats can not be negative");
      body(times);
    }
  });
}

// outputs: int64 scalar; inputs: repeats, a vector of int32 or int64.
void run_sum(const Call& call) {
  int64_t sum = 0;
  for_each_repeat(call.inputs[0], [&](int64_t times) { sum += times; });
  *call.outputs[0].as<int64_t>() = sum;
}

// outputs: positions, a vector of the repeats' dtype that is as long as their sum; inputs: repeats.
void run_repeat(const Call& call) {
  const TensorView &out = call.outputs[0], &repeats = call.inputs[0];
  int64_t sum = 0;
  for_each_repeat(repeats, [&](int64_t times) { sum += times; });
  if (sum != out.sizes[0]) fail(ErrorKind::Runtime, "allocated size does not match required size");
  dispatch_index(out.dtype, [&](auto type) {
    auto* to = out.as<decltype(type)>();
    decltype(type) position = 0;
    for_each_repeat(repeats, [&](int64_t times) {
      for (; times > 0; --times, to += out.strides[0]) *to = position;
      ++position;
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "sum_repeats", .run = run_sum, .may_raise = true}),
    KernelRegistration({.name = "repeat_interleave", .run = run_repeat, .may_raise = true}),
};

}  // namespace
}  // namespace neuron::kernels
