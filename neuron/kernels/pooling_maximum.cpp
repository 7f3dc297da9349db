// Kernels "max_pool", "max_pool_backward" and "max_unpool", over the last two or three dimensions of contiguous
// tensors. Volumes are independent; of equal maxima the first one is taken, and of NaN the last.
//
// attributes: see PoolAttributes.
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "neuron/kernels/avx2.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/plane_sums.h"
#include "neuron/kernels/pooling.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

// The taps of a window along one dimension that lie inside the input.
struct Taps {
  int64_t begin, end, step;
};

struct MaximumWindows {
  PoolAttributes attributes;
  Volume in, out;

  int64_t most_taps(int d) const { return attributes.adaptive() ? in.extents[d] : attributes.kernel(d); }
  Taps taps(int d, int64_t position) const {
    const PoolAttributes& a = attributes;
    if (a.adaptive()) {
      const Window window = adaptive_window(position, in.extents[d], out.extents[d]);
      return {window.begin, window.end, 1};
    }
    const int64_t dilation = a.dilation(d), start = position * a.stride(d) - a.padding(d);
    const int64_t begin = start < 0 ? start + (-start + dilation - 1) / dilation * dilation : start;
    return {begin, std::min(start + (a.kernel(d) - 1) * dilation + 1, in.extents[d]), dilation};
  }
};

// The rows of a volume that a row of windows reads: the places of their first elements, in order.
class RowsRead {
 public:
  static int64_t most(const MaximumWindows& windows) { return windows.most_taps(0) * windows.most_taps(1); }
  // Windows at position i of the first dimension and j of the second; `memory` has room for `most`.
  RowsRead(const MaximumWindows& windows, int64_t i, int64_t j, int64_t* memory) : begin_(memory), end_(memory) {
    const Volume& in = windows.in;
    const Taps z = windows.taps(0, i), y = windows.taps(1, j);
    for (int64_t plane = z.begin; plane < z.end; plane += z.step) {
      for (int64_t row = y.begin; row < y.end; row += y.step) *end_++ = (plane * in.height() + row) * in.width();
    }
  }
  const int64_t* begin() const { return begin_; }
  const int64_t* end() const { return end_; }
  int64_t first() const { return *begin_; }

