// Kernels "max_pool", "max_pool_backward", "average_pool" and "average_pool_backward" (also adaptive: no attributes),
// over the last two dimensions of contiguous tensors. Planes are independent; sums in a plane are in row-major order,
// narrow floats in float32.
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/avx2.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

struct Plane {
  int64_t height, width;
  explicit Plane(const TensorView& view) : height(view.sizes[view.rank() - 2]), width(view.sizes[view.rank() - 1]) {}
  int64_t size() const { return height * width; }
};

// body(plane index) for every plane, in parallel.
template <typename Body>
void for_each_plane(const TensorView& view, int64_t work, int threads, const Body& body) {
  int64_t size = std::max<int64_t>(1, Plane(view).size());
  parallel_for(threads, view.numel() / size, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t plane = begin; plane < end; ++plane) body(plane);
               });
}

// Sums of a plane that start from zero: in the plane itself, or in float32 beside a narrow one.
template <typename E>
class PlaneSums {
 public:
  using S = typename E::Storage;
  using C = typename E::Compute;
  PlaneSums(S* plane, int64_t size) : plane_(plane), size_(size) {
    static thread_local Scratch memory;
    if constexpr (kIsNarrow<E>) {
      sums_ = memory.get<C>(size);
    } else {
      sums_ = plane;
    }
    std::fill(sums_, sums_ + size, C(0));
  }
  C* data() { return sums_; }
  void finish() {
    if constexpr (kIsNarrow<E>) narrow_line<E>(sums_, plane_, size_);
  }

 private:
  S* plane_;
  C* sums_;
  int64_t size_;
};

// A window along one dimension: [begin, end) inside the input and its nominal length, padding included.
struct Window {
  int64_t begin, end, nominal;
};

// attributes: kernel, stride, padding, dilation (height and width of each).
struct MaximumWindows {
  std::span<const int64_t> a;
  int64_t first(int64_t position, int d) const {
    int64_t start = position * a[2 + d] - a[4 + d], dilation = a[6 + d];
    return start < 0 ? start + (-start + dilation - 1) / dilation * dilation : start;
  }
  int64_t end(int64_t position, int d, int64_t extent) const {
    return std::min(position * a[2 + d] - a[4 + d] + (a[d] - 1) * a[6 + d] + 1, extent);
  }
};

// A row of outputs looks at one tap of its windows at a time: the taps of neighbouring windows lie `kStride` apart, so
// that the comparison of many windows is vector code. kStride 0: any stride.
template <typename C, int64_t kStride>
NEURON_AVX2 void take_larger(const C* __restrict row, int64_t stride, int32_t place, C* __restrict maxima,
                             int32_t* __restrict places, int64_t count) {
  const int64_t step = kStride != 0 ? kStride : stride;
  for (int64_t j = 0; j < count; ++j) {
    const C value = row[j * step];
    const bool larger = (value > maxima[j]) | (value != value);
    maxima[j] = larger ? value : maxima[j];
    places[j] = larger ? place + static_cast<int32_t>(j * step) : places[j];
  }
}

// Maxima of a row of windows of a plane, by taps. `maxima` and `places` have a value per window.
template <typename C>
void max_pool_by_taps(const MaximumWindows& windows, const C* plane, const Plane& in, int64_t i, int64_t width,
                      C* maxima, int32_t* places) {
  const int64_t stride = windows.a[3], dilation = windows.a[7];
  const int64_t y_first = windows.first(i, 0), y_end = windows.end(i, 0, in.height);
  for (int64_t j = 0; j < width; ++j) {
    places[j] = static_cast<int32_t>(y_first * in.width + windows.first(j, 1));
    maxima[j] = plane[places[j]];
  }
  for (int64_t y = y_first; y < y_end; y += windows.a[6]) {
    for (int64_t tap = 0; tap < windows.a[1]; ++tap) {
      // The windows whose tap lies inside the row: 0 <= j * stride + shift < width.
      const int64_t shift = tap * dilation - windows.a[5];
      const int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
      const int64_t end = std::min(width, (in.width - shift + stride - 1) / stride);
      if (begin >= end) continue;
      const int64_t x = begin * stride + shift;
      const C* row = plane + y * in.width + x;
      const auto place = static_cast<int32_t>(y * in.width + x);
      if (stride == 1) {
        take_larger<C, 1>(row, 1, place, maxima + begin, places + begin, end - begin);
      } else if (stride == 2) {
        take_larger<C, 2>(row, 2, place, maxima + begin, places + begin, end - begin);
      } else {
        take_larger<C, 0>(row, stride, place, maxima + begin, places + begin, end - begin);
      }
    }
  }
}

