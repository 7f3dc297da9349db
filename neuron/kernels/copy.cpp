// Kernels "copy", "fill" and "concat".
#include "neuron/kernels/copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/copy_line.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/strided.h"
#include "neuron/kernels/transpose.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kGrainBytes = 64 << 10;  // less than this is not worth a thread

int64_t row_grain(int64_t inner_bytes) { return std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, inner_bytes)); }

// Dimensions in the order of the target's strides, so that it is written as sequentially as possible.
void sort_by_target(Dims& sizes, Dims& target, Dims& source) {
  SmallVector<int, 6> order;
  for (size_t d = 0; d < sizes.size(); ++d) order.push_back(static_cast<int>(d));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return target[a] > target[b]; });
  Dims sizes_before = sizes, target_before = target, source_before = source;
  for (size_t d = 0; d < sizes.size(); ++d) {
    sizes[d] = sizes_before[order[d]];
    target[d] = target_before[order[d]];
    source[d] = source_before[order[d]];
  }
}

// At most 16 rows and columns: what whole squares of 8 leave over goes element by element.
template <typename T>
void transpose_part(T* target, int64_t target_row, const T* source, int64_t source_column, int64_t rows,
                    int64_t columns) {
  constexpr int64_t kSquare = 8;
  for (int64_t i = 0; i < rows; i += kSquare) {
    for (int64_t j = 0; j < columns; j += kSquare) {
      T* to = target + i * target_row + j;
      const T* from = source + i + j * source_column;
      if (i + kSquare <= rows && j + kSquare <= columns) {
        transpose_small_square(to, target_row, from, source_column);
        continue;
      }
      const int64_t height = std::min(rows - i, kSquare), width = std::min(columns - j, kSquare);
      for (int64_t ii = 0; ii < height; ++ii) {
        for (int64_t jj = 0; jj < width; ++jj) to[ii * target_row + jj] = from[ii + jj * source_column];
      }
    }
  }
}

// A block of rows x columns: the target runs along columns, the source along rows. Tiles of 64 x 64 stay near on both
// sides (and their pages in the translation buffer) until all their cache lines are used up.
template <typename T>
void transpose_block(T* target, int64_t target_row, const T* source, int64_t source_column, int64_t rows,
                     int64_t columns) {
  constexpr int64_t kTile = 64, kSquare = 16;
  for (int64_t tile = 0; tile < columns; tile += kTile) {
    const int64_t tile_end = std::min(columns, tile + kTile);
    for (int64_t j = tile; j < tile_end; j += kSquare) {
      const int64_t j_end = std::min(tile_end, j + kSquare);
      for (int64_t i = 0; i < rows; i += kSquare) {
        const int64_t i_end = std::min(rows, i + kSquare);
        T* to = target + i * target_row + j;
        const T* from = source + i + j * source_column;
        if (i_end - i == kSquare && j_end - j == kSquare) {
          transpose_square(to, target_row, from, source_column);
        } else {
          transpose_part(to, target_row, from, source_column, i_end - i, j_end - j);
        }
      }
    }
  }
}

