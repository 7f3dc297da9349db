// Kernels "ctc_loss" and "ctc_loss_backward": the likelihood of a sequence of labels over all its alignments (Graves et
// al., "Connectionist temporal classification", 2006), computed in double.
//
// The labels of a sequence with a blank before, between and behind them are its states; log_alpha holds the logarithm
// of the probability of all beginnings that end in a state.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double log_sum(double x, double y) {
  const double high = std::max(x, y);
  return high == kNever ? kNever : high + std::log1p(std::exp(std::min(x, y) - high));
}

// body(T{}) for float32 or float64.
template <typename Body>
void dispatch_native(DType dtype, const Body& body) {
  if (dtype == DType::Float32) return body(float{});
  body(double{});
}

// What both passes know of the problem. Attributes: blank, zero_infinity, the lengths of inputs, the lengths of
// targets.
struct Problem {
  const TensorView &log_probs, &targets;
  int64_t steps, batch, classes, blank;
  std::span<const int64_t> input_lengths, target_lengths;
  std::vector<int64_t> target_starts;  // of targets in one row

  Problem(const Call& call, const TensorView& log_probs, const TensorView& targets)
      : log_probs(log_probs),
        targets(targets),
        steps(log_probs.sizes[0]),
        batch(log_probs.sizes[1]),
        classes(log_probs.sizes[2]),
        blank(call.attributes[0]),
        input_lengths(call.attributes.subspan(2, static_cast<size_t>(batch))),
        target_lengths(call.attributes.subspan(2 + static_cast<size_t>(batch), static_cast<size_t>(batch))) {
    int64_t start = 0;
    for (int64_t length : target_lengths) {
      target_starts.push_back(start);
      start += length;
    }
  }

  // The labels of a sequence's states.
  std::vector<int64_t> states(int64_t sequence) const {
    std::vector<int64_t> labels(static_cast<size_t>(2 * target_lengths[sequence] + 1), blank);
    dispatch_index(targets.dtype, [&](auto type) {
      const auto* from = targets.as<decltype(type)>();
      for (int64_t i = 0; i < target_lengths[sequence]; ++i) {
        const int64_t place = targets.rank() == 1 ? (target_starts[sequence] + i) * targets.strides[0]
                                                  : sequence * targets.strides[0] + i * targets.strides[1];
        labels[2 * i + 1] = from[place];
        if (from[place] < 0 || from[place] >= classes) fail(ErrorKind::Index, "a target of ctc_loss is out of range");
      }
    });
    return labels;
  }

  template <typename T>
  double log_prob(int64_t step, int64_t sequence, int64_t label) const {
    return static_cast<double>(log_probs.as<T>()[step * log_probs.strides[0] + sequence * log_probs.strides[1] +
                                                 label * log_probs.strides[2]]);
  }
};

// The logarithms of what reaches each state from those before it; `sign` is the direction of time.
std::vector<double> advanced(const std::vector<double>& from, const std::vector<int64_t>& labels, int64_t sign) {
  const auto count = static_cast<int64_t>(labels.size());
  std::vector<double> to(from.size());
  for (int64_t s = 0; s < count; ++s) {
    const int64_t one = s - sign, two = s - 2 * sign;
    const double stays = from[s], steps = one >= 0 && one < count ? from[one] : kNever;
    const double skips = two >= 0 && two < count && labels[two] != labels[s] ? from[two] : kNever;
    const double high = std::max({stays, steps, skips});
    to[s] = high == kNever ? kNever
                           : high + std::log(std::exp(stays - high) + (steps == kNever ? 0 : std::exp(steps - high)) +
                                             (skips == kNever ? 0 : std::exp(skips - high)));
  }
  return to;
}

