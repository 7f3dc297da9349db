// Kernels "distances", "distances_backward" and "pair_distances_backward": p-norms of the differences of rows. Sums
// over a row are taken in sixteen lanes (lane l takes elements l, l + 16, …), whose halves are then added until one is
// left.
#include <algorithm>
#include <cmath>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/avx2.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kGrain = 16384;  // elements worth a thread

enum class Norm { Zero, One, Two, Infinity, Other };

Norm norm_of(double p) {
  if (p == 0) return Norm::Zero;
  if (p == 1) return Norm::One;
  if (p == 2) return Norm::Two;
  return std::isinf(p) ? Norm::Infinity : Norm::Other;
}

template <Norm kNorm, typename T>
T term(T difference, T p) {
  const T size = std::abs(difference);
  if constexpr (kNorm == Norm::Zero) return difference != 0 ? T(1) : T(0);
  if constexpr (kNorm == Norm::Two) return size * size;
  if constexpr (kNorm == Norm::Other) return std::pow(size, p);
  return size;
}

template <Norm kNorm, typename T>
T joined(T sum, T value) {
  if constexpr (kNorm == Norm::Infinity) return value > sum || value != value ? value : sum;
  return sum + value;
}

template <Norm kNorm, typename T>
NEURON_AVX2 T distance(const T* x, const T* y, int64_t width, T p) {
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = joined<kNorm>(lanes[l], term<kNorm>(x[i + l] - y[i + l], p));
  }
  for (int64_t l = 0; i < width; ++i, ++l) lanes[l] = joined<kNorm>(lanes[l], term<kNorm>(x[i] - y[i], p));
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] = joined<kNorm>(lanes[l], lanes[l + half]);
  }
  if constexpr (kNorm == Norm::Two) return std::sqrt(lanes[0]);
  if constexpr (kNorm == Norm::Other) return std::pow(lanes[0], 1 / p);
  return lanes[0];
}

// sums += gradient of the distance of x and y by x, times `gradient`. 0 where the distance has no slope.
template <Norm kNorm, typename T>
NEURON_AVX2 void add_slope(T* __restrict sums, const T* x, const T* y, int64_t width, T p, T distance, T gradient) {
  if (kNorm == Norm::Zero || (distance == 0 && kNorm != Norm::One)) return;
  const T scale = kNorm == Norm::Two ? gradient / distance : gradient;
  for (int64_t i = 0; i < width; ++i) {
    const T difference = x[i] - y[i];
    const T sign = static_cast<T>((difference > 0) - (difference < 0));
    if constexpr (kNorm == Norm::One) sums[i] += sign * scale;
    if constexpr (kNorm == Norm::Two) sums[i] += difference * scale;
    if constexpr (kNorm == Norm::Infinity) sums[i] += std::abs(difference) == distance ? sign * scale : T(0);
    if constexpr (kNorm == Norm::Other) {
      // |d|^(p-1) / distance^(p-1), as one power of their quotient.
      if (difference != 0) sums[i] += sign * std::pow(std::abs(difference) / distance, p - 1) * scale;
    }
  }
}

// body(std::integral_constant<Norm, …>, T{}) for the norm and float32 or float64.
template <typename Body>
void with_norm(double p, DType dtype, const Body& body) {
  auto of_type = [&](auto type) {
    switch (norm_of(p)) {
      case Norm::Zero:
        return body(std::integral_constant<Norm, Norm::Zero>{}, type);
      case Norm::One:
        return body(std::integral_constant<Norm, Norm::One>{}, type);
      case Norm::Two:
        return body(std::integral_constant<Norm, Norm::Two>{}, type);
      case Norm::Infinity:
        return body(std::integral_constant<Norm, Norm::Infinity>{}, type);
      case Norm::Other:
        return body(std::integral_constant<Norm, Norm::Other>{}, type);
    }
  };
  if (dtype == DType::Float32) return of_type(float{});
  of_type(double{});
}

// All tensors are without gaps. outputs: [batch, n, m]; inputs: [batch, n, width], [batch, m, width]; scalars: p.
void run_distances(const Call& call) {
  const TensorView &out = call.outputs[0], &left = call.inputs[0], &right = call.inputs[1];
  const int64_t n = left.sizes[1], m = right.sizes[1], width = left.sizes[2];
  const double p = call.scalars[0].as_double();
  with_norm(p, out.dtype, [&](auto norm, auto type) {
    using T = decltype(type);
    parallel_for(call.threads, left.sizes[0] * n, std::max<int64_t>(1, kGrain / (m * (width + 1))),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     const T* x = left.as<T>() + row * width;
                     const T* others = right.as<T>() + row / n * m * width;
                     for (int64_t j = 0; j < m; ++j) {
                       out.as<T>()[row * m + j] =
                           distance<decltype(norm)::value>(x, others + j * width, width, static_cast<T>(p));
                     }
                   }
                 });
  });
}