// One window, whether or not it reaches over the edge; returns the place of its maximum.
template <typename C>
int64_t max_pool_window(const MaximumWindows& windows, const C* plane, const Plane& in, int64_t i, int64_t j,
                        C& maximum) {
  const int64_t y_first = windows.first(i, 0), y_end = windows.end(i, 0, in.height);
  const int64_t x_first = windows.first(j, 1), x_end = windows.end(j, 1, in.width);
  int64_t best = y_first * in.width + x_first;
  maximum = plane[best];
  for (int64_t y = y_first; y < y_end; y += windows.a[6]) {
    for (int64_t x = x_first; x < x_end; x += windows.a[7]) {
      const C value = plane[y * in.width + x];
      const bool larger = (value > maximum) | (value != value);
      maximum = larger ? value : maximum;
      best = larger ? y * in.width + x : best;
    }
  }
  return best;
}

// Lanes of every second element: in registers they stand in an order of their own until the end.
template <int kStride>
struct EightWindows {
  // Elements from[0], from[kStride] … from[7 * kStride], without a read behind `end`.
  NEURON_AVX2 static __m256 load(const float* from, const float* end) {
    if constexpr (kStride == 1) {
      return _mm256_loadu_ps(from);
    } else if (from + 16 > end) {
      return _mm256_shuffle_ps(_mm256_loadu_ps(from - 1), _mm256_loadu_ps(from + 7), 0xdd);
    } else {
      return _mm256_shuffle_ps(_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8), 0x88);
    }
  }
  NEURON_AVX2 static __m256i steps() {
    return kStride == 1 ? _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7) : _mm256_setr_epi32(0, 2, 8, 10, 4, 6, 12, 14);
  }
  NEURON_AVX2 static __m256i in_order(__m256i lanes) {
    return kStride == 1 ? lanes : _mm256_permute4x64_epi64(lanes, 0xd8);
  }
};

