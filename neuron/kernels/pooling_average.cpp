// Kernels "average_pool" and "average_pool_backward", over the last two or three dimensions of contiguous tensors.
// Volumes are independent; sums in a volume are in row-major order, narrow floats in float32.
//
// attributes: see PoolAttributes; behind the padding, whether padding counts, and the divisor or 0.
#include <algorithm>

#include "neuron/kernels/avx2.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/plane_sums.h"
#include "neuron/kernels/pooling.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

struct AverageWindows {
  PoolAttributes attributes;
  Volume in, out;

  Window window(int d, int64_t position) const {
    const PoolAttributes& a = attributes;
    if (a.adaptive()) return adaptive_window(position, in.extents[d], out.extents[d]);
    const int64_t begin = position * a.stride(d) - a.padding(d);
    const int64_t end = std::min(begin + a.kernel(d), in.extents[d] + a.padding(d));
    return {std::max<int64_t>(0, begin), std::min(end, in.extents[d]), end - begin};
  }
  int64_t divisor(const Window& z, const Window& y, const Window& x) const {
    if (attributes.adaptive()) return z.nominal * y.nominal * x.nominal;
    const int64_t given = attributes.values[11];
    if (given != 0) return given;
    const bool padding_counts = attributes.values[10] != 0;
    auto length = [&](const Window& w) { return padding_counts ? w.nominal : w.end - w.begin; };
    return length(z) * length(y) * length(x);
  }
};

// The taps of a window along a row that lie inside it, for all windows of the row: body(tap's first window, end,
// position of the first one's element). Taps come in the order of positions, or against it.
template <typename Body>
void for_each_tap(const AverageWindows& windows, bool backwards, const Body& body) {
  const int64_t size = windows.attributes.kernel(2), stride = windows.attributes.stride(2);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t tap = backwards ? size - 1 - i : i, shift = tap - windows.attributes.padding(2);
    const int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    const int64_t end = std::min(windows.out.width(), (windows.in.width() - shift + stride - 1) / stride);
    if (begin < end) body(begin, end, begin * stride + shift);
  }
}

template <typename C, int64_t kStride>
NEURON_AVX2 void add_strided(const C* __restrict row, int64_t stride, C* __restrict sums, int64_t count) {
  const int64_t step = kStride != 0 ? kStride : stride;
  for (int64_t j = 0; j < count; ++j) sums[j] += row[j * step];
}

// The divisors of a row of windows.
template <typename C>
void set_divisors(const AverageWindows& windows, const Window& z, const Window& y, C* divisors) {
  for (int64_t j = 0; j < windows.out.width(); ++j) {
    const Window x = windows.window(2, j);
    divisors[j] = static_cast<C>(windows.divisor(z, y, x));
    // An empty sum stays zero.
    if (z.begin >= z.end || y.begin >= y.end || x.begin >= x.end) divisors[j] = C(1);
  }
}

// Adds one row of a volume to the sums of a row of windows.
template <typename C>
void add_row(const AverageWindows& windows, const C* row, C* sums) {
  if (windows.attributes.adaptive()) {
    for (int64_t j = 0; j < windows.out.width(); ++j) {
      const Window x = windows.window(2, j);
      for (int64_t c = x.begin; c < x.end; ++c) sums[j] += row[c];
    }
    return;
  }
  const int64_t stride = windows.attributes.stride(2);
  for_each_tap(windows, false, [&](int64_t begin, int64_t end, int64_t x) {
    if (stride == 1) {
      add_strided<C, 1>(row + x, 1, sums + begin, end - begin);
    } else if (stride == 2) {
      add_strided<C, 2>(row + x, 2, sums + begin, end - begin);
    } else {
      add_strided<C, 0>(row + x, stride, sums + begin, end - begin);
    }
  });
}