// outputs: gradient of the first rows [batch, n, width]; inputs: gradient [batch, n, m] of any strides, both rows and
// distances [batch, n, m] without gaps; scalars: p. Sums over the second rows in order.
void run_distances_backward(const Call& call) {
  const TensorView &out = call.outputs[0], &gradient = call.inputs[0], &left = call.inputs[1], &right = call.inputs[2],
                   &found = call.inputs[3];
  const int64_t n = left.sizes[1], m = right.sizes[1], width = left.sizes[2];
  const double p = call.scalars[0].as_double();
  with_norm(p, out.dtype, [&](auto norm, auto type) {
    using T = decltype(type);
    parallel_for(call.threads, left.sizes[0] * n, std::max<int64_t>(1, kGrain / (m * (width + 1) + 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     T* sums = out.as<T>() + row * width;
                     std::fill(sums, sums + width, T(0));
                     const T* x = left.as<T>() + row * width;
                     const T* others = right.as<T>() + row / n * m * width;
                     const T* slopes = gradient.as<T>() + row / n * gradient.strides[0] + row % n * gradient.strides[1];
                     for (int64_t j = 0; j < m; ++j) {
                       add_slope<decltype(norm)::value>(sums, x, others + j * width, width, static_cast<T>(p),
                                                        found.as<T>()[row * m + j], slopes[j * gradient.strides[2]]);
                     }
                   }
                 });
  });
}

// Where the distance of rows i < j of n stands among those of all pairs.
int64_t pair_place(int64_t i, int64_t j, int64_t n) { return i * n - i * (i + 1) / 2 + j - i - 1; }

// outputs: [n (n - 1) / 2] distances of rows i < j in row-major order; inputs: rows [n, width] without gaps; scalars:
// p.
void run_pair_distances(const Call& call) {
  const TensorView &out = call.outputs[0], &rows = call.inputs[0];
  const int64_t n = rows.sizes[0], width = rows.sizes[1];
  const double p = call.scalars[0].as_double();
  with_norm(p, out.dtype, [&](auto norm, auto type) {
    using T = decltype(type);
    parallel_for(call.threads, n, std::max<int64_t>(1, kGrain / (n * (width + 1))), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* x = rows.as<T>() + i * width;
        for (int64_t j = i + 1; j < n; ++j) {
          out.as<T>()[pair_place(i, j, n) * out.strides[0]] =
              distance<decltype(norm)::value>(x, rows.as<T>() + j * width, width, static_cast<T>(p));
        }
      }
    });
  });
}

// outputs: gradient of the rows [n, width] without gaps; inputs: gradient and distances of pairs, rows; scalars: p.
void run_pair_distances_backward(const Call& call) {
  const TensorView &out = call.outputs[0], &gradient = call.inputs[0], &found = call.inputs[1], &rows = call.inputs[2];
  const int64_t n = rows.sizes[0], width = rows.sizes[1];
  const double p = call.scalars[0].as_double();
  with_norm(p, out.dtype, [&](auto norm, auto type) {
    using T = decltype(type);
    parallel_for(call.threads, n, std::max<int64_t>(1, kGrain / (n * (width + 1))), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* sums = out.as<T>() + i * width;
        std::fill(sums, sums + width, T(0));
        for (int64_t j = 0; j < n; ++j) {
          if (i == j) continue;
          const int64_t place = pair_place(std::min(i, j), std::max(i, j), n);
          add_slope<decltype(norm)::value>(sums, rows.as<T>() + i * width, rows.as<T>() + j * width, width,
                                           static_cast<T>(p), found.as<T>()[place * found.strides[0]],
                                           gradient.as<T>()[place * gradient.strides[0]]);
        }
      }
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "distances", .run = run_distances}),
    KernelRegistration({.name = "distances_backward", .run = run_distances_backward}),
    KernelRegistration({.name = "pair_distances", .run = run_pair_distances}),
    KernelRegistration({.name = "pair_distances_backward", .run = run_pair_distances_backward}),
};

}  // namespace
}  // namespace neuron::kernels