// Eight whole windows: all their taps at once, in registers. `start` is the place of the first tap of the first window;
// the taps are `rows` lines of the plane, each a[6] apart.
template <int kStride>
NEURON_AVX2 void max_pool_eight(std::span<const int64_t> a, const float* plane, const Plane& in, int64_t start,
                                int64_t rows, float* maxima, int64_t* places) {
  using Eight = EightWindows<kStride>;
  const float* end = plane + in.size();
  const __m256i steps = Eight::steps();
  __m256 maximum = Eight::load(plane + start, end);
  __m256i place = _mm256_add_epi32(steps, _mm256_set1_epi32(static_cast<int32_t>(start)));
  for (int64_t y = 0; y < rows; ++y) {
    const int64_t line = start + y * a[6] * in.width;
    for (int64_t tap = y == 0 ? 1 : 0; tap < a[1]; ++tap) {
      const int64_t offset = line + tap * a[7];
      const __m256 value = Eight::load(plane + offset, end);
      const __m256 larger =
          _mm256_or_ps(_mm256_cmp_ps(value, maximum, _CMP_GT_OQ), _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
      const __m256i here = _mm256_add_epi32(steps, _mm256_set1_epi32(static_cast<int32_t>(offset)));
      maximum = _mm256_blendv_ps(maximum, value, larger);
      place = _mm256_blendv_epi8(place, here, _mm256_castps_si256(larger));
    }
  }
  place = Eight::in_order(place);
  _mm256_storeu_ps(maxima, _mm256_castsi256_ps(Eight::in_order(_mm256_castps_si256(maximum))));
  auto* to = reinterpret_cast<__m256i*>(places);
  _mm256_storeu_si256(to, _mm256_cvtepi32_epi64(_mm256_castsi256_si128(place)));
  _mm256_storeu_si256(to + 1, _mm256_cvtepi32_epi64(_mm256_extracti128_si256(place, 1)));
}

// The windows along a row that lie inside it as a whole: [begin, end).
struct WholeWindows {
  int64_t begin, end;
  WholeWindows(std::span<const int64_t> a, int64_t in_width, int64_t out_width) {
    const int64_t stride = a[3], inside = in_width - 1 - (a[1] - 1) * a[7] + a[5];
    begin = (a[5] + stride - 1) / stride;
    end = inside < 0 ? 0 : std::min(out_width, inside / stride + 1);
  }
};

// Maxima of one row of windows of a plane.
template <int kStride>
void max_pool_row(const MaximumWindows& windows, const WholeWindows& whole, const float* plane, const Plane& in,
                  int64_t i, int64_t width, float* maxima, int64_t* places) {
  const int64_t y_first = windows.first(i, 0), y_end = windows.end(i, 0, in.height);
  int64_t rows = 0;
  for (int64_t y = y_first; y < y_end; y += windows.a[6]) ++rows;
  for (int64_t j = 0; j < whole.begin; ++j) places[j] = max_pool_window(windows, plane, in, i, j, maxima[j]);
  // The last eight may overlap the ones before.
  for (int64_t next = whole.begin; next < whole.end; next += 8) {
    const int64_t j = std::min(next, whole.end - 8);
    max_pool_eight<kStride>(windows.a, plane, in, y_first * in.width + j * kStride - windows.a[5], rows, maxima + j,
                            places + j);
  }
  for (int64_t j = whole.end; j < width; ++j) places[j] = max_pool_window(windows, plane, in, i, j, maxima[j]);
}

// outputs: values, indices (int64, position in the plane); inputs: input. The first of equal maxima; the last NaN wins.
void run_max_pool(const Call& call) {
  const TensorView &values = call.outputs[0], &in = call.inputs[0];
  Plane out_plane(values), in_plane(in);
  MaximumWindows windows{call.attributes};
  if (in_plane.size() > std::numeric_limits<int32_t>::max())
    fail(ErrorKind::Runtime, "max_pool: a plane of {} elements, at most 2^31 - 1 are allowed", in_plane.size());
  const WholeWindows whole(call.attributes, in_plane.width, out_plane.width);
  const int64_t stride = call.attributes[3];
  const bool by_eights = stride <= 2 && whole.end - whole.begin >= 8 && in_plane.size() >= 16;
  dispatch_real(in.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    for_each_plane(in, in_plane.size(), call.threads, [&](int64_t plane) {
      static thread_local Scratch wide_memory, maxima_memory, places_memory;
      const auto* from = in.as<typename E::Storage>() + plane * in_plane.size();
      const C* source;
      if constexpr (kIsNarrow<E>) {
        C* wide = wide_memory.get<C>(in_plane.size());
        widen_line<E>(from, wide, in_plane.size());
        source = wide;
      } else {
        source = from;
      }
      for (int64_t i = 0; i < out_plane.height; ++i) {
        const int64_t start = plane * out_plane.size() + i * out_plane.width, width = out_plane.width;
        auto* to = values.as<typename E::Storage>() + start;
        int64_t* places = call.outputs[1].as<int64_t>() + start;
        C* maxima;
        if constexpr (kIsNarrow<E>) {
          maxima = maxima_memory.get<C>(width);
        } else {
          maxima = to;
        }
        if constexpr (std::is_same_v<C, float>) {
          if (by_eights) {
            if (stride == 1) {
              max_pool_row<1>(windows, whole, source, in_plane, i, width, maxima, places);
            } else {
              max_pool_row<2>(windows, whole, source, in_plane, i, width, maxima, places);
            }
            if constexpr (kIsNarrow<E>) narrow_line<E>(maxima, to, width);
            continue;
          }
        }
        auto* short_places = places_memory.get<int32_t>(width);
        max_pool_by_taps(windows, source, in_plane, i, width, maxima, short_places);
        std::copy(short_places, short_places + width, places);
        if constexpr (kIsNarrow<E>) narrow_line<E>(maxima, to, width);
      }
    });
  });
}