// outputs: negative log likelihood [batch], log_alpha [batch, steps, states] without gaps (-infinity where there is no
// state or step); inputs: log_probs [steps, batch, classes], targets [batch, length] or one behind the other.
void run_forward(const Call& call) {
  const TensorView &losses = call.outputs[0], &alphas = call.outputs[1];
  const Problem problem(call, call.inputs[0], call.inputs[1]);
  const int64_t width = alphas.sizes[2];
  dispatch_native(losses.dtype, [&](auto type) {
    using T = decltype(type);
    parallel_for(call.threads, problem.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        T* alpha = alphas.as<T>() + n * problem.steps * width;
        std::fill(alpha, alpha + problem.steps * width, static_cast<T>(kNever));
        const std::vector<int64_t> labels = problem.states(n);
        const auto count = static_cast<int64_t>(labels.size());
        std::vector<double> now(labels.size(), kNever);
        for (int64_t t = 0; t < problem.input_lengths[n]; ++t) {
          if (t == 0) {
            for (int64_t s = 0; s < std::min<int64_t>(2, count); ++s) now[s] = 0;
          } else {
            now = advanced(now, labels, 1);
          }
          for (int64_t s = 0; s < count; ++s) {
            now[s] += problem.log_prob<T>(t, n, labels[s]);
            alpha[t * width + s] = static_cast<T>(now[s]);
          }
        }
        double likelihood = now[count - 1];
        if (count > 1) likelihood = log_sum(likelihood, now[count - 2]);
        if (problem.input_lengths[n] == 0) likelihood = count == 1 ? 0 : kNever;
        losses.as<T>()[n] = static_cast<T>(-likelihood);
      }
    });
  });
}

// outputs: gradient of log_probs [steps, batch, classes] without gaps; inputs: gradient of the losses [batch],
// log_probs, targets, losses, log_alpha without gaps.
void run_backward(const Call& call) {
  const TensorView &out = call.outputs[0], &gradients = call.inputs[0], &losses = call.inputs[3],
                   &alphas = call.inputs[4];
  const Problem problem(call, call.inputs[1], call.inputs[2]);
  const bool zero_infinity = call.attributes[1] != 0;
  const int64_t width = alphas.sizes[2], classes = problem.classes;
  dispatch_native(out.dtype, [&](auto type) {
    using T = decltype(type);
    parallel_for(call.threads, problem.batch, 1, [&](int64_t begin, int64_t end) {
      std::vector<double> reached(static_cast<size_t>(classes));
      for (int64_t n = begin; n < end; ++n) {
        auto row = [&](int64_t t) { return out.as<T>() + (t * problem.batch + n) * classes; };
        for (int64_t t = 0; t < problem.steps; ++t) std::fill(row(t), row(t) + classes, T(0));
        const auto loss = static_cast<double>(losses.as<T>()[n * losses.strides[0]]);
        if (zero_infinity && loss == -kNever) continue;
        const auto gradient = static_cast<double>(gradients.as<T>()[n * gradients.strides[0]]);
        const std::vector<int64_t> labels = problem.states(n);
        const auto count = static_cast<int64_t>(labels.size());
        const T* alpha = alphas.as<T>() + n * problem.steps * width;
        std::vector<double> now(labels.size(), kNever);  // of all endings that begin in a state
        for (int64_t t = problem.input_lengths[n] - 1; t >= 0; --t) {
          if (t == problem.input_lengths[n] - 1) {
            for (int64_t s = std::max<int64_t>(0, count - 2); s < count; ++s) now[s] = 0;
          } else {
            now = advanced(now, labels, -1);
          }
          std::fill(reached.begin(), reached.end(), kNever);
          for (int64_t s = 0; s < count; ++s) {
            now[s] += problem.log_prob<T>(t, n, labels[s]);
            double& sum = reached[labels[s]];
            sum = log_sum(sum, now[s] + static_cast<double>(alpha[t * width + s]));
          }
          for (int64_t c = 0; c < classes; ++c) {
            const double log_prob = problem.log_prob<T>(t, n, c);
            row(t)[c] = static_cast<T>((std::exp(log_prob) - std::exp(reached[c] + loss - log_prob)) * gradient);
          }
        }
      }
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "ctc_loss", .run = run_forward, .may_raise = true}),
    KernelRegistration({.name = "ctc_loss_backward", .run = run_backward, .may_raise = true}),
};

}  // namespace
}  // namespace neuron::kernels
