// Kernels of multi_margin_loss and multilabel_margin_loss with their gradients, of float32 or float64. Sums are taken
// in double in row-major order.
#include <algorithm>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// body(T{}) for float32 or float64.
template <typename Body>
void dispatch_native(DType dtype, const Body& body) {
  if (dtype == DType::Float32) return body(float{});
  body(double{});
}

// Writes the losses of rows, or their sum or mean.
template <typename T>
void store_losses(const TensorView& out, const std::vector<double>& losses, int64_t reduction) {
  if (reduction == kNone) {
    for (size_t n = 0; n < losses.size(); ++n) out.as<T>()[n] = static_cast<T>(losses[n]);
    return;
  }
  double sum = 0;
  for (double loss : losses) sum += loss;
  *out.as<T>() = static_cast<T>(reduction == kMean ? sum / static_cast<double>(losses.size()) : sum);
}

// What one term of row n receives.
template <typename T>
double term_gradient(const TensorView& gradient, int64_t n, int64_t reduction, int64_t rows, int64_t classes) {
  const auto given = static_cast<double>(gradient.as<T>()[reduction == kNone ? n : 0]);
  return given / static_cast<double>(reduction == kMean ? rows * classes : classes);
}

std::vector<int64_t> checked_targets(const TensorView& target, int64_t rows, int64_t classes) {
  const auto* values = target.as<int64_t>();
  for (int64_t n = 0; n < rows; ++n) {
    if (values[n] < 0 || values[n] >= classes) fail(ErrorKind::Runtime, "target out of range");
  }
  return {values, values + rows};
}

template <typename T>
double weight_of(const Call& call, size_t input, int64_t target) {
  return call.inputs.size() > input ? static_cast<double>(call.inputs[input].as<T>()[target]) : 1.0;
}

// All tensors are without gaps. outputs: losses [rows], or a scalar; inputs: scores [rows, classes], targets [rows]
// (int64), optional weights [classes]; attributes: p (1 or 2), reduction; scalars: margin.
void run_multi_margin(const Call& call) {
  const TensorView& self = call.inputs[0];
  const int64_t rows = self.sizes[0], classes = self.sizes[1], p = call.attributes[0];
  const double margin = call.scalars[0].as_double();
  const std::vector<int64_t> targets = checked_targets(call.inputs[1], rows, classes);
  dispatch_native(self.dtype, [&](auto type) {
    using T = decltype(type);
    std::vector<double> losses(static_cast<size_t>(rows));
    for (int64_t n = 0; n < rows; ++n) {
      const T* row = self.as<T>() + n * classes;
      const double weight = weight_of<T>(call, 2, targets[n]);
      for (int64_t d = 0; d < classes; ++d) {
        const double over = margin - static_cast<double>(row[targets[n]]) + static_cast<double>(row[d]);
        if (d != targets[n] && over > 0) losses[n] += (p == 1 ? over : over * over) * weight;
      }
      losses[n] /= static_cast<double>(classes);
    }
    store_losses<T>(call.outputs[0], losses, call.attributes[1]);
  });
}

// outputs: gradient of the scores; inputs: gradient of the losses, then as above.
void run_multi_margin_backward(const Call& call) {
  const TensorView &out = call.outputs[0], &self = call.inputs[1];
  const int64_t rows = self.sizes[0], classes = self.sizes[1], p = call.attributes[0];
  const double margin = call.scalars[0].as_double();
  const std::vector<int64_t> targets = checked_targets(call.inputs[2], rows, classes);
  dispatch_native(self.dtype, [&](auto type) {
    using T = decltype(type);
    for (int64_t n = 0; n < rows; ++n) {
      const T* row = self.as<T>() + n * classes;
      T* to = out.as<T>() + n * classes;
      const double scale =
          term_gradient<T>(call.inputs[0], n, call.attributes[1], rows, classes) * weight_of<T>(call, 3, targets[n]);
      double sum = 0;
      for (int64_t d = 0; d < classes; ++d) {
        const double over = margin - static_cast<double>(row[targets[n]]) + static_cast<double>(row[d]);
        const double slope = d == targets[n] || !(over > 0) ? 0 : (p == 1 ? scale : 2 * scale * over);
        sum += slope;
        to[d] = static_cast<T>(slope);
      }
      to[targets[n]] = static_cast<T>(-sum);
    }
  });
}

