// Kernels "triangle_indices" and "logspace": values that follow from the position.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

// outputs: [2, count], the rows and columns of the elements of a triangle in row-major order; attributes: rows,
// columns, offset, upper.
void run_triangle(const Call& call) {
  const TensorView& out = call.outputs[0];
  const int64_t rows = call.attributes[0], columns = call.attributes[1], offset = call.attributes[2];
  const bool upper = call.attributes[3] != 0;
  dispatch_index(out.dtype, [&](auto type) {
    using I = decltype(type);
    I* to = out.as<I>();
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t diagonal = std::clamp<int64_t>(row + offset + (upper ? 0 : 1), 0, columns);
      const int64_t begin = upper ? diagonal : 0, end = upper ? columns : diagonal;
      for (int64_t column = begin; column < end; ++column, to += out.strides[1]) {
        to[0] = static_cast<I>(row);
        to[out.strides[0]] = static_cast<I>(column);
      }
    }
  });
}

// outputs: one dimension; scalars: start, end, base. base to the power of count evenly spaced exponents, counted from
// the nearer end, in double; start and end are rounded to the dtype first.
void run_logspace(const Call& call) {
  const TensorView& out = call.outputs[0];
  const double base = call.scalars[2].as_double();
  const int64_t count = out.sizes[0], halfway = count / 2;
  dispatch_real(out.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    auto edge = [&](const Scalar& number) {
      if constexpr (std::is_integral_v<C>) {
        return static_cast<double>(static_cast<C>(number.as_int()));
      } else {
        return static_cast<double>(E::load(E::store(static_cast<C>(number.as_double()))));
      }
    };
    const double start = edge(call.scalars[0]), end = edge(call.scalars[1]);
    const double step = (end - start) / static_cast<double>(count - 1);
    auto* to = out.as<char>();
    const int64_t stride = out.strides[0] * static_cast<int64_t>(dtype_size(out.dtype));
    parallel_for(call.threads, count, 2048, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const double exponent =
            i < halfway ? start + step * static_cast<double>(i) : end - step * static_cast<double>(count - 1 - i);
        store_from_double(out.dtype, std::pow(base, exponent), to + i * stride);
      }
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "triangle_indices", .run = run_triangle}),
    KernelRegistration({.name = "logspace", .run = run_logspace}),
};

}  // namespace
}  // namespace neuron::kernels
