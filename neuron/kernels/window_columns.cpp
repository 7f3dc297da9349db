// Kernels "im2col" and "col2im": the windows of planes as columns, and planes as the sums of such columns. Planes are
// contiguous [batch, channels, height, width], columns [batch, channels * kernel height * kernel width, windows].
//
// attributes: kernel, dilation, padding, stride (height and width of each).
#include <algorithm>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/plane_sums.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

struct Windows {
  std::span<const int64_t> a;
  int64_t height, width;  // of a plane
  int64_t rows, columns;  // of windows
  Windows(std::span<const int64_t> attributes, const TensorView& planes)
      : a(attributes),
        height(planes.sizes[planes.rank() - 2]),
        width(planes.sizes[planes.rank() - 1]),
        rows(count(0, height)),
        columns(count(1, width)) {}
  int64_t count(int d, int64_t extent) const {
    return (extent + 2 * a[4 + d] - a[2 + d] * (a[d] - 1) - 1) / a[6 + d] + 1;
  }
  int64_t plane() const { return height * width; }
  int64_t taps() const { return a[0] * a[1]; }
  int64_t windows() const { return rows * columns; }

  // Along a row: the first element that a tap of the window at position 0 reads, and the windows whose tap lies inside.
  struct Row {
    int64_t start, begin, end, step;
  };
  Row row(int64_t tap) const {
    const int64_t stride = a[7], start = tap % a[1] * a[3] - a[5];
    const int64_t begin = std::min(columns, start >= 0 ? 0 : (-start + stride - 1) / stride);
    const int64_t end = width > start ? std::min(columns, (width - start + stride - 1) / stride) : 0;
    return {start, begin, std::max(begin, end), stride};
  }
  int64_t line(int64_t tap, int64_t row) const { return row * a[6] + tap / a[1] * a[2] - a[4]; }
};

// outputs: columns; inputs: planes, of any dtype.
void run_im2col(const Call& call) {
  const TensorView &out = call.outputs[0], &in = call.inputs[0];
  const Windows w(call.attributes, in);
  dispatch_size(dtype_size(in.dtype), [&](auto element) {
    using T = decltype(element);
    parallel_for(call.threads, out.numel() / w.windows(), std::max<int64_t>(1, 16384 / w.windows()),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t work = begin; work < end; ++work) {
                     const int64_t tap = work % w.taps();
                     const T* plane = in.as<T>() + work / w.taps() * w.plane();
                     T* to = out.as<T>() + work * w.windows();
                     const Windows::Row row = w.row(tap);
                     for (int64_t i = 0; i < w.rows; ++i, to += w.columns) {
                       const int64_t line = w.line(tap, i);
                       if (line < 0 || line >= w.height) {
                         std::fill(to, to + w.columns, T{});
                         continue;
                       }
                       const T* from = plane + line * w.width + row.start;
                       std::fill(to, to + row.begin, T{});
                       if (row.step == 1) {
                         std::copy(from + row.begin, from + row.end, to + row.begin);
                       } else {
                         for (int64_t j = row.begin; j < row.end; ++j) to[j] = from[j * row.step];
                       }
                       std::fill(to + row.end, to + w.columns, T{});
                     }
                   }
                 });
  });
}

// outputs: planes; inputs: columns. An element receives tap by tap, narrow floats in float32.
template <typename E>
void add_columns(const Call& call) {
  const TensorView &out = call.outputs[0], &in = call.inputs[0];
  const Windows w(call.attributes, out);
  parallel_for(call.threads, out.numel() / w.plane(),
               std::max<int64_t>(1, 16384 / std::max<int64_t>(1, w.taps() * w.windows())),
               [&](int64_t begin, int64_t end) {
                 for (int64_t plane = begin; plane < end; ++plane) {
                   PlaneSums<E> sums(out.as<typename E::Storage>() + plane * w.plane(), w.plane());
                   const auto* from = in.as<typename E::Storage>() + plane * w.taps() * w.windows();
                   for (int64_t tap = 0; tap < w.taps(); ++tap) {
                     const Windows::Row row = w.row(tap);
                     for (int64_t i = 0; i < w.rows; ++i, from += w.columns) {
                       const int64_t line = w.line(tap, i);
                       if (line < 0 || line >= w.height) continue;
                       auto* to = sums.data() + line * w.width + row.start;
                       if (row.step == 1) {
                         for (int64_t j = row.begin; j < row.end; ++j) to[j] += E::load(from[j]);
                       } else {
                         for (int64_t j = row.begin; j < row.end; ++j) to[j * row.step] += E::load(from[j]);
                       }
                     }
                   }
                   sums.finish();
                 }
               });
}

void run_col2im(const Call& call) {
  switch (call.outputs[0].dtype) {
    case DType::Complex64:
      return add_columns<NativeElement<std::complex<float>>>(call);
    case DType::Complex128:
      return add_columns<NativeElement<std::complex<double>>>(call);
    default:
      dispatch_float(call.outputs[0].dtype, [&](auto element) { add_columns<decltype(element)>(call); });
  }
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "im2col", .run = run_im2col}),
    KernelRegistration({.name = "col2im", .run = run_col2im}),
};

}  // namespace
}  // namespace neuron::kernels
