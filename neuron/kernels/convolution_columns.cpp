// Convolution of every float dtype on any processor: patches of the input become columns of a matrix (one column per
// output position, one row per channel and kernel position), the rest is GEMM on one thread per tile. Tiles depend on
// the problem only. Narrow floats are computed in float32 and rounded once.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/convolution.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/gemm.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kColumnElements = 1 << 18;  // of one tile of the column matrix

// Rows of the column matrix of a group, and the output positions of a tile.
int64_t rows_of(const ConvolutionShape& s) { return s.group_channels() * s.kernel_size(); }
int64_t tile_length(const ConvolutionShape& s, int64_t rows) {
  return std::clamp<int64_t>(kColumnElements / std::max<int64_t>(1, rows), 16, std::max<int64_t>(16, s.output_size()));
}

// Walks the column matrix of output positions [begin, end) in runs along an output line: body(row of the matrix, first
// column, columns, offset in the group's image). Between runs lies padding: the offset is -1. Inside a run the image
// advances by the stride of the last dimension.
template <typename Body>
void for_each_patch(const ConvolutionShape& s, int64_t channels, int64_t begin, int64_t end, const Body& body) {
  int64_t width = s.output[2], row = 0;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t a = 0; a < s.kernel[0]; ++a) {
      for (int64_t b = 0; b < s.kernel[1]; ++b) {
        for (int64_t e = 0; e < s.kernel[2]; ++e, ++row) {
          // Output positions x of a line whose input x * stride + shift lies inside [0, input).
          int64_t shift = e * s.dilation[2] - s.padding[2];
          int64_t first = shift >= 0 ? 0 : (-shift + s.stride[2] - 1) / s.stride[2];
          int64_t last = s.input[2] <= shift ? 0 : (s.input[2] - shift + s.stride[2] - 1) / s.stride[2];
          for (int64_t position = begin; position < end;) {
            int64_t line = position / width, x = position % width, x_end = std::min(width, x + (end - position));
            int64_t z = line / s.output[1] * s.stride[0] - s.padding[0] + a * s.dilation[0];
            int64_t y = line % s.output[1] * s.stride[1] - s.padding[1] + b * s.dilation[1];
            bool outside = z < 0 || z >= s.input[0] || y < 0 || y >= s.input[1];
            int64_t from = outside ? x_end : std::clamp(first, x, x_end);
            int64_t to = outside ? x_end : std::clamp(last, from, x_end);
            int64_t column = position - begin;
            if (from > x) body(row, column, from - x, int64_t{-1});
            if (to > from) {
              int64_t offset = c * s.input_size() + (z * s.input[1] + y) * s.input[2] + from * s.stride[2] + shift;
              body(row, column + from - x, to - from, offset);
            }
            if (x_end > to) body(row, column + to - x, x_end - to, int64_t{-1});
            position += x_end - x;
          }
        }
      }
    }
  }
}

// The column matrix [rows, count] of an image.
template <typename E>
void fill_columns(const ConvolutionShape& s, const typename E::Storage* image, int64_t channels, int64_t begin,
                  int64_t count, typename E::Compute* columns) {
  using C = typename E::Compute;
  int64_t step = s.stride[2];
  for_each_patch(s, channels, begin, begin + count, [&](int64_t row, int64_t column, int64_t length, int64_t offset) {
    C* target = columns + row * count + column;
    if (offset < 0) {
      std::fill(target, target + length, C(0));
    } else if (std::is_same_v<C, typename E::Storage> && step == 1) {
      std::memcpy(target, image + offset, length * sizeof(C));
    } else {
      for (int64_t j = 0; j < length; ++j) target[j] = E::load(image[offset + j * step]);
    }
  });
}

