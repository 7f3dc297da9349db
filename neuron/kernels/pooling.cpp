// Kernels "max_pool", "max_pool_backward", "average_pool" and "average_pool_backward" (also adaptive: no attributes),
// over the last two dimensions of contiguous tensors. Planes are independent; sums in a plane are in row-major order,
// narrow floats in float32.
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/scratch.h"

// Every processor that the embedded device runs on has it (neuron/runtime/device.cpp).
#define NEURON_AVX2 __attribute__((target("avx2")))

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

// One window, whether or not it reaches over the edge.
template <typename C>
void max_pool_window(const MaximumWindows& windows, const C* plane, const Plane& in, int64_t i, int64_t j, C* maxima,
                     int32_t* places) {
  const int64_t y_first = windows.first(i, 0), y_end = windows.end(i, 0, in.height);
  const int64_t x_first = windows.first(j, 1), x_end = windows.end(j, 1, in.width);
  int64_t best = y_first * in.width + x_first;
  C maximum = plane[best];
  for (int64_t y = y_first; y < y_end; y += windows.a[6]) {
    for (int64_t x = x_first; x < x_end; x += windows.a[7]) {
      const C value = plane[y * in.width + x];
      const bool larger = (value > maximum) | (value != value);
      maximum = larger ? value : maximum;
      best = larger ? y * in.width + x : best;
    }
  }
  maxima[j] = maximum;
  places[j] = static_cast<int32_t>(best);
}

// Elements from[0], from[stride] … from[7 * stride], stride 1 or 2, without a read behind `end`.
NEURON_AVX2 inline __m256 load_eight(const float* from, int64_t stride, const float* end) {
  if (stride == 1) return _mm256_loadu_ps(from);
  const bool last = from + 16 > end;
  const float* start = last ? from - 1 : from;
  const __m256 low = _mm256_loadu_ps(start), high = _mm256_loadu_ps(start + 8);
  const __m256 picked = last ? _mm256_shuffle_ps(low, high, 0xdd) : _mm256_shuffle_ps(low, high, 0x88);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(picked), 0xd8));
}

// Eight whole windows from window j on: all their taps at once, in registers.
NEURON_AVX2 void max_pool_eight(const MaximumWindows& windows, const float* plane, const Plane& in, int64_t i,
                                int64_t j, float* maxima, int32_t* places) {
  const int64_t stride = windows.a[3];
  const int64_t y_first = windows.first(i, 0), y_end = windows.end(i, 0, in.height);
  const int64_t start = j * stride - windows.a[5];
  const float* end = plane + in.size();
  const __m256i steps =
      _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(static_cast<int32_t>(stride)));
  __m256 maximum = load_eight(plane + y_first * in.width + start, stride, end);
  __m256i place = _mm256_add_epi32(steps, _mm256_set1_epi32(static_cast<int32_t>(y_first * in.width + start)));
  for (int64_t y = y_first; y < y_end; y += windows.a[6]) {
    for (int64_t tap = 0; tap < windows.a[1]; ++tap) {
      const int64_t offset = y * in.width + start + tap * windows.a[7];
      const __m256 value = load_eight(plane + offset, stride, end);
      const __m256 larger =
          _mm256_or_ps(_mm256_cmp_ps(value, maximum, _CMP_GT_OQ), _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
      const __m256i here = _mm256_add_epi32(steps, _mm256_set1_epi32(static_cast<int32_t>(offset)));
      maximum = _mm256_blendv_ps(maximum, value, larger);
      place = _mm256_blendv_epi8(place, here, _mm256_castps_si256(larger));
    }
  }
  _mm256_storeu_ps(maxima + j, maximum);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(places + j), place);
}

// Maxima of one row of windows of a plane.
template <typename C>
void max_pool_row(const MaximumWindows& windows, const C* plane, const Plane& in, int64_t i, int64_t width, C* maxima,
                  int32_t* places) {
  if constexpr (std::is_same_v<C, float>) {
    const int64_t stride = windows.a[3], reach = (windows.a[1] - 1) * windows.a[7];
    // Windows that lie inside the row as a whole.
    const int64_t begin = (windows.a[5] + stride - 1) / stride;
    const int64_t inside = in.width - 1 - reach + windows.a[5];
    const int64_t end = inside < 0 ? 0 : std::min(width, inside / stride + 1);
    if (stride <= 2 && end - begin >= 8 && in.size() >= 16) {
      for (int64_t j = 0; j < begin; ++j) max_pool_window(windows, plane, in, i, j, maxima, places);
      // The last eight may overlap the ones before.
      for (int64_t j = begin; j < end; j += 8)
        max_pool_eight(windows, plane, in, i, std::min(j, end - 8), maxima, places);
      for (int64_t j = end; j < width; ++j) max_pool_window(windows, plane, in, i, j, maxima, places);
      return;
    }
  }
  max_pool_by_taps(windows, plane, in, i, width, maxima, places);
}

// outputs: values, indices (int64, position in the plane); inputs: input. The first of equal maxima; the last NaN wins.
void run_max_pool(const Call& call) {
  const TensorView &values = call.outputs[0], &in = call.inputs[0];
  Plane out_plane(values), in_plane(in);
  MaximumWindows windows{call.attributes};
  if (in_plane.size() > std::numeric_limits<int32_t>::max())
    fail(ErrorKind::Runtime, "max_pool: a plane of {} elements, at most 2^31 - 1 are allowed", in_plane.size());
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
      C* maxima = maxima_memory.get<C>(out_plane.width);
      auto* places = places_memory.get<int32_t>(out_plane.width);
      for (int64_t i = 0; i < out_plane.height; ++i) {
        max_pool_row(windows, source, in_plane, i, out_plane.width, maxima, places);
        const int64_t start = plane * out_plane.size() + i * out_plane.width;
        narrow_line<E>(maxima, values.as<typename E::Storage>() + start, out_plane.width);
        std::copy(places, places + out_plane.width, call.outputs[1].as<int64_t>() + start);
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
