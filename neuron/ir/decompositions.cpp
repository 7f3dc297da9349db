#include "neuron/ir/decompositions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "neuron/base/error.h"
#include "neuron/ir/builder.h"

namespace neuron::ir {

namespace {

constexpr double pi = std::numbers::pi;
constexpr double infinity = std::numeric_limits<double>::infinity();

// Short names for building a formula on values of one type.
class Formula {
 public:
  Formula(Graph& graph, Type type) : builder_(graph), type_(std::move(type)) {}

  bool single() const { return type_.dtype == DType::Float32 || type_.dtype == DType::Complex64; }
  Value number(double value) { return builder_.constant(type_, value); }
  Value imaginary_unit() {
    Type part = type_.with(single() ? DType::Float32 : DType::Float64);
    return builder_.binary(Opcode::Complex, builder_.constant(part, 0), builder_.constant(part, 1));
  }

  Value add(Value x, Value y) { return builder_.add(x, y); }
  Value add(Value x, double y) { return builder_.add(x, number(y)); }
  Value subtract(Value x, Value y) { return builder_.subtract(x, y); }
  Value subtract(double x, Value y) { return builder_.subtract(number(x), y); }
  Value subtract(Value x, double y) { return builder_.subtract(x, number(y)); }
  Value multiply(Value x, Value y) { return builder_.multiply(x, y); }
  Value multiply(Value x, double y) { return builder_.multiply(x, number(y)); }
  Value minimum(Value x, Value y) { return builder_.minimum(x, y); }
  Value divide(Value x, Value y) { return builder_.divide(x, y); }
  Value divide(double x, Value y) { return builder_.divide(number(x), y); }
  Value negate(Value x) { return builder_.negate(x); }
  Value apply(Opcode opcode, Value x) { return builder_.unary(opcode, x); }
  Value exp(Value x) { return apply(Opcode::Exponential, x); }
  Value log(Value x) { return apply(Opcode::Log, x); }
  Value log1p(Value x) { return apply(Opcode::LogPlusOne, x); }
  Value sqrt(Value x) { return apply(Opcode::Sqrt, x); }
  Value abs(Value x) { return apply(Opcode::Abs, x); }
  Value atan2(Value y, Value x) { return builder_.binary(Opcode::Atan2, y, x); }
  Value below(Value x, double y) { return builder_.compare(ComparisonDirection::LT, x, number(y)); }
  Value equal(Value x, double y) { return builder_.compare(ComparisonDirection::EQ, x, number(y)); }
  Value select(Value predicate, Value x, Value y) { return builder_.select(predicate, x, y); }
  // |magnitude| with the sign of `x`, whose zero gives zero.
  Value with_sign(Value magnitude, Value x) { return multiply(apply(Opcode::Sign, x), magnitude); }
  Value trunc(Value x) { return select(below(x, 0), apply(Opcode::Ceil, x), apply(Opcode::Floor, x)); }
  // c0 + x (c1 + x (c2 + …)).
  Value polynomial(Value x, std::span<const double> coefficients) {
    Value sum = number(coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;) sum = add(multiply(sum, x), coefficients[i]);
    return sum;
  }