template <typename T>
void copy_elements(const TensorView& to, const TensorView& from, int threads) {
  Dims sizes = to.sizes, target = to.strides, source = from.strides;
  sort_by_target(sizes, target, source);
  // The dimension the source runs along, when it is not the target's innermost: transpose in the plane of the two.
  int innermost = -1, along = -1;
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) {
    if (sizes[d] == 1) continue;
    if (innermost < 0) innermost = d;
    if (source[d] == 1 && along < 0) along = d;
  }
  T* out = to.as<T>();
  const T* in = from.as<T>();
  if (innermost >= 0 && along >= 0 && along != innermost && target[innermost] == 1 && source[innermost] != 0 &&
      sizes[innermost] >= 2 && sizes[along] >= 2) {
    int64_t rows = sizes[along], columns = sizes[innermost], target_row = target[along],
            source_column = source[innermost];
    sizes[along] = sizes[innermost] = 1;
    StridedLoop<2> planes(sizes, {&target, &source});
    constexpr int64_t kStrip = 64;  // rows of one task
    int64_t strips = (rows + kStrip - 1) / kStrip;
    Dims plane_sizes = sizes;
    int64_t count = planes.rows() * planes.inner_size();
    int64_t grain = row_grain(std::min(rows, kStrip) * columns * static_cast<int64_t>(sizeof(T)));
    parallel_for(threads, count * strips, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        int64_t plane = task / strips, strip = task % strips * kStrip;
        int64_t row = plane / planes.inner_size(), inner = plane % planes.inner_size();
        planes.for_rows(row, row + 1, [&](const auto& offsets) {
          int64_t to_offset = offsets[0] + inner * planes.inner_strides()[0];
          int64_t from_offset = offsets[1] + inner * planes.inner_strides()[1];
          transpose_block(out + to_offset + strip * target_row, target_row, in + from_offset + strip, source_column,
                          std::min(kStrip, rows - strip), columns);
        });
      }
    });
    return;
  }
  StridedLoop<2> loop(sizes, {&target, &source});
  int64_t size = loop.inner_size(), to_stride = loop.inner_strides()[0], from_stride = loop.inner_strides()[1];
  if (loop.rows() == 1 && to_stride == 1 && from_stride == 0) {
    const T value = *in;
    parallel_for(threads, size, std::max<int64_t>(1, kGrainBytes / static_cast<int64_t>(sizeof(T))),
                 [&](int64_t begin, int64_t end) { std::fill(out + begin, out + end, value); });
    return;
  }
  if (loop.rows() == 1 && loop.contiguous()) {
    parallel_for(threads, size, std::max<int64_t>(1, kGrainBytes / static_cast<int64_t>(sizeof(T))),
                 [&](int64_t begin, int64_t end) { std::memcpy(out + begin, in + begin, (end - begin) * sizeof(T)); });
    return;
  }
  parallel_for(
      threads, loop.rows(), row_grain(size * static_cast<int64_t>(sizeof(T))), [&](int64_t begin, int64_t end) {
        if (loop.contiguous() && loop.run_length() >= 4) {
          constexpr int64_t bytes = sizeof(T);
          const auto steps = loop.row_strides();
          loop.for_runs(begin, end, [&](const auto& offsets, int64_t count) {
            copy_lines(out + offsets[0], steps[0] * bytes, in + offsets[1], steps[1] * bytes, size * bytes, count);
          });
          return;
        }
        loop.for_rows(begin, end, [&](const auto& offsets) {
          T* x = out + offsets[0];
          const T* y = in + offsets[1];
          if (loop.contiguous()) {
            copy_line(x, y, size * static_cast<int64_t>(sizeof(T)));
          } else if (to_stride == 1 && from_stride == 0) {
            std::fill(x, x + size, *y);
          } else {
            for (int64_t j = 0; j < size; ++j) x[j * to_stride] = y[j * from_stride];
          }
        });
      });
}

void convert_elements(const TensorView& to, const TensorView& from, int threads) {
  StridedLoop<2> loop(to.sizes, {&to.strides, &from.strides});
  size_t to_size = dtype_size(to.dtype), from_size = dtype_size(from.dtype);
  bool integers = !is_float(from.dtype) && !is_complex(from.dtype);
  parallel_for(threads, loop.rows(), row_grain(loop.inner_size() * 16), [&](int64_t begin, int64_t end) {
    loop.for_rows(begin, end, [&](auto offsets) {
      for (int64_t j = 0; j < loop.inner_size(); ++j) {
        char* x = to.as<char>() + offsets[0] * static_cast<int64_t>(to_size);
        const char* y = from.as<char>() + offsets[1] * static_cast<int64_t>(from_size);
        if (is_complex(to.dtype) && is_complex(from.dtype)) {
          DType to_half = to_size == 16 ? DType::Float64 : DType::Float32;
          DType from_half = from_size == 16 ? DType::Float64 : DType::Float32;
          store_from_double(to_half, load_as_double(from_half, y), x);
          store_from_double(to_half, load_as_double(from_half, y + from_size / 2), x + to_size / 2);
        } else if (integers) {
          store_from_int(to.dtype, load_as_int(from.dtype, y), x);
        } else if (is_integer(to.dtype)) {
          store_from_int(to.dtype, load_as_int(from.dtype, y), x);
        } else {
          store_from_double(to.dtype, load_as_double(from.dtype, y), x);
        }
        offsets[0] += loop.inner_strides()[0];
        offsets[1] += loop.inner_strides()[1];
      }
    });
  });
}