// The targets of a row: up to the first -1.
int64_t count_targets(const int64_t* row, int64_t classes) {
  int64_t count = 0;
  while (count < classes && row[count] >= 0) ++count;
  return count;
}

// outputs: losses [rows], or a scalar; which classes are targets [rows, classes]; inputs: scores [rows, classes],
// targets [rows, classes] (int64; those behind a -1 do not count); attributes: reduction.
void run_multilabel_margin(const Call& call) {
  const TensorView &self = call.inputs[0], &is_target = call.outputs[1];
  const int64_t rows = self.sizes[0], classes = self.sizes[1];
  const auto* targets = call.inputs[1].as<int64_t>();
  for (int64_t i = 0; i < rows * classes; ++i) {
    if (targets[i] < -1 || targets[i] >= classes) fail(ErrorKind::Runtime, "argument #2 'target' is out of range");
  }
  dispatch_native(self.dtype, [&](auto type) {
    using T = decltype(type);
    std::vector<double> losses(static_cast<size_t>(rows));
    std::fill(is_target.as<T>(), is_target.as<T>() + rows * classes, T(0));
    for (int64_t n = 0; n < rows; ++n) {
      const T* row = self.as<T>() + n * classes;
      const int64_t* wanted = targets + n * classes;
      T* flags = is_target.as<T>() + n * classes;
      const int64_t count = count_targets(wanted, classes);
      for (int64_t i = 0; i < count; ++i) flags[wanted[i]] = T(1);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t d = 0; d < classes; ++d) {
          const double over = 1 - static_cast<double>(row[wanted[i]]) + static_cast<double>(row[d]);
          if (flags[d] == 0 && over > 0) losses[n] += over;
        }
      }
      losses[n] /= static_cast<double>(classes);
    }
    store_losses<T>(call.outputs[0], losses, call.attributes[0]);
  });
}

// outputs: gradient of the scores; inputs: gradient of the losses, scores, targets, which classes are targets;
// attributes: reduction.
void run_multilabel_margin_backward(const Call& call) {
  const TensorView &out = call.outputs[0], &self = call.inputs[1];
  const int64_t rows = self.sizes[0], classes = self.sizes[1];
  dispatch_native(self.dtype, [&](auto type) {
    using T = decltype(type);
    std::vector<double> sums(static_cast<size_t>(classes));
    for (int64_t n = 0; n < rows; ++n) {
      const T* row = self.as<T>() + n * classes;
      const T* flags = call.inputs[3].as<T>() + n * classes;
      const int64_t* wanted = call.inputs[2].as<int64_t>() + n * classes;
      const double scale = term_gradient<T>(call.inputs[0], n, call.attributes[0], rows, classes);
      std::fill(sums.begin(), sums.end(), 0.0);
      const int64_t count = count_targets(wanted, classes);
      for (int64_t i = 0; i < count; ++i) {
        if (wanted[i] >= classes) fail(ErrorKind::Runtime, "target out of range");
        for (int64_t d = 0; d < classes; ++d) {
          const double over = 1 - static_cast<double>(row[wanted[i]]) + static_cast<double>(row[d]);
          if (flags[d] != 0 || !(over > 0)) continue;
          sums[wanted[i]] -= scale;
          sums[d] += scale;
        }
      }
      for (int64_t d = 0; d < classes; ++d) out.as<T>()[n * classes + d] = static_cast<T>(sums[d]);
    }
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "multi_margin_loss", .run = run_multi_margin, .may_raise = true}),
    KernelRegistration({.name = "multi_margin_loss_backward", .run = run_multi_margin_backward, .may_raise = true}),
    KernelRegistration({.name = "multilabel_margin_loss", .run = run_multilabel_margin, .may_raise = true}),
    KernelRegistration(
        {.name = "multilabel_margin_loss_backward", .run = run_multilabel_margin_backward, .may_raise = true}),
};

}  // namespace
}  // namespace neuron::kernels