 private:
  Builder builder_;
  Type type_;
};

// Taylor series of erf, for |x| <= 1.
Value erf_near_zero(Formula& f, Value x) {
  std::vector<double> coefficients;
  double factorial = 1;
  for (int n = 0; n < (f.single() ? 12 : 20); ++n) {
    if (n > 0) factorial *= -n;
    coefficients.push_back(2 / std::sqrt(pi) / (factorial * (2 * n + 1)));
  }
  return f.multiply(x, f.polynomial(f.multiply(x, x), coefficients));
}

// erfc for x >= 0: exp(-x^2) times a Chebyshev series in (x - 3.75) / (x + 3.75), as in M. M. Shepherd and J. G.
// Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", Math. Comp. 36 (1981); the coefficients here are
// of exp(x^2) erfc(x) itself, computed in 40 digits. Evaluated by Clenshaw's recurrence.
Value erfc_positive(Formula& f, Value x) {
  static constexpr double coefficients[] = {
      0.30507154096160020896,     -0.43484127271257747183,    0.17635119364360550113,    -0.06071079560924941486,
      0.017712068995694114486,    -0.0043211193855672938186,  0.00085421667688709867882, -0.00012715509060916274263,
      1.1248167243671189469e-5,   3.1306388542182097263e-7,   -2.7098806853776202201e-7, 3.0737622701407688441e-8,
      2.5156203848176229373e-9,   -1.0289299213203191276e-9,  2.9944052119949939363e-11, 2.605178968726693629e-11,
      -2.6348399241719693865e-12, -6.4340450989063644335e-13, 1.1245740180166344657e-13, 1.7281533389986098177e-14,
      -4.2641016949423751074e-15, -5.4537197788019059686e-16, 1.5869760776167122641e-16, 2.0899837844334043136e-17};
  size_t terms = f.single() ? 13 : std::size(coefficients);
  // Beyond 30 the result is 0, and infinity must not be divided by itself. A NaN stays one.
  x = f.minimum(x, f.number(30));
  Value t = f.divide(f.subtract(x, 3.75), f.add(x, 3.75));
  Value twice = f.multiply(t, 2);
  Value next = f.number(coefficients[terms - 1]), after = f.number(0);
  for (size_t j = terms - 2; j > 0; --j) {
    Value current = f.add(f.subtract(f.multiply(twice, next), after), coefficients[j]);
    after = next;
    next = current;
  }
  Value series = f.add(f.subtract(f.multiply(t, next), after), coefficients[0]);
  return f.multiply(f.exp(f.negate(f.multiply(x, x))), series);
}

Value erf(Formula& f, Value x) {
  Value far = f.with_sign(f.subtract(1, erfc_positive(f, f.abs(x))), x);
  return f.select(f.below(f.abs(x), 1), erf_near_zero(f, x), far);
}

Value gelu_derivative(Formula& f, Value x) {
  Value distribution = f.multiply(f.add(erf(f, f.multiply(x, std::numbers::sqrt2 / 2)), 1), 0.5);
  Value density = f.multiply(f.exp(f.multiply(f.multiply(x, x), -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return f.add(distribution, f.multiply(x, density));
}

Value erfc(Formula& f, Value x) {
  Value positive = erfc_positive(f, f.abs(x));
  Value far = f.select(f.below(x, 0), f.subtract(2, positive), positive);
  return f.select(f.below(f.abs(x), 0.5), f.subtract(1, erf_near_zero(f, x)), far);
}

// Winitzki's formula as a start, then Halley's method: on erf below 1/2, on erfc above, where erf has no digits left.
Value erfinv(Formula& f, Value y) {
  constexpr double a = 0.147;
  Value magnitude = f.abs(y);
  Value log_term = f.log1p(f.negate(f.multiply(magnitude, magnitude)));
  Value t = f.add(f.multiply(log_term, 0.5), 2 / (pi * a));
  Value x = f.sqrt(f.subtract(f.sqrt(f.subtract(f.multiply(t, t), f.multiply(log_term, 1 / a))), t));
  Value small = f.below(magnitude, 0.5);
  for (int i = 0; i < (f.single() ? 2 : 3); ++i) {
    Value near = f.subtract(erf_near_zero(f, x), magnitude);
    Value far = f.subtract(f.subtract(1, magnitude), erfc_positive(f, x));
    Value slope = f.multiply(f.exp(f.negate(f.multiply(x, x))), 2 / std::sqrt(pi));
    Value step = f.divide(f.select(small, near, far), slope);
    x = f.subtract(x, f.divide(step, f.add(f.multiply(x, step), 1)));
  }
  Value result = f.with_sign(x, y);
  result = f.select(f.equal(magnitude, 1), f.multiply(y, infinity), result);
  return f.select(f.equal(y, 0), y, result);
}

// The sum of 1/(x+i), respectively the product of x+i, that takes an argument below 10 to above 10, where the
// asymptotic series hold.
struct Shifted {
  Value x, sum, product;
};

Shifted shift(Formula& f, Value x) {
  Value small = f.below(x, 10), sum = f.divide(1, x), product = x;
  for (int i = 1; i < 10; ++i) {
    Value term = f.add(x, i);
    sum = f.add(sum, f.divide(1, term));
    product = f.multiply(product, term);
  }
  return {f.select(small, f.add(x, 10), x), f.select(small, sum, f.number(0)), f.select(small, product, f.number(1))};
}

// Abramowitz & Stegun 6.3.5, 6.3.7, 6.3.18.
Value digamma(Formula& f, Value x) {
  Value negative = f.below(x, 0);
  Shifted s = shift(f, f.select(negative, f.subtract(1, x), x));
  static constexpr double bernoulli[] = {0,          1.0 / 12,  -1.0 / 120,     1.0 / 252,
                                         -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  Value series = f.polynomial(f.divide(1, f.multiply(s.x, s.x)), bernoulli);
  Value value = f.subtract(f.subtract(f.subtract(f.log(s.x), f.divide(0.5, s.x)), series), s.sum);
  Value fraction = f.subtract(x, f.trunc(x));
  Value reflected = f.subtract(value, f.divide(pi, f.apply(Opcode::Tan, f.multiply(fraction, pi))));
  reflected = f.select(f.equal(fraction, 0), f.number(std::numeric_limits<double>::quiet_NaN()), reflected);
  return f.select(negative, reflected, value);
}

// Stirling's series, Abramowitz & Stegun 6.1.41, and reflection, 6.1.17.
Value lgamma(Formula& f, Value x) {
  Value reflect = f.below(x, 0.5);
  Shifted s = shift(f, f.select(reflect, f.subtract(1, x), x));
  static constexpr double stirling[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360};
  Value inverse = f.divide(1, s.x);
  Value series = f.multiply(inverse, f.polynomial(f.multiply(inverse, inverse), stirling));
  Value main = f.subtract(f.multiply(f.subtract(s.x, 0.5), f.log(s.x)), s.x);
  Value value = f.subtract(f.add(f.add(main, 0.5 * std::log(2 * pi)), series), f.log(s.product));
  Value fraction = f.subtract(x, f.apply(Opcode::Floor, x));
  Value sine = f.abs(f.apply(Opcode::Sine, f.multiply(fraction, pi)));
  Value reflected = f.subtract(f.log(f.divide(pi, sine)), value);
  return f.select(f.equal(f.abs(x), infinity), f.number(infinity), f.select(reflect, reflected, value));
}

Value hyperbolic(Formula& f, Value x, bool sine) {
  // Half of the exponential, without overflow where the result has none.
  Value large = f.exp(f.add(f.abs(x), -std::numbers::ln2)),
        small = f.exp(f.add(f.negate(f.abs(x)), -std::numbers::ln2));
  if (!sine) return f.add(large, small);
  Value e = f.apply(Opcode::ExponentialMinusOne, f.abs(x));
  Value near = f.multiply(f.add(e, f.divide(e, f.add(e, 1))), 0.5);
  Value magnitude = f.select(f.below(f.abs(x), 1), near, f.subtract(large, small));
  return f.select(f.equal(x, 0), x, f.with_sign(magnitude, x));
}

// log(2x), where x^2 would overflow or 1 be lost.
Value log_twice(Formula& f, Value x) { return f.add(f.log(x), std::numbers::ln2); }

Value acosh(Formula& f, Value x) {
  Value t = f.subtract(x, 1);
  Value near = f.log1p(f.add(t, f.multiply(f.sqrt(t), f.sqrt(f.add(t, 2)))));
  return f.select(f.below(x, 1e9), near, log_twice(f, x));
}

Value asinh(Formula& f, Value x) {
  Value magnitude = f.abs(x), square = f.multiply(magnitude, magnitude);
  Value near = f.log1p(f.add(magnitude, f.divide(square, f.add(f.sqrt(f.add(square, 1)), 1))));
  Value result = f.with_sign(f.select(f.below(magnitude, 1e9), near, log_twice(f, magnitude)), x);
  return f.select(f.equal(x, 0), x, result);
}

Value real_function(Formula& f, std::string_view name, Value x) {
  auto cosine_side = [&] { return f.sqrt(f.multiply(f.subtract(1, x), f.add(x, 1))); };
  if (name == "acos") return f.atan2(cosine_side(), x);
  if (name == "asin") return f.atan2(x, cosine_side());
  if (name == "atan") return f.atan2(x, f.number(1));
  if (name == "acosh") return acosh(f, x);
  if (name == "asinh") return asinh(f, x);
  if (name == "atanh") return f.multiply(f.subtract(f.log1p(x), f.log1p(f.negate(x))), 0.5);
  if (name == "cosh") return hyperbolic(f, x, false);
  if (name == "sinh") return hyperbolic(f, x, true);
  if (name == "digamma") return digamma(f, x);
  if (name == "erf") return erf(f, x);
  if (name == "erfc") return erfc(f, x);
  if (name == "erfinv") return erfinv(f, x);
  if (name == "gelu_derivative") return gelu_derivative(f, x);
  if (name == "exp2") return f.exp(f.multiply(x, std::numbers::ln2));
  if (name == "lgamma") return lgamma(f, x);
  if (name == "log10") return f.multiply(f.log(x), 1 / std::numbers::ln10);
  if (name == "log2") return f.multiply(f.log(x), 1 / std::numbers::ln2);
  if (name == "trunc") return f.trunc(x);
  return {};
}

// Abramowitz & Stegun 4.4.26 to 4.4.28, 4.5.1, 4.5.2, 4.6.20 to 4.6.22.
Value complex_function(Formula& f, std::string_view name, Value z) {
  Value i = f.imaginary_unit();
  auto root = [&] { return f.sqrt(f.subtract(1, f.multiply(z, z))); };
  if (name == "asin") return f.negate(f.multiply(i, f.log(f.add(f.multiply(i, z), root()))));
  if (name == "acos") return f.negate(f.multiply(i, f.log(f.add(z, f.multiply(i, root())))));
  if (name == "atan") {
    Value iz = f.multiply(i, z);
    return f.multiply(f.multiply(i, f.subtract(f.log(f.subtract(1, iz)), f.log(f.add(iz, 1)))), 0.5);
  }
  if (name == "asinh") return f.log(f.add(z, f.sqrt(f.add(f.multiply(z, z), 1))));
  if (name == "acosh") return f.log(f.add(z, f.multiply(f.sqrt(f.add(z, 1)), f.sqrt(f.subtract(z, 1)))));
  if (name == "atanh") return f.multiply(f.subtract(f.log(f.add(z, 1)), f.log(f.subtract(1, z))), 0.5);
  if (name == "cosh") return f.multiply(f.add(f.exp(z), f.exp(f.negate(z))), 0.5);
  if (name == "sinh") return f.multiply(f.subtract(f.exp(z), f.exp(f.negate(z))), 0.5);
  if (name == "exp2") return f.exp(f.multiply(z, std::numbers::ln2));
  if (name == "log10") return f.multiply(f.log(z), 1 / std::numbers::ln10);
  if (name == "log2") return f.multiply(f.log(z), 1 / std::numbers::ln2);
  return {};
}

// One rounding more than a fused one has in float64; through float64 for narrower types, where the product is exact.
Graph fma_decomposition(const Type& type) {
  Graph graph("fma");
  Builder b(graph);
  Value x[3];
  for (Value& value : x) value = b.graph().add_parameter(type);
  for (Value& value : x) value = b.convert(value, DType::Float64);
  Value result = b.convert(b.add(b.multiply(x[0], x[1]), x[2]), compute_dtype(type.dtype));
  result = b.convert(result, type.dtype);
  graph.set_results({&result, 1});
  return graph;
}

}  // namespace

Graph function_decomposition(std::string_view name, const Type& type) {
  if (name == "fma" && is_float(type.dtype)) return fma_decomposition(type);
  Graph graph{std::string(name)};
  Builder b(graph);
  Value x = b.convert(graph.add_parameter(type), compute_dtype(type.dtype));
  Formula formula(graph, b.type(x));
  Value result;
  if (is_float(type.dtype)) result = real_function(formula, name, x);
  if (is_complex(type.dtype)) result = complex_function(formula, name, x);
  check_internal(result.valid(), "function '{}' has no decomposition for {}", name, dtype_name(type.dtype));
  result = b.convert(result, type.dtype);
  graph.set_results({&result, 1});
  return graph;
}

}  // namespace neuron::ir