// outputs: gradient of the input; inputs: gradient, indices.
void run_max_pool_backward(const Call& call) {
  const TensorView &result = call.outputs[0], &gradient = call.inputs[0];
  Plane out_plane(gradient), in_plane(result);
  dispatch_float(result.dtype, [&](auto element) {
    using E = decltype(element);
    for_each_plane(result, in_plane.size(), call.threads, [&](int64_t plane) {
      PlaneSums<E> sums(result.as<typename E::Storage>() + plane * in_plane.size(), in_plane.size());
      const auto* from = gradient.as<typename E::Storage>() + plane * out_plane.size();
      const int64_t* places = call.inputs[1].as<int64_t>() + plane * out_plane.size();
      for (int64_t i = 0; i < out_plane.size(); ++i) sums.data()[places[i]] += E::load(from[i]);
      sums.finish();
    });
  });
}

// attributes of average pooling: kernel, stride, padding (height and width of each), whether padding counts, divisor or
// 0.
Window average_window(std::span<const int64_t> a, int d, int64_t position, int64_t extent) {
  int64_t begin = position * a[2 + d] - a[4 + d], end = std::min(begin + a[d], extent + a[4 + d]);
  return {std::max<int64_t>(0, begin), std::min(end, extent), end - begin};
}

int64_t average_divisor(std::span<const int64_t> a, const Window& y, const Window& x) {
  if (a[7] != 0) return a[7];
  return a[6] != 0 ? y.nominal * x.nominal : (y.end - y.begin) * (x.end - x.begin);
}

// Adaptive pooling: windows from floor(i * in / out) to ceil((i + 1) * in / out).
Window adaptive_window(int64_t position, int64_t in, int64_t out) {
  int64_t begin = position * in / out, end = ((position + 1) * in + out - 1) / out;
  return {begin, end, end - begin};
}

struct AverageWindows {
  std::span<const int64_t> attributes;  // empty: adaptive
  Plane in, out;
  Window rows(int64_t i) const {
    return attributes.empty() ? adaptive_window(i, in.height, out.height) : average_window(attributes, 0, i, in.height);
  }
  Window columns(int64_t j) const {
    return attributes.empty() ? adaptive_window(j, in.width, out.width) : average_window(attributes, 1, j, in.width);
  }
  int64_t divisor(const Window& y, const Window& x) const {
    return attributes.empty() ? y.nominal * x.nominal : average_divisor(attributes, y, x);
  }
};

