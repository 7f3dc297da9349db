// Kernels "poisson", "binomial", "standard_gamma" and "dirichlet": distributions whose samples take numbers until one
// is accepted. Each element has a counter of its own, whose upper half counts the blocks it takes (docs/numerics.md).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/base/philox.h"
#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

// Two uniform numbers come from each block.
class ElementNumbers {
 public:
  ElementNumbers(uint64_t seed, uint64_t offset, int64_t element)
      : seed_(seed), counter_(offset + static_cast<uint64_t>(element)) {}
  // In (0, 1), odd multiples of 2^-54.
  double uniform() {
    const size_t low = next_ % 2 * 2;
    if (low == 0) words_ = philox(seed_, counter_, next_ / 2);
    ++next_;
    const uint64_t bits = uint64_t{words_[low + 1]} << 32 | words_[low];
    return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t seed_, counter_, next_ = 0;
  std::array<uint32_t, 4> words_{};
};

// std::lgamma writes a global variable.
double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// By products of uniform numbers, or from 10 on by the transformed rejection PTRS (Hörmann, "The transformed rejection
// method for generating Poisson random variables", 1993).
double sample_poisson(double rate, ElementNumbers& numbers) {
  if (rate == 0) return 0;
  if (rate < 10) {
    const double limit = std::exp(-rate);
    double count = 0;
    for (double product = numbers.uniform(); product > limit; product *= numbers.uniform()) ++count;
    return count;
  }
  if (std::isinf(rate)) return rate;
  const double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), ratio = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = numbers.uniform() - 0.5, v = numbers.uniform(), side = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / side + b) * u + rate + 0.43);
    if (side >= 0.07 && v <= ratio) return k;
    if (k < 0 || (side < 0.013 && v > side)) continue;
    if (std::log(v * inverse_alpha / (a / (side * side) + b)) <= k * log_rate - rate - log_gamma(k + 1)) return k;
  }
}

// Trials with a chance of at most a half: by waiting times, or from an expectation of 10 on by BTRS (Hörmann, "The
// generation of binomial random variates", 1993).
double sample_rare(double trials, double chance, ElementNumbers& numbers) {
  if (trials * chance < 10) {
    const double scale = std::log1p(-chance);
    double waited = 0, count = 0;
    while (true) {
      waited += std::ceil(std::log(numbers.uniform()) / scale);
      if (!(waited <= trials)) return count;
      ++count;
    }
  }
  const double spread = std::sqrt(trials * chance * (1 - chance)), odds = std::log(chance / (1 - chance));
  const double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * chance, center = trials * chance + 0.5;
  const double ratio = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * spread;
  const double mode = std::floor((trials + 1) * chance);
  const double at_mode = log_gamma(mode + 1) + log_gamma(trials - mode + 1);
  while (true) {
    const double u = numbers.uniform() - 0.5, v = numbers.uniform(), side = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / side + b) * u + center);
    if (k < 0 || k > trials) continue;
    if (side >= 0.07 && v <= ratio) return k;
    const double relative = at_mode - log_gamma(k + 1) - log_gamma(trials - k + 1) + (k - mode) * odds;
    if (std::log(v * alpha / (a / (side * side) + b)) <= relative) return k;
  }
}