template <typename C>
void multiply(const C* a, int64_t a_row, bool transpose_a, const C* b, int64_t b_row, bool transpose_b, C* result,
              int64_t result_row, int64_t m, int64_t n, int64_t k, bool accumulate) {
  GemmProblem p;
  p.dtype = p.result_dtype = p.addend_dtype = sizeof(C) == 8 ? DType::Float64 : DType::Float32;
  p.m = m, p.n = n, p.k = k;
  p.a = {const_cast<C*>(a), 0, transpose_a ? 1 : a_row, transpose_a ? a_row : 1};
  p.b = {const_cast<C*>(b), 0, transpose_b ? 1 : b_row, transpose_b ? b_row : 1};
  p.result = {result, 0, result_row, 1};
  if (accumulate) p.addend = p.result;
  run_gemm(p);
}

// A tensor's memory in the type of the arithmetic.
template <typename E>
struct Operand {
  using C = typename E::Compute;
  std::vector<C> copy;
  const C* data;
  explicit Operand(const TensorView& view) {
    const auto* values = view.as<typename E::Storage>();
    if constexpr (std::is_same_v<C, typename E::Storage>) {
      data = values;
    } else {
      copy.resize(view.numel());
      for (size_t i = 0; i < copy.size(); ++i) copy[i] = E::load(values[i]);
      data = copy.data();
    }
  }
};

template <typename E>
void store(const typename E::Compute* values, int64_t count, typename E::Storage* target) {
  for (int64_t i = 0; i < count; ++i) target[i] = E::store(values[i]);
}

struct Buffers {
  Scratch columns, result;
};
thread_local Buffers buffers;

void run_forward(const ConvolutionProblem& problem) {
  const TensorView &out = problem.result, &in = problem.input;
  const ConvolutionShape& s = problem.shape;
  dispatch_float(in.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    Operand<E> weight(problem.weight);
    const auto* source = in.as<typename E::Storage>();
    const auto* bias = problem.bias.as<typename E::Storage>();
    int64_t length = tile_length(s, rows_of(s)), tiles = (s.output_size() + length - 1) / length;
    parallel_for(problem.threads, s.batch * s.groups * tiles, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        int64_t tile = task % tiles, group = task / tiles % s.groups, batch = task / tiles / s.groups;
        int64_t first = tile * length, count = std::min(length, s.output_size() - first);
        const auto* image = source + (batch * s.channels + group * s.group_channels()) * s.input_size();
        C* columns = buffers.columns.get<C>(rows_of(s) * count);
        fill_columns<E>(s, image, s.group_channels(), first, count, columns);
        C* result = buffers.result.get<C>(s.group_filters() * count);
        const C* filters = weight.data + group * s.group_filters() * rows_of(s);
        if (rows_of(s) == 0) {
          std::fill(result, result + s.group_filters() * count, C(0));
        } else {
          multiply(filters, rows_of(s), false, columns, count, false, result, count, s.group_filters(), count,
                   rows_of(s), false);
        }
        for (int64_t f = 0; f < s.group_filters(); ++f) {
          int64_t filter = group * s.group_filters() + f;
          if (bias != nullptr) {
            C shift = E::load(bias[filter]);
            for (int64_t j = 0; j < count; ++j) result[f * count + j] += shift;
          }
          store<E>(result + f * count, count,
                   out.as<typename E::Storage>() + (batch * s.filters + filter) * s.output_size() + first);
        }
      }
    });
  });
}

