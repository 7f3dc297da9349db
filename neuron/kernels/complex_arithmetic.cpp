// Kernels "complex_<operator>" for operators of complex64 and complex128, element by element, in the precision of the
// parts; and "complex_of_parts" and "complex_of_angle", which make complex numbers of real ones.
//
// outputs: the result. inputs: the operands that are tensors, of the result's shape (strides may be 0). attributes: for
// each operand 1 where it is a number, else 0; scalars: real and imaginary part of each number, in order.
#include <array>
#include <cmath>
#include <complex>
#include <type_traits>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/avx2.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

// Products and quotients are written out: those of std::complex look for infinities among NaN results, PyTorch's do
// not.
template <typename T>
std::complex<T> product(std::complex<T> x, std::complex<T> y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
// By the larger part of the divisor (R. L. Smith, Algorithm 116), so that nothing overflows on the way.
template <typename T>
std::complex<T> quotient(std::complex<T> x, std::complex<T> y) {
  const bool real_larger = std::abs(y.real()) >= std::abs(y.imag());
  const T large = real_larger ? y.real() : y.imag(), small = real_larger ? y.imag() : y.real();
  const T ratio = large == 0 ? T(0) : small / large, scale = 1 / (large + small * ratio);
  const T real = real_larger ? x.real() + x.imag() * ratio : x.real() * ratio + x.imag();
  const T imag = real_larger ? x.imag() - x.real() * ratio : x.imag() * ratio - x.real();
  return {real * scale, imag * scale};
}

// Each operator as a function of its operands.
#define NEURON_UNARY(name, expression)                   \
  struct name {                                          \
    template <typename Z>                                \
    auto operator()(Z x) const {                         \
      using T [[maybe_unused]] = typename Z::value_type; \
      return expression;                                 \
    }                                                    \
  }
#define NEURON_BINARY(name, expression)                  \
  struct name {                                          \
    template <typename Z>                                \
    auto operator()(Z x, Z y) const {                    \
      using T [[maybe_unused]] = typename Z::value_type; \
      return expression;                                 \
    }                                                    \
  }
// The third operand scales the second: alpha.
#define NEURON_SCALED(name, expression)        \
  struct name {                                \
    template <typename Z>                      \
    auto operator()(Z x, Z y, Z alpha) const { \
      return expression;                       \
    }                                          \
  }

NEURON_UNARY(Negated, (Z{-x.real(), -x.imag()}));
NEURON_UNARY(Conjugate, (Z{x.real(), -x.imag()}));
NEURON_UNARY(Magnitude, std::abs(x));
NEURON_UNARY(Angle, std::arg(x));
NEURON_UNARY(Reciprocal, quotient(Z(1), x));
NEURON_UNARY(Square, product(x, x));
NEURON_UNARY(SquareRoot, std::sqrt(x));
NEURON_UNARY(ReciprocalRoot, quotient(Z(1), std::sqrt(x)));
NEURON_UNARY(Exponential, std::exp(x));
NEURON_UNARY(Logarithm, std::log(x));
NEURON_UNARY(Sine, std::sin(x));
NEURON_UNARY(Cosine, std::cos(x));
NEURON_UNARY(Tangent, std::tan(x));
NEURON_UNARY(HyperbolicSine, std::sinh(x));
NEURON_UNARY(HyperbolicCosine, std::cosh(x));
NEURON_UNARY(HyperbolicTangent, std::tanh(x));
NEURON_UNARY(Logistic, quotient(Z(1), Z(1) + std::exp(-x)));
struct Sign {
  template <typename Z>
  Z operator()(Z x) const {
    const auto magnitude = std::abs(x);
    return magnitude == 0 ? Z(0) : Z{x.real() / magnitude, x.imag() / magnitude};
  }
};
NEURON_BINARY(Sum, (Z{x.real() + y.real(), x.imag() + y.imag()}));
NEURON_BINARY(Difference, (Z{x.real() - y.real(), x.imag() - y.imag()}));
NEURON_BINARY(Reversed, (Z{y.real() - x.real(), y.imag() - x.imag()}));
NEURON_BINARY(Product, product(x, y));
NEURON_BINARY(Quotient, quotient(x, y));
NEURON_BINARY(Equal, x.real() == y.real() && x.imag() == y.imag());
NEURON_BINARY(NotEqual, x.real() != y.real() || x.imag() != y.imag());
struct Power {
  template <typename Z>
  Z operator()(Z x, Z y) const {
    return y == Z(0) ? Z(1) : std::pow(x, y);
  }
};
NEURON_SCALED(ScaledSum, x + product(alpha, y));
NEURON_SCALED(ScaledDifference, x - product(alpha, y));
NEURON_SCALED(ReverseDifference, y - product(alpha, x));

#undef NEURON_UNARY
#undef NEURON_BINARY
#undef NEURON_SCALED

// A line of results; operands with a stride of 0 or 1 are read in vector code.
template <typename F, typename R, typename Z, size_t N, size_t... I>
NEURON_AVX2 void compute_line(R* out, int64_t out_stride, const std::array<const Z*, N>& from,
                              const std::array<int64_t, N>& strides, int64_t count, std::index_sequence<I...>) {
  const F function;
  if (out_stride == 1 && ((strides[I] == 1) && ...)) {
    for (int64_t i = 0; i < count; ++i) out[i] = function(from[I][i]...);
  } else if (N == 2 && out_stride == 1 && strides[0] == 1 && strides[N - 1] == 0) {
    const Z constant = *from[N - 1];
    for (int64_t i = 0; i < count; ++i) out[i] = function((I == 0 ? from[0][i] : constant)...);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i * out_stride] = function(from[I][i * strides[I]]...);
  }
}

