// Special functions as series: modified Bessel functions, the scaled complement of erf, derivatives of digamma.
// They are summed in float64, whatever the dtype; exponentials, logarithms and tangents are of the arithmetic's dtype.
#include <array>
#include <numbers>

#include "neuron/lowering/expression.h"
#include "neuron/lowering/families.h"
#include "neuron/lowering/operator_attributes.h"

namespace neuron::lowering {

namespace {

// Chebyshev series, computed in 40 digits; the rest of each is below 1e-17 of the function. `single` terms leave less
// than 1e-9.
struct Series {
  std::span<const double> coefficients;
  size_t single;

  // At t in [-1, 1], by Clenshaw's recurrence.
  Expression at(Expression t, bool in_double) const {
    const size_t terms = in_double ? coefficients.size() : single;
    Expression twice = t + t, next = t.same(coefficients[terms - 1]), after = t.same(0.0);
    for (size_t j = terms - 1; --j > 0;) {
      Expression current = twice * next - after + coefficients[j];
      after = next;
      next = current;
    }
    return t * next - after + coefficients[0];
  }
};

// exp(-x) I0(x) of t = x / 4 - 1, and sqrt(x) exp(-x) I0(x) of t = 16 / x - 1.
constexpr double kSmallZero[] = {
    0.33839763720473803,    -0.3046826723431984,     0.17162090152220877,    -0.09490109704804764,
    0.04930528423967071,    -0.02373741480589947,    0.010546460394594998,   -0.004324309995050576,
    0.0016394756169413357,  -0.0005763755745385824,  0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
    6.046995022541919e-08,  -1.300025009986248e-08,  2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11,  -1.726826291441556e-11,  2.95505266312964e-12,   -4.856446783111929e-13,
    7.676185498604936e-14,  -1.1685332877993451e-14, 1.715391285555133e-15,  -2.431279846547955e-16,
    3.3307945188222384e-17, -4.4153416464793395e-18};
constexpr double kLargeZero[] = {
    0.4022452055070544,      0.0033691164782556943,   6.889758346916825e-05,   2.8913705208347567e-06,
    2.0489185894690638e-07,  2.266668990498178e-08,   3.3962320257083865e-09,  4.94060238822497e-10,
    1.1889147107846439e-11,  -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13,   3.8527783827421426e-13,  1.54008621752141e-14,    -4.150569347287222e-14,
    -9.554846698828307e-15,  3.8116806693526224e-15,  1.7725601330565263e-15,  -3.425485619677219e-16,
    -2.8276239805165836e-16, 3.461222867697461e-17,   4.46562142029676e-17,    -4.830504485944182e-18,
    -7.233180487874754e-18};
// exp(-x) I1(x) / x and sqrt(x) exp(-x) I1(x), of the same arguments.
constexpr double kSmallOne[] = {
    0.12629359322181682,    -0.17641651835783406,    0.1026436586898471,     -0.05294598120809499,
    0.024726449030626516,   -0.010564084894626197,   0.004156422944312888,   -0.0015135724506312532,
    0.0005122859561685758,  -0.00016176081582589674, 4.781565107550054e-05,  -1.3273163656039436e-05,
    3.4702513081376785e-06, -8.568720264695455e-07,  2.0032947535521353e-07, -4.445059128796328e-08,
    9.381537386495773e-09,  -1.8872497517228294e-09, 3.625590281552117e-10,  -6.663489723502027e-11,
    1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13,  -5.042185504727912e-14,
    7.600684294735408e-15,  -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17,
    2.7779141127610464e-18, -3.541581772542136e-19};
constexpr double kLargeOne[] = {
    0.38928811750914005,     -0.009761097491361469,   -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07,  -2.6314688468895196e-08, -3.835380385964237e-09,  -5.589743462196584e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
    -7.198551776245908e-13,  -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14,  -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
    2.96262899764595e-16,    -3.209525921993424e-17,  -4.6503053684893586e-17, 4.414348323071708e-18,
    7.517296310842105e-18};

// exp(-|x|) I(|x|) of order 0 or 1, in float64.
template <int order>
Expression scaled_bessel(Context& c, Expression magnitude) {
  static constexpr Series small{order == 0 ? std::span(kSmallZero) : std::span(kSmallOne), 20};
  static constexpr Series large{order == 0 ? std::span(kLargeZero) : std::span(kLargeOne), 8};
  const bool in_double = c.compute() == DType::Float64;
  Expression x = magnitude.convert(DType::Float64);
  Expression near = small.at(min(x, 8.0) * 0.25 - 1.0, in_double);
  if (order == 1) near = near * x;
  Expression beyond = max(x, 8.0);
  Expression far = large.at(16.0 / beyond - 1.0, in_double) / sqrt(beyond);
  return select(x <= 8.0, near, far);
}

// Order 0 is even, order 1 odd.
template <int order>
void set_bessel(Context& c, Expression x, Expression of_magnitude) {
  Expression value = of_magnitude.convert(c.compute());
  c.set_output(order == 0 ? value : select(x < 0.0, -value, value));
}

template <int order>
void scaled_bessel(Context& c) {
  Expression x = operand(c, 0);
  set_bessel<order>(c, x, scaled_bessel<order>(c, abs(x)));
}

// Where the exponential overflows before the function does, two factors of its square root.
template <int order>
void bessel(Context& c) {
  Expression x = operand(c, 0), magnitude = abs(x);
  Expression large = magnitude > (c.compute() == DType::Float64 ? 700.0 : 88.0);
  Expression factor = exp(select(large, magnitude * 0.5, magnitude)).convert(DType::Float64);
  Expression value = scaled_bessel<order>(c, magnitude) * factor;
  set_bessel<order>(c, x, select(large, value * factor, value));
}

// (1 + 2 x) exp(x^2) erfc(x) of t = (x - 3.75) / (x + 3.75), as M. M. Shepherd and J. G. Laframboise write it (Math.
// Comp. 36, 1981).
constexpr double kScaledErfc[] = {
    1.1775789345674017,     -0.004590054580646478,  -0.08424913336651792,    0.05920993999819189,
    -0.026658668435305753,  0.009074997670705265,   -0.002413163540417608,   0.0004907758365258086,
    -6.916973302501207e-05, 4.13902798607301e-06,   7.74038306619849e-07,    -2.1886401049234397e-07,
    1.076499946567091e-08,  4.521959811218287e-09,  -7.754400208831351e-10,  -6.318088340886684e-11,
    2.86879501093067e-11,   1.9455868545777347e-13, -9.65469674843344e-13,   3.25254814814874e-14,
    3.3478119482868056e-14, -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17,
    5.068148904796111e-17};

// exp(x^2) erfc(x) for x >= 0, in float64.
Expression scaled_erfc(Context& c, Expression x) {
  static constexpr Series series{kScaledErfc, 14};
  Expression finite = min(x, 1e100);
  Expression value = series.at((finite - 3.75) / (finite + 3.75), c.compute() == DType::Float64);
  return value * 0.5 / (x + 0.5);
}

// Below zero 2 exp(x^2) less the value at -x. The square does not fit into float32: its rest is a factor.
void erfcx(Context& c) {
  Expression x = operand(c, 0), wide = x.convert(DType::Float64);
  Expression square = wide * wide, rounded = square.convert(c.compute());
  Expression rest = square - rounded.convert(DType::Float64);
  Expression growth = exp(rounded).convert(DType::Float64);
  Expression positive = scaled_erfc(c, abs(wide));
  Expression finite = (growth * (rest + 1.0) * 2.0) - positive;
  Expression negative = select(growth == kInfinity, growth, finite);
  c.set_output(select(wide < 0.0, negative, positive).convert(c.compute()));
}

// The logarithm of the standard normal distribution function.
void log_ndtr(Context& c) {
  Expression x = operand(c, 0);
  Expression wide = x.convert(DType::Float64), square = wide * wide * 0.5;
  Expression half = scaled_erfc(c, abs(wide) * (std::numbers::sqrt2 / 2)) * 0.5;
  Expression below = log(half.convert(c.compute())).convert(DType::Float64) - square;
  Expression rounded = square.convert(c.compute());
  Expression rest = min(square, 1e6) - min(rounded.convert(DType::Float64), 1e6);
  Expression tail = exp(-rounded).convert(DType::Float64) * (1.0 - rest) * half;
  c.set_output(select(x < 0.0, below.convert(c.compute()), log1p(-tail.convert(c.compute()))));
}

// x^exponent for a small positive exponent.
Expression whole_power(Expression x, int exponent) {
  Expression result = x;
  for (int i = 1; i < exponent; ++i) result = result * x;
  return result;
}

// The n-th derivative of digamma for positive x: (-1)^(n+1) n! times the sum of (x + k)^-(n+1) over k >= 0, ten terms
// and Euler's and Maclaurin's formula for the rest.
Expression positive_polygamma(Expression x, int n) {
  static constexpr double bernoulli[] = {1.0 / 6,  -1.0 / 30,       1.0 / 42, -1.0 / 30,
                                         5.0 / 66, -691.0 / 2730.0, 7.0 / 6,  -3617.0 / 510};
  double factorial = n % 2 == 0 ? -1 : 1;
  for (int i = 2; i <= n; ++i) factorial *= i;
  Expression inverse = 1.0 / (x + 10.0), square = inverse * inverse;
  Expression power = whole_power(inverse, n);
  Expression sum = power * (1.0 / n) + power * inverse * 0.5;
  Expression term = power * square;
  double coefficient = 0.5 * (n + 1);  // (n + 1) … (n + 2 j - 1) / (2 j)!
  for (int j = 1; j <= 8; ++j) {
    sum = sum + term * (coefficient * bernoulli[j - 1]);
    term = term * square;
    coefficient *= static_cast<double>(n + 2 * j) * (n + 2 * j + 1) / ((2 * j + 1) * (2 * j + 2));
  }
  for (int k = 10; k-- > 0;) sum = sum + whole_power(1.0 / (x + static_cast<double>(k)), n + 1);
  return sum * factorial;
}

// The n-th derivative of cot(pi x), without its factor pi^n: a polynomial in the cotangent c, since c' = -(1 + c^2).
Expression cotangent_derivative(Expression cotangent, int n) {
  std::array<double, kLargestPolygamma + 3> p{};
  p[1] = 1;
  for (int i = 0; i < n; ++i) {
    std::array<double, kLargestPolygamma + 3> next{};
    for (size_t degree = 1; degree + 1 < p.size(); ++degree) {
      next[degree - 1] -= static_cast<double>(degree) * p[degree];
      next[degree + 1] -= static_cast<double>(degree) * p[degree];
    }
    p = next;
  }
  // Every other coefficient is zero.
  Expression square = cotangent * cotangent, sum = cotangent.same(p[static_cast<size_t>(n) + 1]);
  for (int degree = n - 1; degree >= 0; degree -= 2) sum = sum * square + p[static_cast<size_t>(degree)];
  return n % 2 == 0 ? sum * cotangent : sum;
}

// polygamma(self) with the order as attribute; reflection below 1/2.
void polygamma(Context& c) {
  const int n = static_cast<int>(c.attribute(0));
  Expression x = operand(c, 0);
  if (n == 0) return c.set_output(x.function("digamma"));
  Expression wide = x.convert(DType::Float64);
  Expression below = wide < 0.5;
  Expression positive = positive_polygamma(select(below, 1.0 - wide, wide), n);
  // The cotangent of pi x, from the nearer of its pole and its zero.
  Expression offset = wide - round(wide), distance = abs(offset);
  Expression by_pole = distance <= 0.25;
  Expression angle = (select(by_pole, distance, 0.5 - distance) * std::numbers::pi).convert(c.compute());
  Expression tangent = angle.unary(ir::Opcode::Tan).convert(DType::Float64);
  Expression cotangent = select(by_pole, 1.0 / tangent, tangent);
  cotangent = select(offset < 0.0, -cotangent, cotangent);
  double scale = 1;
  for (int i = 0; i <= n; ++i) scale *= std::numbers::pi;
  Expression reflected = (n % 2 == 0 ? positive : -positive) - cotangent_derivative(cotangent, n) * scale;
  c.set_output(select(below, reflected, positive).convert(c.compute()));
}

}  // namespace

std::span<const Rule> special_rules() {
  static const Rule rules[] = {
      {"i0", bessel<0>},         {"special_i0e", scaled_bessel<0>},
      {"special_i1", bessel<1>}, {"special_i1e", scaled_bessel<1>},
      {"special_erfcx", erfcx},  {"special_log_ndtr", log_ndtr},
      {"polygamma", polygamma},
  };
  return rules;
}

}  // namespace neuron::lowering