// The taps of an average window along a row that lie inside it, for all windows of the row: body(tap's first window,
// end, position of the first one's element). Taps come in the order of positions, or against it.
template <typename Body>
void for_each_tap(std::span<const int64_t> a, int64_t in_width, int64_t out_width, bool backwards, const Body& body) {
  const int64_t size = a[1], stride = a[3];
  for (int64_t i = 0; i < size; ++i) {
    const int64_t tap = backwards ? size - 1 - i : i, shift = tap - a[5];
    const int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    const int64_t end = std::min(out_width, (in_width - shift + stride - 1) / stride);
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
void set_divisors(const AverageWindows& windows, const Window& y, C* divisors) {
  for (int64_t j = 0; j < windows.out.width; ++j) {
    const Window x = windows.columns(j);
    divisors[j] = static_cast<C>(windows.divisor(y, x));
    if (y.begin >= y.end || x.begin >= x.end) divisors[j] = C(1);  // an empty sum stays zero
  }
}

// Sums of one row of windows, each in row-major order.
template <typename C>
void sum_windows(const AverageWindows& windows, const C* plane, const Window& y, C* sums) {
  const int64_t width = windows.in.width;
  std::fill(sums, sums + windows.out.width, C(0));
  for (int64_t r = y.begin; r < y.end; ++r) {
    const C* row = plane + r * width;
    if (windows.attributes.empty()) {
      for (int64_t j = 0; j < windows.out.width; ++j) {
        const Window x = windows.columns(j);
        for (int64_t c = x.begin; c < x.end; ++c) sums[j] += row[c];
      }
      continue;
    }
    const int64_t stride = windows.attributes[3];
    for_each_tap(windows.attributes, width, windows.out.width, false, [&](int64_t begin, int64_t end, int64_t x) {
      if (stride == 1) {
        add_strided<C, 1>(row + x, 1, sums + begin, end - begin);
      } else if (stride == 2) {
        add_strided<C, 2>(row + x, 2, sums + begin, end - begin);
      } else {
        add_strided<C, 0>(row + x, stride, sums + begin, end - begin);
      }
    });
  }
}

// outputs: result; inputs: input.
void run_average_pool(const Call& call) {
  const TensorView &out = call.outputs[0], &in = call.inputs[0];
  AverageWindows windows{call.attributes, Plane(in), Plane(out)};
  dispatch_float(in.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    for_each_plane(in, windows.in.size(), call.threads, [&](int64_t plane) {
      static thread_local Scratch wide_memory, sums_memory;
      const auto* from = in.as<typename E::Storage>() + plane * windows.in.size();
      auto* to = out.as<typename E::Storage>() + plane * windows.out.size();
      const C* source;
      if constexpr (kIsNarrow<E>) {
        C* wide = wide_memory.get<C>(windows.in.size());
        widen_line<E>(from, wide, windows.in.size());
        source = wide;
      } else {
        source = from;
      }
      const int64_t width = windows.out.width;
      C *sums = sums_memory.get<C>(2 * width), *divisors = sums + width;
      for (int64_t i = 0; i < windows.out.height; ++i) {
        const Window y = windows.rows(i);
        sum_windows(windows, source, y, sums);
        set_divisors(windows, y, divisors);
        for (int64_t j = 0; j < width; ++j) sums[j] /= divisors[j];
        narrow_line<E>(sums, to + i * width, width);
      }
    });
  });
}

// outputs: gradient of the input; inputs: gradient. A position receives from its windows in row-major order.
void run_average_pool_backward(const Call& call) {
  const TensorView &result = call.outputs[0], &gradient = call.inputs[0];
  AverageWindows windows{call.attributes, Plane(result), Plane(gradient)};
  dispatch_float(result.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    for_each_plane(result, windows.in.size(), call.threads, [&](int64_t plane) {
      static thread_local Scratch memory;
      PlaneSums<E> sums(result.as<typename E::Storage>() + plane * windows.in.size(), windows.in.size());
      const auto* from = gradient.as<typename E::Storage>() + plane * windows.out.size();
      const int64_t width = windows.out.width;
      C *shares = memory.get<C>(2 * width), *divisors = shares + width;
      for (int64_t i = 0; i < windows.out.height; ++i) {
        const Window y = windows.rows(i);
        widen_line<E>(from + i * width, shares, width);
        set_divisors(windows, y, divisors);
        for (int64_t j = 0; j < width; ++j) shares[j] /= divisors[j];
        for (int64_t r = y.begin; r < y.end; ++r) {
          C* row = sums.data() + r * windows.in.width;
          if (windows.attributes.empty()) {
            for (int64_t j = 0; j < width; ++j) {
              const Window x = windows.columns(j);
              for (int64_t c = x.begin; c < x.end; ++c) row[c] += shares[j];
            }
            continue;
          }
          // Of two windows the left one reaches a position with its later tap.
          const int64_t stride = windows.attributes[3];
          for_each_tap(windows.attributes, windows.in.width, width, true, [&](int64_t begin, int64_t end, int64_t x) {
            for (int64_t j = begin; j < end; ++j) row[x + (j - begin) * stride] += shares[j];
          });
        }
      }
      sums.finish();
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "max_pool", .run = run_max_pool}),
    KernelRegistration({.name = "max_pool_backward", .run = run_max_pool_backward}),
    KernelRegistration({.name = "average_pool", .run = run_average_pool}),
    KernelRegistration({.name = "average_pool_backward", .run = run_average_pool_backward}),
};

}  // namespace
}  // namespace neuron::kernels