template <typename F, typename T, size_t N>
void compute(const Call& call) {
  using Z = std::complex<T>;
  using R = decltype([]<size_t... I>(std::index_sequence<I...>) {
    return F()((static_cast<void>(I), Z())...);
  }(std::make_index_sequence<N>()));
  const TensorView& out = call.outputs[0];
  static_assert(std::is_same_v<R, bool> || std::is_same_v<R, T> || std::is_same_v<R, Z>);
  const Dims none(out.sizes.size(), 0);
  std::array<Z, N> numbers;
  std::array<const Z*, N> operands;
  std::array<const Dims*, N + 1> strides;
  strides[N] = &out.strides;
  size_t tensor = 0, number = 0;
  for (size_t i = 0; i < N; ++i) {
    if (call.attributes[i] != 0) {
      numbers[i] = {static_cast<T>(call.scalars[number].as_double()),
                    static_cast<T>(call.scalars[number + 1].as_double())};
      number += 2;
      operands[i] = &numbers[i];
      strides[i] = &none;
    } else {
      operands[i] = call.inputs[tensor].as<Z>();
      strides[i] = &call.inputs[tensor++].strides;
    }
  }
  StridedLoop<N + 1> loop(out.sizes, strides);
  parallel_for(call.threads, loop.rows(), std::max<int64_t>(1, 4096 / std::max<int64_t>(1, loop.inner_size())),
               [&](int64_t begin, int64_t end) {
                 loop.for_rows(begin, end, [&](const auto& offsets) {
                   std::array<const Z*, N> from = operands;
                   std::array<int64_t, N> steps;
                   for (size_t i = 0; i < N; ++i) {
                     from[i] += offsets[i];
                     steps[i] = loop.inner_strides()[i];
                   }
                   compute_line<F>(out.as<R>() + offsets[N], loop.inner_strides()[N], from, steps, loop.inner_size(),
                                   std::make_index_sequence<N>());
                 });
               });
}

template <typename F, size_t N>
void run(const Call& call) {
  DType dtype = call.outputs[0].dtype;
  if (!call.inputs.empty()) dtype = call.inputs[0].dtype;
  if (dtype == DType::Complex64) return compute<F, float, N>(call);
  if (dtype == DType::Complex128) return compute<F, double, N>(call);
  fail(ErrorKind::Internal, "a kernel of complex numbers was given {}", dtype_name(dtype));
}