double sample_binomial(double trials, double chance, ElementNumbers& numbers) {
  if (trials != trials || chance != chance) return std::numeric_limits<double>::quiet_NaN();
  if (trials <= 0 || chance <= 0) return 0;
  if (chance >= 1) return trials;
  return chance <= 0.5 ? sample_rare(trials, chance, numbers) : trials - sample_rare(trials, 1 - chance, numbers);
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; a shape below 1 is one higher times a
// power of a uniform number.
double sample_gamma(double shape, ElementNumbers& numbers) {
  if (!(shape > 0)) return 0;
  if (std::isinf(shape)) return shape;
  double scale = 1;
  if (shape < 1) {
    scale = std::pow(numbers.uniform(), 1 / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = numbers.normal(), base = 1 + c * x;
    if (base <= 0) continue;
    const double v = base * base * base, u = numbers.uniform();
    if (u < 1 - 0.0331 * (x * x) * (x * x)) return scale * d * v;  // without a logarithm, most of the time
    if (std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

// body(offsets, numbers of the element) for elements in row-major order, in parallel.
template <size_t N, typename Body>
void for_each_sample(const Call& call, const StridedLoop<N>& loop, const Body& body) {
  const auto seed = static_cast<uint64_t>(call.scalars[0].as_int()),
             offset = static_cast<uint64_t>(call.scalars[1].as_int());
  const int64_t inner = loop.inner_size();
  parallel_for(call.threads, loop.rows(), std::max<int64_t>(1, 256 / std::max<int64_t>(1, inner)),
               [&](int64_t begin, int64_t end) {
                 int64_t element = begin * inner;
                 loop.for_rows(begin, end, [&](const auto& row) {
                   auto offsets = row;
                   for (int64_t j = 0; j < inner; ++j, ++element) {
                     ElementNumbers numbers(seed, offset, element);
                     body(static_cast<const typename StridedLoop<N>::Offsets&>(offsets), numbers);
                     for (size_t i = 0; i < N; ++i) offsets[i] += loop.inner_strides()[i];
                   }
                 });
               });
}

// outputs: samples; inputs: the parameters, of their shape and dtype. scalars: seed, offset.
void run_poisson(const Call& call) {
  const TensorView &out = call.outputs[0], &rates = call.inputs[0];
  dispatch_float(out.dtype, [&]<typename E>(E) {
    using S = typename E::Storage;
    const StridedLoop<2> loop(out.sizes, {&out.strides, &rates.strides});
    loop.for_each([&](const auto& offsets) {
      if (!(E::load(rates.as<S>()[offsets[1]]) >= 0))
        fail(ErrorKind::Runtime, "invalid Poisson rate, expected rate to be non-negative");
    });
    for_each_sample(call, loop, [&](const auto& offsets, ElementNumbers& numbers) {
      const double sample = sample_poisson(static_cast<double>(E::load(rates.as<S>()[offsets[1]])), numbers);
      out.as<S>()[offsets[0]] = E::store(static_cast<typename E::Compute>(sample));
    });
  });
}

void run_binomial(const Call& call) {
  const TensorView &out = call.outputs[0], &counts = call.inputs[0], &chances = call.inputs[1];
  dispatch_float(out.dtype, [&]<typename E>(E) {
    using S = typename E::Storage;
    const StridedLoop<3> loop(out.sizes, {&out.strides, &counts.strides, &chances.strides});
    for_each_sample(call, loop, [&](const auto& offsets, ElementNumbers& numbers) {
      const double sample = sample_binomial(static_cast<double>(E::load(counts.as<S>()[offsets[1]])),
                                            static_cast<double>(E::load(chances.as<S>()[offsets[2]])), numbers);
      out.as<S>()[offsets[0]] = E::store(static_cast<typename E::Compute>(sample));
    });
  });
}

// Not below the smallest normal number.
void run_gamma(const Call& call) {
  const TensorView &out = call.outputs[0], &shapes = call.inputs[0];
  dispatch_float(out.dtype, [&]<typename E>(E) {
    using S = typename E::Storage;
    using C = typename E::Compute;
    const StridedLoop<2> loop(out.sizes, {&out.strides, &shapes.strides});
    for_each_sample(call, loop, [&](const auto& offsets, ElementNumbers& numbers) {
      const double sample = sample_gamma(static_cast<double>(E::load(shapes.as<S>()[offsets[1]])), numbers);
      out.as<S>()[offsets[0]] = E::store(std::max(std::numeric_limits<C>::min(), static_cast<C>(sample)));
    });
  });
}

// outputs and inputs without gaps: [rows, width]. Gamma variates as parts of their row's sum.
void run_dirichlet(const Call& call) {
  const TensorView &out = call.outputs[0], &shapes = call.inputs[0];
  const auto seed = static_cast<uint64_t>(call.scalars[0].as_int()),
             offset = static_cast<uint64_t>(call.scalars[1].as_int());
  const int64_t width = out.sizes[1];
  dispatch_float(out.dtype, [&]<typename E>(E) {
    using S = typename E::Storage;
    using C = typename E::Compute;
    constexpr C kLeast = std::numeric_limits<C>::min(), kMost = C(1) - std::numeric_limits<C>::epsilon();
    parallel_for(call.threads, out.sizes[0], std::max<int64_t>(1, 256 / (width + 1)), [&](int64_t begin, int64_t end) {
      std::vector<double> parts(static_cast<size_t>(width));
      for (int64_t row = begin; row < end; ++row) {
        double sum = 0;
        for (int64_t j = 0; j < width; ++j) {
          ElementNumbers numbers(seed, offset, row * width + j);
          parts[j] = sample_gamma(static_cast<double>(E::load(shapes.as<S>()[row * width + j])), numbers);
          sum += parts[j];
        }
        for (int64_t j = 0; j < width; ++j)
          out.as<S>()[row * width + j] = E::store(std::clamp(static_cast<C>(parts[j] / sum), kLeast, kMost));
      }
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "poisson", .run = run_poisson, .may_raise = true}),
    KernelRegistration({.name = "binomial", .run = run_binomial}),
    KernelRegistration({.name = "standard_gamma", .run = run_gamma}),
    KernelRegistration({.name = "dirichlet", .run = run_dirichlet}),
};

}  // namespace
}  // namespace neuron::kernels
