// Kernels "nll_loss_forward" and "nll_loss_scales": the picked log-probabilities of cross-entropy and what their
// gradients are, for [N, C] and [N, C, S…] alike. Sums are taken in float64 in row-major order and rounded once.
#include <algorithm>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// Strides of an [N, C, S…] (or [C]) tensor without the class dimension: those of the target's shape.
Dims without_classes(const TensorView& view, int class_dimension) {
  Dims strides = view.strides;
  strides.erase(static_cast<size_t>(class_dimension));
  return strides;
}

struct Weights {
  const TensorView* view = nullptr;
  double operator[](int64_t target) const {
    if (view == nullptr) return 1.0;
    return load_as_double(view->dtype,
                          view->as<char>() + target * view->strides[0] * static_cast<int64_t>(dtype_size(view->dtype)));
  }
};

void check_targets(const TensorView& target, int64_t classes, int64_t ignored) {
  dispatch_index(target.dtype, [&](auto type) {
    const auto* values = target.as<decltype(type)>();
    StridedLoop<1>(target.sizes, {&target.strides}).for_each([&](const auto& offsets) {
      int64_t value = values[offsets[0]];
      if (value != ignored && (value < 0 || value >= classes)) {
        fail(ErrorKind::Index, "Target {} is out of bounds.", value);
      }
    });
  });
}

// outputs: loss (the target's shape for reduction none, else a scalar), total weight (scalar); inputs:
// log-probabilities [N, C, S…] or [C], target, optional weight [C]; attributes: reduction, ignored index.
void run_forward(const Call& call) {
  const TensorView& loss = call.outputs[0];
  const TensorView& input = call.inputs[0];
  const TensorView& target = call.inputs[1];
  Weights weights{call.inputs.size() > 2 ? &call.inputs[2] : nullptr};
  int64_t reduction = call.attributes[0], ignored = call.attributes[1];
  int class_dimension = input.rank() == 1 ? 0 : 1;
  check_targets(target, input.sizes[class_dimension], ignored);
  Dims rest = without_classes(input, class_dimension);
  int64_t along = input.strides[class_dimension];
  Dims loss_strides = reduction == kNone ? loss.strides : Dims(target.sizes.size(), 0);
  StridedLoop<3> loop(target.sizes, {&target.strides, &rest, &loss_strides});
  double total = 0, total_weight = 0;
  dispatch_float(input.dtype, [&](auto element) {
    using E = decltype(element);
    const auto* values = input.as<typename E::Storage>();
    auto* losses = loss.as<typename E::Storage>();
    dispatch_index(target.dtype, [&](auto type) {
      const auto* targets = target.as<decltype(type)>();
      loop.for_each([&](const auto& offsets) {
        int64_t pick = targets[offsets[0]];
        double weight = 0, term = 0;
        if (pick != ignored) {
          weight = weights[pick];
          term = -weight * static_cast<double>(E::load(values[offsets[1] + pick * along]));
        }
        if (reduction == kNone) {
          losses[offsets[2]] = E::store(static_cast<typename E::Compute>(term));
        } else {
          total += term;
          total_weight += weight;
        }
      });
      if (reduction == kNone) return;
      double result = reduction == kMean ? total / total_weight : total;
      losses[0] = E::store(static_cast<typename E::Compute>(result));
    });
    *call.outputs[1].as<typename E::Storage>() = E::store(static_cast<typename E::Compute>(total_weight));
  });
}

// outputs: what each target's log-probability receives (the target's shape); inputs: gradient of the loss, target,
// total weight, optional weight; attributes: reduction, ignored index, classes. 0 where the target is ignored.
void run_scales(const Call& call) {
  const TensorView& result = call.outputs[0];
  const TensorView& gradient = call.inputs[0];
  const TensorView& target = call.inputs[1];
  const TensorView& total_weight = call.inputs[2];
  Weights weights{call.inputs.size() > 3 ? &call.inputs[3] : nullptr};
  int64_t reduction = call.attributes[0], ignored = call.attributes[1];
  check_targets(target, call.attributes[2], ignored);
  Dims gradient_strides = reduction == kNone ? gradient.strides : Dims(target.sizes.size(), 0);
  StridedLoop<3> loop(target.sizes, {&target.strides, &result.strides, &gradient_strides});
  dispatch_float(result.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    auto* to = result.as<typename E::Storage>();
    const auto* gradients = gradient.as<typename E::Storage>();
    C divisor = reduction == kMean ? E::load(*total_weight.as<typename E::Storage>()) : C(1);
    dispatch_index(target.dtype, [&](auto type) {
      const auto* targets = target.as<decltype(type)>();
      loop.for_each([&](const auto& offsets) {
        int64_t pick = targets[offsets[0]];
        C value = 0;
        if (pick != ignored) {
          value = E::load(gradients[offsets[2]]);
          if (reduction == kMean) value /= divisor;
          value = -static_cast<C>(weights[pick]) * value;
        }
        to[offsets[1]] = E::store(value);
      });
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "nll_loss_forward", .run = run_forward, .may_raise = true}),
    KernelRegistration({.name = "nll_loss_scales", .run = run_scales, .may_raise = true}),
};

}  // namespace
}  // namespace neuron::kernels
