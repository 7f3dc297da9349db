// Kernels "standard_gamma_gradient" and "dirichlet_gradient": how a gamma or Dirichlet variate moves with its shape
// when the chance of what lies below it stays (Figurnov et al., "Implicit reparameterization gradients", 2018).
// Computed in double, by series below about the mean and from the other side above it, so that terms have one sign.
#include <algorithm>
#include <cmath>
#include <limits>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

constexpr int kMostTerms = 100'000;
constexpr double kSmallest = std::numeric_limits<double>::epsilon() / 4;

// Of a positive number: by recurrence to 10, then the asymptotic series.
double digamma(double x) {
  double shifted = 0;
  for (; x < 10; x += 1) shifted -= 1 / x;
  const double z = 1 / (x * x);
  const double series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132)))));
  return shifted + std::log(x) - 0.5 / x - series;
}

// A number and its derivative by the shape.
struct Dual {
  double value, slope;
  friend Dual operator+(Dual x, Dual y) { return {x.value + y.value, x.slope + y.slope}; }
  friend Dual operator*(Dual x, Dual y) { return {x.value * y.value, x.slope * y.value + x.value * y.slope}; }
  friend Dual operator/(Dual x, Dual y) {
    const double quotient = x.value / y.value;
    return {quotient, (x.slope - quotient * y.slope) / y.value};
  }
};

// With f the density and P = x f (sum of t_n), t_0 = 1/a, t_n = t_(n-1) x / (a + n): -(dP/da) / f.
double slope_below(double a, double x) {
  Dual term{1 / a, -1 / (a * a)}, sum = term;
  for (int n = 1; n < kMostTerms && std::abs(term.value) > kSmallest * std::abs(sum.value); ++n) {
    term = term * (Dual{x, 0} / Dual{a + n, 1});
    sum = sum + term;
  }
  return -x * (sum.value * (std::log(x) - digamma(a)) + sum.slope);
}

// With Q = 1 - P = x f / (x + 1 - a - 1 (1 - a) / (x + 3 - a - …)): (dQ/da) / f, the fraction by Lentz's method.
double slope_above(double a, double x) {
  Dual b{x + 1 - a, -1}, fraction = Dual{1, 0} / b, c{1e300, 0}, d = fraction;
  for (int n = 1; n < kMostTerms; ++n) {
    const Dual numerator{n * (a - n), static_cast<double>(n)};
    b.value += 2;
    d = Dual{1, 0} / (numerator * d + b);
    c = b + numerator / c;
    const Dual factor = c * d;
    fraction = fraction * factor;
    // A whole shape ends the fraction, but not its slope.
    if (std::abs(factor.value - 1) < kSmallest * 8 && std::abs(factor.slope) < kSmallest * 8) break;
  }
  return x * (fraction.value * (std::log(x) - digamma(a)) + fraction.slope);
}

double gamma_slope(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  return x <= a + 1 ? slope_below(a, x) : slope_above(a, x);
}

// The part of a Dirichlet variate is a beta variate of a and b = total - a. With f its density and
// I = x (1 - x) f (sum of c_n), c_0 = 1/a, c_n = c_(n-1) x (a + b + n - 1) / (a + n): -(dI/da) / f / (1 - x), or the
// same of 1 - I with 1 - x and b in the places of x and a.
double dirichlet_slope(double x, double a, double total) {
  const double b = total - a;
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 || x == 1) return 0;
  const bool below = x <= (a + 1) / (total + 2);
  const double y = below ? x : 1 - x, own = below ? a : b, moves = below ? 1 : 0;
  Dual term{1 / own, -moves / (own * own)}, sum = term;
  for (int n = 1; n < kMostTerms && std::abs(term.value) > kSmallest * std::abs(sum.value); ++n) {
    term = term * (Dual{y * (total + n - 1), y} / Dual{own + n, moves});
    sum = sum + term;
  }
  const double slope = sum.value * (std::log(x) - digamma(a) + digamma(total)) + sum.slope;
  return below ? -x * slope : x * slope;
}

// outputs: slopes; inputs: shapes and samples, of their shape and dtype.
void run_gamma(const Call& call) {
  const TensorView &out = call.outputs[0], &shapes = call.inputs[0], &samples = call.inputs[1];
  const StridedLoop<3> loop(out.sizes, {&out.strides, &shapes.strides, &samples.strides});
  dispatch_float(out.dtype, [&]<typename E>(E) {
    using S = typename E::Storage;
    parallel_for(call.threads, loop.rows(), std::max<int64_t>(1, 256 / std::max<int64_t>(1, loop.inner_size())),
                 [&](int64_t begin, int64_t end) {
                   loop.for_rows(begin, end, [&](const auto& offsets) {
                     const auto& steps = loop.inner_strides();
                     for (int64_t j = 0; j < loop.inner_size(); ++j) {
                       const double shape = static_cast<double>(E::load(shapes.as<S>()[offsets[1] + j * steps[1]])),
                                    sample = static_cast<double>(E::load(samples.as<S>()[offsets[2] + j * steps[2]]));
                       out.as<S>()[offsets[0] + j * steps[0]] =
                           E::store(static_cast<typename E::Compute>(gamma_slope(shape, sample)));
                     }
                   });
                 });
  });
}

// outputs: slopes; inputs: samples, shapes and their totals, of their shape and dtype.
void run_dirichlet(const Call& call) {
  const TensorView &out = call.outputs[0], &samples = call.inputs[0], &shapes = call.inputs[1],
                   &totals = call.inputs[2];
  const StridedLoop<4> loop(out.sizes, {&out.strides, &samples.strides, &shapes.strides, &totals.strides});
  dispatch_float(out.dtype, [&]<typename E>(E) {
    using S = typename E::Storage;
    auto number = [](const TensorView& view, int64_t offset) {
      return static_cast<double>(E::load(view.as<S>()[offset]));
    };
    loop.for_each([&](const auto& offsets) {
      const double slope =
          dirichlet_slope(number(samples, offsets[1]), number(shapes, offsets[2]), number(totals, offsets[3]));
      out.as<S>()[offsets[0]] = E::store(static_cast<typename E::Compute>(slope));
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "standard_gamma_gradient", .run = run_gamma}),
    KernelRegistration({.name = "dirichlet_gradient", .run = run_dirichlet}),
};

}  // namespace
}  // namespace neuron::kernels