// Adds the shares of a row of windows to one row of a volume.
template <typename C>
void give_row(const AverageWindows& windows, const C* shares, C* row) {
  if (windows.attributes.adaptive()) {
    for (int64_t j = 0; j < windows.out.width(); ++j) {
      const Window x = windows.window(2, j);
      for (int64_t c = x.begin; c < x.end; ++c) row[c] += shares[j];
    }
    return;
  }
  // Of two windows the left one reaches a position with its later tap.
  const int64_t stride = windows.attributes.stride(2);
  for_each_tap(windows, true, [&](int64_t begin, int64_t end, int64_t x) {
    for (int64_t j = begin; j < end; ++j) row[x + (j - begin) * stride] += shares[j];
  });
}

// outputs: result; inputs: input.
void run_average_pool(const Call& call) {
  const TensorView &out = call.outputs[0], &in = call.inputs[0];
  const PoolAttributes attributes{call.attributes};
  const AverageWindows windows{attributes, Volume(in, attributes.rank()), Volume(out, attributes.rank())};
  dispatch_float(in.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    for_each_volume(in, windows.in, windows.in.size(), call.threads, [&](int64_t index) {
      static thread_local Scratch wide_memory, sums_memory;
      const auto* from = in.as<typename E::Storage>() + index * windows.in.size();
      auto* to = out.as<typename E::Storage>() + index * windows.out.size();
      const C* source;
      if constexpr (kIsNarrow<E>) {
        C* wide = wide_memory.get<C>(windows.in.size());
        widen_line<E>(from, wide, windows.in.size());
        source = wide;
      } else {
        source = from;
      }
      const int64_t width = windows.out.width();
      C *sums = sums_memory.get<C>(2 * width), *divisors = sums + width;
      for (int64_t line = 0; line < windows.out.lines(); ++line) {
        const Window z = windows.window(0, line / windows.out.height()),
                     y = windows.window(1, line % windows.out.height());
        std::fill(sums, sums + width, C(0));
        for (int64_t plane = z.begin; plane < z.end; ++plane) {
          for (int64_t r = y.begin; r < y.end; ++r)
            add_row(windows, source + (plane * windows.in.height() + r) * windows.in.width(), sums);
        }
        set_divisors(windows, z, y, divisors);
        for (int64_t j = 0; j < width; ++j) sums[j] /= divisors[j];
        narrow_line<E>(sums, to + line * width, width);
      }
    });
  });
}

// outputs: gradient of the input; inputs: gradient. A position receives from its windows in row-major order.
void run_average_pool_backward(const Call& call) {
  const TensorView &result = call.outputs[0], &gradient = call.inputs[0];
  const PoolAttributes attributes{call.attributes};
  const AverageWindows windows{attributes, Volume(result, attributes.rank()), Volume(gradient, attributes.rank())};
  dispatch_float(result.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    for_each_volume(result, windows.in, windows.in.size(), call.threads, [&](int64_t index) {
      static thread_local Scratch memory;
      PlaneSums<E> sums(result.as<typename E::Storage>() + index * windows.in.size(), windows.in.size());
      const auto* from = gradient.as<typename E::Storage>() + index * windows.out.size();
      const int64_t width = windows.out.width();
      C *shares = memory.get<C>(2 * width), *divisors = shares + width;
      for (int64_t line = 0; line < windows.out.lines(); ++line) {
        const Window z = windows.window(0, line / windows.out.height()),
                     y = windows.window(1, line % windows.out.height());
        widen_line<E>(from + line * width, shares, width);
        set_divisors(windows, z, y, divisors);
        for (int64_t j = 0; j < width; ++j) shares[j] /= divisors[j];
        for (int64_t plane = z.begin; plane < z.end; ++plane) {
          for (int64_t r = y.begin; r < y.end; ++r)
            give_row(windows, shares, sums.data() + (plane * windows.in.height() + r) * windows.in.width());
        }
      }
      sums.finish();
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "average_pool", .run = run_average_pool}),
    KernelRegistration({.name = "average_pool_backward", .run = run_average_pool_backward}),
};

}  // namespace
}  // namespace neuron::kernels