 private:
  int64_t *begin_, *end_;
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

// Maxima of a row of windows of equal size, by taps. `maxima` and `places` have a value per window.
template <typename C>
void max_pool_by_taps(const MaximumWindows& windows, const C* volume, const RowsRead& rows, C* maxima,
                      int32_t* places) {
  const PoolAttributes& a = windows.attributes;
  const int64_t stride = a.stride(2), width = windows.out.width(), in_width = windows.in.width();
  for (int64_t j = 0; j < width; ++j) {
    places[j] = static_cast<int32_t>(rows.first() + windows.taps(2, j).begin);
    maxima[j] = volume[places[j]];
  }
  for (const int64_t first : rows) {
    for (int64_t tap = 0; tap < a.kernel(2); ++tap) {
      // The windows whose tap lies inside the row: 0 <= j * stride + shift < width.
      const int64_t shift = tap * a.dilation(2) - a.padding(2);
      const int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
      const int64_t end = std::min(width, (in_width - shift + stride - 1) / stride);
      if (begin >= end) continue;
      const C* row = volume + first + begin * stride + shift;
      const auto place = static_cast<int32_t>(row - volume);
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
int64_t max_pool_window(const MaximumWindows& windows, const C* volume, const RowsRead& rows, int64_t j, C& maximum) {
  const Taps taps = windows.taps(2, j);
  int64_t best = rows.first() + taps.begin;
  maximum = volume[best];
  for (const int64_t first : rows) {
    for (int64_t x = taps.begin; x < taps.end; x += taps.step) {
      const C value = volume[first + x];
      const bool larger = (value > maximum) | (value != value);
      maximum = larger ? value : maximum;
      best = larger ? first + x : best;
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

// Eight windows that lie inside the row as a whole, of `kernel` taps, `dilation` apart: all at once, in registers.
// `start` is where in a row the first tap of the first window is; nothing is read behind `end`.
template <int kStride>
NEURON_AVX2 inline void max_pool_eight(const float* volume, const float* end, const RowsRead& rows, int64_t start,
                                       int64_t kernel, int64_t dilation, float* maxima, int64_t* places) {
  using Eight = EightWindows<kStride>;
  const __m256i steps = Eight::steps();
  const int64_t first = rows.first() + start;
  __m256 maximum = Eight::load(volume + first, end);
  __m256i place = _mm256_add_epi32(steps, _mm256_set1_epi32(static_cast<int32_t>(first)));
  for (const int64_t* row = rows.begin(); row != rows.end(); ++row) {
    for (int64_t tap = row == rows.begin() ? 1 : 0; tap < kernel; ++tap) {
      const int64_t offset = *row + start + tap * dilation;
      const __m256 value = Eight::load(volume + offset, end);
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
  int64_t begin = 0, end = 0;
  explicit WholeWindows(const MaximumWindows& windows) {
    const PoolAttributes& a = windows.attributes;
    if (a.adaptive()) return;
    const int64_t stride = a.stride(2),
                  inside = windows.in.width() - 1 - (a.kernel(2) - 1) * a.dilation(2) + a.padding(2);
    begin = (a.padding(2) + stride - 1) / stride;
    end = inside < 0 ? 0 : std::min(windows.out.width(), inside / stride + 1);
  }
  // Whether eight of them are taken at a time.
  bool by_eights(const MaximumWindows& windows) const {
    return end - begin >= 8 && windows.attributes.stride(2) <= 2 && windows.in.size() >= 16;
  }
};

// Maxima of one row of windows.
template <int kStride>
NEURON_AVX2 void max_pool_row(const MaximumWindows& windows, const WholeWindows& whole, const float* volume,
                              const RowsRead& rows, float* maxima, int64_t* places) {
  const PoolAttributes& a = windows.attributes;
  auto alone = [&](int64_t j) { places[j] = max_pool_window(windows, volume, rows, j, maxima[j]); };
  for (int64_t j = 0; j < whole.begin; ++j) alone(j);
  // The last eight may overlap the ones before.
  for (int64_t next = whole.begin; next < whole.end; next += 8) {
    const int64_t j = std::min(next, whole.end - 8);
    max_pool_eight<kStride>(volume, volume + windows.in.size(), rows, j * kStride - a.padding(2), a.kernel(2),
                            a.dilation(2), maxima + j, places + j);
  }
  for (int64_t j = whole.end; j < windows.out.width(); ++j) alone(j);
}

template <typename C>
void max_pool_line(const MaximumWindows& windows, const WholeWindows& whole, const C* volume, const RowsRead& rows,
                   C* maxima, int64_t* places) {
  const int64_t width = windows.out.width();
  if (windows.attributes.adaptive()) {
    for (int64_t j = 0; j < width; ++j) places[j] = max_pool_window(windows, volume, rows, j, maxima[j]);
    return;
  }
  if constexpr (std::is_same_v<C, float>) {
    if (whole.by_eights(windows)) {
      auto* body = windows.attributes.stride(2) == 1 ? max_pool_row<1> : max_pool_row<2>;
      return body(windows, whole, volume, rows, maxima, places);
    }
  }
  static thread_local Scratch memory;
  auto* short_places = memory.get<int32_t>(width);
  max_pool_by_taps(windows, volume, rows, maxima, short_places);
  std::copy(short_places, short_places + width, places);
}

// outputs: values, indices (int64, position in the volume); inputs: input.
void run_max_pool(const Call& call) {
  const TensorView &values = call.outputs[0], &in = call.inputs[0];
  const PoolAttributes attributes{call.attributes};
  const MaximumWindows windows{attributes, Volume(in, attributes.rank()), Volume(values, attributes.rank())};
  if (windows.in.size() > std::numeric_limits<int32_t>::max())
    fail(ErrorKind::Runtime, "max_pool: {} elements to pool over, at most 2^31 - 1 are allowed", windows.in.size());
  const WholeWindows whole(windows);
  dispatch_float(in.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    for_each_volume(in, windows.in, windows.in.size(), call.threads, [&](int64_t index) {
      static thread_local Scratch wide_memory, maxima_memory, rows_memory;
      const auto* from = in.as<typename E::Storage>() + index * windows.in.size();
      const C* source;
      if constexpr (kIsNarrow<E>) {
        C* wide = wide_memory.get<C>(windows.in.size());
        widen_line<E>(from, wide, windows.in.size());
        source = wide;
      } else {
        source = from;
      }
      const int64_t width = windows.out.width();
      auto* row_places = rows_memory.get<int64_t>(RowsRead::most(windows));
      C* maxima = kIsNarrow<E> ? maxima_memory.get<C>(width) : nullptr;
      auto* to = values.as<typename E::Storage>() + index * windows.out.size();
      int64_t* places = call.outputs[1].as<int64_t>() + index * windows.out.size();
      for (int64_t i = 0; i < windows.out.depth(); ++i) {
        for (int64_t j = 0; j < windows.out.height(); ++j, to += width, places += width) {
          const RowsRead rows(windows, i, j, row_places);
          if constexpr (kIsNarrow<E>) {
            max_pool_line(windows, whole, source, rows, maxima, places);
            narrow_line<E>(maxima, to, width);
          } else {
            max_pool_line(windows, whole, source, rows, to, places);
          }
        }
      }
    });
  });
}

// outputs: gradient of the input; inputs: gradient, indices.
void run_max_pool_backward(const Call& call) {
  const TensorView &result = call.outputs[0], &gradient = call.inputs[0];
  const PoolAttributes attributes{call.attributes};
  const Volume in(result, attributes.rank()), out(gradient, attributes.rank());
  dispatch_float(result.dtype, [&](auto element) {
    using E = decltype(element);
    for_each_volume(result, in, in.size(), call.threads, [&](int64_t index) {
      PlaneSums<E> sums(result.as<typename E::Storage>() + index * in.size(), in.size());
      const auto* from = gradient.as<typename E::Storage>() + index * out.size();
      const int64_t* places = call.inputs[1].as<int64_t>() + index * out.size();
      for (int64_t i = 0; i < out.size(); ++i) sums.data()[places[i]] += E::load(from[i]);
      sums.finish();
    });
  });
}

// outputs: volumes; inputs: values, indices (int64, position in the volume). Other positions become zero; of values for
// one position the last stays.
void run_max_unpool(const Call& call) {
  const TensorView &result = call.outputs[0], &values = call.inputs[0];
  const PoolAttributes attributes{call.attributes};
  const Volume to(result, attributes.rank()), from(values, attributes.rank());
  dispatch_size(dtype_size(result.dtype), [&](auto element) {
    using T = decltype(element);
    for_each_volume(result, to, to.size(), call.threads, [&](int64_t index) {
      T* volume = result.as<T>() + index * to.size();
      const T* source = values.as<T>() + index * from.size();
      const int64_t* places = call.inputs[1].as<int64_t>() + index * from.size();
      std::fill(volume, volume + to.size(), T{});
      for (int64_t i = 0; i < from.size(); ++i) {
        if (places[i] < 0 || places[i] >= to.size()) {
          if (attributes.rank() == 2)
            fail(ErrorKind::Runtime, "Found an invalid max index: {} (output volumes are of size {}x{})", places[i],
                 to.height(), to.width());
          fail(ErrorKind::Runtime, "Found an invalid max index: {} (output volumes are of size {}x{}x{})", places[i],
               to.depth(), to.height(), to.width());
        }
        volume[places[i]] = source[i];
      }
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "max_pool", .run = run_max_pool}),
    KernelRegistration({.name = "max_pool_backward", .run = run_max_pool_backward}),
    KernelRegistration({.name = "max_unpool", .run = run_max_unpool, .may_raise = true}),
};

}  // namespace
}  // namespace neuron::kernels