// outputs: target; inputs: source of the same sizes.
void run_copy(const Call& call) { copy_tensor(call.outputs[0], call.inputs[0], call.threads); }

// outputs: target; scalars: value.
void run_fill(const Call& call) {
  const TensorView& target = call.outputs[0];
  alignas(16) char value[16];
  if (call.scalars[0].dtype == DType::Int64) {
    store_from_int(target.dtype, call.scalars[0].as_int(), value);
  } else {
    store_from_double(target.dtype, call.scalars[0].as_double(), value);
  }
  TensorView source = target;
  source.data = value;
  for (int64_t& stride : source.strides) stride = 0;
  copy_tensor(target, source, call.threads);
}

// Where nobody has gaps: the target's lines in order, each from a line of every source. False elsewhere, and for long
// lines, which are copied one after the other, each by all threads.
bool concat_lines(const Call& call, int64_t dimension) {
  const TensorView& target = call.outputs[0];
  bool plain = target.is_contiguous();
  for (const TensorView& source : call.inputs)
    plain = plain && source.is_contiguous() && source.dtype == target.dtype && source.rank() == target.rank();
  if (!plain) return false;
  int64_t lines = 1, inner = static_cast<int64_t>(dtype_size(target.dtype));
  for (int d = 0; d < dimension; ++d) lines *= target.sizes[d];
  for (int d = static_cast<int>(dimension) + 1; d < target.rank(); ++d) inner *= target.sizes[d];
  const int64_t length = target.sizes[dimension] * inner;
  if (length == 0 || length > kLongestLine) return false;
  parallel_for(call.threads, lines, row_grain(length), [&](int64_t begin, int64_t end) {
    char* to = target.as<char>() + begin * length;
    for (int64_t line = begin; line < end; ++line) {
      for (const TensorView& source : call.inputs) {
        const int64_t bytes = source.sizes[dimension] * inner;
        copy_line(to, source.as<char>() + line * bytes, bytes);
        to += bytes;
      }
    }
  });
  return true;
}

// outputs: target; inputs: any number of tensors, equal to the target but for their size along the dimension.
// attributes: dimension.
void run_concat(const Call& call) {
  int64_t dimension = call.attributes[0], start = 0;
  if (concat_lines(call, dimension)) return;
  for (const TensorView& source : call.inputs) {
    TensorView target = call.outputs[0];
    size_t bytes = dtype_size(target.dtype);
    target.data = target.as<char>() + start * target.strides[dimension] * static_cast<int64_t>(bytes);
    target.sizes = source.sizes;
    copy_tensor(target, source, call.threads);
    start += source.sizes[dimension];
  }
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "copy", .run = run_copy}),
    KernelRegistration({.name = "fill", .run = run_fill}),
    KernelRegistration({.name = "concat", .run = run_concat}),
};

}  // namespace

void copy_tensor(const TensorView& target, const TensorView& source, int threads) {
  if (target.numel() == 0) return;
  if (target.dtype != source.dtype) return convert_elements(target, source, threads);
  dispatch_size(dtype_size(target.dtype), [&](auto type) { copy_elements<decltype(type)>(target, source, threads); });
}

}  // namespace neuron::kernels