void run_input(const ConvolutionProblem& problem) {
  const TensorView &in = problem.result, &out = problem.gradient;
  const ConvolutionShape& s = problem.shape;
  dispatch_float(in.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    Operand<E> weight(problem.weight), gradient(out);
    const auto* bias = problem.bias.as<typename E::Storage>();
    int64_t length = tile_length(s, rows_of(s));
    // Patches overlap in the input: one group of one image is one thread's.
    parallel_for(problem.threads, s.batch * s.groups, 1, [&](int64_t begin, int64_t end) {
      std::vector<C> image(s.group_channels() * s.input_size());
      for (int64_t task = begin; task < end; ++task) {
        int64_t group = task % s.groups, batch = task / s.groups;
        std::fill(image.begin(), image.end(), C(0));
        const C* above = gradient.data + (batch * s.filters + group * s.group_filters()) * s.output_size();
        const C* filters = weight.data + group * s.group_filters() * rows_of(s);
        for (int64_t first = 0; first < s.output_size() && s.group_filters() > 0; first += length) {
          int64_t count = std::min(length, s.output_size() - first);
          C* columns = buffers.columns.get<C>(rows_of(s) * count);
          multiply(filters, rows_of(s), true, above + first, s.output_size(), false, columns, count, rows_of(s), count,
                   s.group_filters(), false);
          for_each_patch(s, s.group_channels(), first, first + count,
                         [&](int64_t row, int64_t column, int64_t length, int64_t offset) {
                           if (offset < 0) return;
                           const C* source = columns + row * count + column;
                           for (int64_t j = 0; j < length; ++j) image[offset + j * s.stride[2]] += source[j];
                         });
        }
        for (int64_t c = 0; c < s.group_channels(); ++c) {
          int64_t channel = group * s.group_channels() + c;
          C* plane = image.data() + c * s.input_size();
          if (bias != nullptr) {
            C shift = E::load(bias[channel]);
            for (int64_t j = 0; j < s.input_size(); ++j) plane[j] += shift;
          }
          store<E>(plane, s.input_size(),
                   in.as<typename E::Storage>() + (batch * s.channels + channel) * s.input_size());
        }
      }
    });
  });
}

// Images are summed in order; tasks are blocks of channels.
void run_weight(const ConvolutionProblem& problem) {
  const TensorView &result = problem.result, &out = problem.gradient, &in = problem.input;
  const ConvolutionShape& s = problem.shape;
  dispatch_float(in.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    Operand<E> gradient(out);
    const auto* source = in.as<typename E::Storage>();
    int64_t block = std::clamp<int64_t>((64 + s.kernel_size() - 1) / std::max<int64_t>(1, s.kernel_size()), 1,
                                        std::max<int64_t>(1, s.group_channels()));
    int64_t blocks = (s.group_channels() + block - 1) / block;
    parallel_for(problem.threads, s.groups * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        int64_t group = task / blocks, channel = task % blocks * block;
        int64_t channels = std::min(block, s.group_channels() - channel), rows = channels * s.kernel_size();
        int64_t length = tile_length(s, rows);
        std::vector<C> sums(s.group_filters() * rows, C(0));
        for (int64_t batch = 0; batch < s.batch; ++batch) {
          const auto* image = source + (batch * s.channels + group * s.group_channels() + channel) * s.input_size();
          const C* above = gradient.data + (batch * s.filters + group * s.group_filters()) * s.output_size();
          for (int64_t first = 0; first < s.output_size(); first += length) {
            int64_t count = std::min(length, s.output_size() - first);
            C* columns = buffers.columns.get<C>(rows * count);
            fill_columns<E>(s, image, channels, first, count, columns);
            multiply(above + first, s.output_size(), false, columns, count, true, sums.data(), rows, s.group_filters(),
                     rows, count, true);
          }
        }
        for (int64_t f = 0; f < s.group_filters(); ++f) {
          store<E>(sums.data() + f * rows, rows,
                   result.as<typename E::Storage>() +
                       ((group * s.group_filters() + f) * s.group_channels() + channel) * s.kernel_size());
        }
      }
    });
  });
}

void run(const ConvolutionProblem& problem) {
  switch (problem.pass) {
    case ConvolutionPass::Forward:
      return run_forward(problem);
    case ConvolutionPass::Input:
      return run_input(problem);
    case ConvolutionPass::Weight:
      return run_weight(problem);
  }
}

Refusal refuse(const ConvolutionProblem&) { return {}; }

}  // namespace

const Implementation<ConvolutionProblem> convolution_columns = {"columns", refuse, run};

}  // namespace neuron::kernels