// outputs: complex numbers; inputs: two real tensors of its shape and half its dtype.
template <bool kAngle, typename T>
void make(const Call& call) {
  const TensorView &out = call.outputs[0], &x = call.inputs[0], &y = call.inputs[1];
  StridedLoop<3> loop(out.sizes, {&out.strides, &x.strides, &y.strides});
  loop.for_each([&](const auto& offsets) {
    const T first = x.as<T>()[offsets[1]], second = y.as<T>()[offsets[2]];
    out.as<std::complex<T>>()[offsets[0]] =
        kAngle ? std::complex<T>(first * std::cos(second), first * std::sin(second)) : std::complex<T>(first, second);
  });
}
template <bool kAngle>
void run_make(const Call& call) {
  if (call.outputs[0].dtype == DType::Complex64) return make<kAngle, float>(call);
  make<kAngle, double>(call);
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "complex_neg", .run = run<Negated, 1>}),
    KernelRegistration({.name = "complex_conj", .run = run<Conjugate, 1>}),
    KernelRegistration({.name = "complex_abs", .run = run<Magnitude, 1>}),
    KernelRegistration({.name = "complex_angle", .run = run<Angle, 1>}),
    KernelRegistration({.name = "complex_sgn", .run = run<Sign, 1>}),
    KernelRegistration({.name = "complex_reciprocal", .run = run<Reciprocal, 1>}),
    KernelRegistration({.name = "complex_square", .run = run<Square, 1>}),
    KernelRegistration({.name = "complex_sqrt", .run = run<SquareRoot, 1>}),
    KernelRegistration({.name = "complex_rsqrt", .run = run<ReciprocalRoot, 1>}),
    KernelRegistration({.name = "complex_exp", .run = run<Exponential, 1>}),
    KernelRegistration({.name = "complex_log", .run = run<Logarithm, 1>}),
    KernelRegistration({.name = "complex_sin", .run = run<Sine, 1>}),
    KernelRegistration({.name = "complex_cos", .run = run<Cosine, 1>}),
    KernelRegistration({.name = "complex_tan", .run = run<Tangent, 1>}),
    KernelRegistration({.name = "complex_sinh", .run = run<HyperbolicSine, 1>}),
    KernelRegistration({.name = "complex_cosh", .run = run<HyperbolicCosine, 1>}),
    KernelRegistration({.name = "complex_tanh", .run = run<HyperbolicTangent, 1>}),
    KernelRegistration({.name = "complex_sigmoid", .run = run<Logistic, 1>}),
    KernelRegistration({.name = "complex_add_unscaled", .run = run<Sum, 2>}),
    KernelRegistration({.name = "complex_sub_unscaled", .run = run<Difference, 2>}),
    KernelRegistration({.name = "complex_rsub_unscaled", .run = run<Reversed, 2>}),
    KernelRegistration({.name = "complex_mul", .run = run<Product, 2>}),
    KernelRegistration({.name = "complex_div", .run = run<Quotient, 2>}),
    KernelRegistration({.name = "complex_pow", .run = run<Power, 2>}),
    KernelRegistration({.name = "complex_eq", .run = run<Equal, 2>}),
    KernelRegistration({.name = "complex_ne", .run = run<NotEqual, 2>}),
    KernelRegistration({.name = "complex_add", .run = run<ScaledSum, 3>}),
    KernelRegistration({.name = "complex_sub", .run = run<ScaledDifference, 3>}),
    KernelRegistration({.name = "complex_rsub", .run = run<ReverseDifference, 3>}),
    KernelRegistration({.name = "complex_of_parts", .run = run_make<false>}),
    KernelRegistration({.name = "complex_of_angle", .run = run_make<true>}),
};

}  // namespace
}  // namespace neuron::kernels
