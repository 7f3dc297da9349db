// Convolution and its gradients against their definition in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <random>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/kernels/convolution.h"
#include "neuron/kernels/convolution_routines.h"
#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

struct Case {
  int64_t batch, channels, filters, groups, height, width, kernel_height, kernel_width, stride, padding, dilation;
};

class Convolution : public testing::TestWithParam<Case> {};

TEST_P(Convolution, AgreesWithTheDefinition) {
  Case c = GetParam();
  int64_t out_height = (c.height + 2 * c.padding - c.dilation * (c.kernel_height - 1) - 1) / c.stride + 1;
  int64_t out_width = (c.width + 2 * c.padding - c.dilation * (c.kernel_width - 1) - 1) / c.stride + 1;
  int64_t per_group = c.channels / c.groups, filters_per_group = c.filters / c.groups;
  std::vector<float> input(c.batch * c.channels * c.height * c.width), bias(c.filters);
  std::vector<float> weight(c.filters * per_group * c.kernel_height * c.kernel_width);
  std::vector<float> output(c.batch * c.filters * out_height * out_width), gradient(output.size());
  std::vector<float> input_gradient(input.size()), weight_gradient(weight.size());
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i * 7 % 23) - 11;
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i * 5 % 17) - 8;
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i * 3 % 13) - 6;
  auto view = [](std::vector<float>& values, Dims sizes) {
    Dims strides(sizes.size());
    int64_t stride = 1;
    for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) strides[d] = stride, stride *= sizes[d];
    return TensorView{values.data(), DType::Float32, sizes, strides};
  };
  TensorView in = view(input, {c.batch, c.channels, c.height, c.width});
  TensorView w = view(weight, {c.filters, per_group, c.kernel_height, c.kernel_width});
  TensorView out = view(output, {c.batch, c.filters, out_height, out_width});
  TensorView pull = view(gradient, out.sizes), shift = view(bias, {c.filters});
  TensorView in_gradient = view(input_gradient, in.sizes), w_gradient = view(weight_gradient, w.sizes);
  int64_t attributes[] = {2, c.stride, c.stride, c.padding, c.padding, c.dilation, c.dilation, c.groups};

  std::vector<double> want(output.size()), want_input(input.size()), want_weight(weight.size());
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t f = 0; f < c.filters; ++f)
      for (int64_t y = 0; y < out_height; ++y)
        for (int64_t x = 0; x < out_width; ++x) {
          int64_t o = ((n * c.filters + f) * out_height + y) * out_width + x;
          want[o] = bias[f];
          for (int64_t k = 0; k < per_group; ++k)
            for (int64_t a = 0; a < c.kernel_height; ++a)
              for (int64_t b = 0; b < c.kernel_width; ++b) {
                int64_t iy = y * c.stride - c.padding + a * c.dilation, ix = x * c.stride - c.padding + b * c.dilation;
                if (iy < 0 || iy >= c.height || ix < 0 || ix >= c.width) continue;
                int64_t i = ((n * c.channels + f / filters_per_group * per_group + k) * c.height + iy) * c.width + ix;
                int64_t v = ((f * per_group + k) * c.kernel_height + a) * c.kernel_width + b;
                want[o] += static_cast<double>(input[i]) * weight[v];
                want_input[i] += static_cast<double>(gradient[o]) * weight[v];
                want_weight[v] += static_cast<double>(gradient[o]) * input[i];
              }
        }
  // All values are small integers: float32 sums are exact.
  for (int threads : {1, 3}) {
    auto run = [&](std::string_view name, TensorView result, std::vector<TensorView> inputs) {
      find_kernel(name)->run({{&result, 1}, inputs, attributes, {}, threads});
    };
    run("convolution", out, {in, w, shift});
    run("convolution_input", in_gradient, {pull, w});
    run("convolution_weight", w_gradient, {pull, in});
    for (size_t i = 0; i < want.size(); ++i) ASSERT_EQ(output[i], want[i]) << i;
    for (size_t i = 0; i < want_input.size(); ++i) ASSERT_EQ(input_gradient[i], want_input[i]) << i;
    for (size_t i = 0; i < want_weight.size(); ++i) ASSERT_EQ(weight_gradient[i], want_weight[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Convolution,
                         testing::Values(Case{2, 3, 4, 1, 7, 6, 3, 2, 1, 1, 1}, Case{1, 4, 6, 2, 9, 9, 3, 3, 2, 1, 1},
                                         Case{2, 2, 2, 2, 8, 5, 2, 2, 1, 0, 2}, Case{1, 8, 5, 1, 33, 20, 1, 1, 1, 0, 1},
                                         Case{1, 3, 2, 1, 40, 30, 5, 5, 1, 2, 1}));

// Any rank and dtype, every implementation: against float64, and the bits for other threads and instruction sets.
struct Problem {
  int64_t batch, channels, filters, groups;
  std::vector<int64_t> input, kernel, stride, padding, dilation;
};

void PrintTo(const Problem& p, std::ostream* out) {
  *out << p.batch << " images, " << p.channels << " to " << p.filters << " in " << p.groups << " groups";
}

const Problem kProblems[] = {
    {2, 3, 5, 1, {11, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},     // ordinary
    {2, 3, 8, 1, {23, 21}, {7, 7}, {2, 2}, {3, 3}, {1, 1}},    // a stem
    {3, 40, 70, 1, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},    // channels are the columns of the product
    {1, 33, 20, 1, {9, 10}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},   // no copy of the source
    {2, 16, 12, 1, {9, 10}, {1, 1}, {2, 2}, {0, 0}, {1, 1}},   // phases without taps
    {1, 16, 24, 2, {10, 12}, {3, 2}, {2, 1}, {1, 0}, {1, 2}},  // groups, unequal parameters
    {2, 300, 9, 1, {6, 5}, {2, 2}, {1, 1}, {0, 0}, {1, 1}},    // several blocks of the sum
    {1, 4, 6, 1, {4, 5, 6}, {3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2}},
    {2, 8, 10, 1, {50}, {3}, {2}, {1}, {1}},
    {1, 5, 7, 1, {5, 5}, {2, 2}, {3, 3}, {2, 2}, {1, 1}},     // stride beyond the kernel, much padding
    {2, 6, 6, 6, {13, 20}, {7, 7}, {1, 1}, {3, 3}, {1, 1}},   // depthwise
    {2, 6, 12, 6, {13, 37}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},  // two filters a channel
    {1, 4, 4, 4, {14, 9}, {3, 3}, {1, 1}, {2, 2}, {2, 2}},
    {1, 3, 3, 3, {5, 6, 7}, {2, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {2, 5, 5, 5, {70}, {4}, {1}, {2}, {1}},
    // Depthwise with whole grids of taps: fewer lines than are done at once, several registers, several slices.
    {1, 3, 3, 3, {3, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {1, 3, 6, 3, {7, 90}, {5, 5}, {1, 1}, {2, 2}, {1, 1}},
    {1, 2, 2, 2, {6, 30}, {4, 6}, {1, 1}, {1, 2}, {1, 1}},
    {1, 3, 3, 3, {5, 6, 7}, {1, 3, 3}, {2, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {70, 8, 16, 1, {2, 2}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},  // many small images
    // Whole steps of channels at a tap: matrix units read them where they lie.
    {2, 64, 48, 1, {9, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 64, 64, 1, {12, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  // worth two threads
    {1, 72, 80, 2, {13, 11}, {3, 2}, {2, 1}, {1, 1}, {1, 2}},
    {1, 95, 33, 1, {20, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {2, 40, 18, 1, {33}, {4}, {3}, {2}, {1}},
    {1, 32, 35, 1, {4, 5, 6}, {2, 3, 3}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}},
    {1, 300, 290, 1, {8, 8}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
    {3, 32, 3, 1, {17, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 16, 40, 1, {35, 40}, {5, 5}, {1, 1}, {2, 2}, {1, 1}},
    // Many positions share packed weights, of more channels than wait in a cache together.
    {1, 6, 200, 1, {31, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {1, 200, 6, 1, {31, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {1, 30, 200, 1, {14, 15}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 14, 30, 2, {40, 33}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    // Lines of two and three: a panel's row is many pieces.
    {1, 4, 9, 1, {300, 2}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 4, 7, 1, {90, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
};

struct Tensor {
  std::vector<char> bytes;
  TensorView view;
  Tensor(DType dtype, const std::vector<int64_t>& sizes)
      : view{nullptr, dtype, Dims(sizes.size()), Dims(sizes.size())} {
    int64_t count = 1;
    for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) {
      view.sizes[d] = sizes[d];
      view.strides[d] = count;
      count *= sizes[d];
    }
    bytes.resize(static_cast<size_t>(count) * dtype_size(dtype));
    view.data = bytes.data();
  }
  int64_t count() const { return view.numel(); }
  char* at(int64_t i) { return bytes.data() + i * static_cast<int64_t>(dtype_size(view.dtype)); }
  double value(int64_t i) { return load_as_double(view.dtype, at(i)); }
  void fill(uint32_t seed) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < count(); ++i) {
      store_from_double(view.dtype, (static_cast<int>(random() % 2001) - 1000) / 1000.0, at(i));
    }
  }
};

class EveryConvolution : public testing::TestWithParam<std::tuple<Problem, DType>> {};

TEST_P(EveryConvolution, AgreesWithFloat64InEveryImplementation) {
  auto [c, dtype] = GetParam();
  auto rank = static_cast<int64_t>(c.input.size());
  std::vector<int64_t> in{c.batch, c.channels}, out{c.batch, c.filters}, w{c.filters, c.channels / c.groups};
  std::vector<int64_t> attributes{rank};
  for (int64_t d = 0; d < rank; ++d) {
    in.push_back(c.input[d]);
    w.push_back(c.kernel[d]);
    out.push_back((c.input[d] + 2 * c.padding[d] - c.dilation[d] * (c.kernel[d] - 1) - 1) / c.stride[d] + 1);
  }
  for (auto* values : {&c.stride, &c.padding, &c.dilation}) {
    attributes.insert(attributes.end(), values->begin(), values->end());
  }
  attributes.push_back(c.groups);
  Tensor input(dtype, in), weight(dtype, w), bias(dtype, {c.filters}), gradient(dtype, out);
  input.fill(1), weight.fill(2), bias.fill(3), gradient.fill(4);
  ConvolutionShape s(input.view, gradient.view, weight.view, attributes);

  // Sums and sums of magnitudes of all three, in float64.
  size_t counts[] = {static_cast<size_t>(gradient.count()), static_cast<size_t>(input.count()),
                     static_cast<size_t>(weight.count())};
  std::vector<double> want[3], size[3];
  for (int i = 0; i < 3; ++i) want[i].assign(counts[i], 0), size[i].assign(counts[i], 0);
  auto add = [&](int what, int64_t i, double x) { want[what][i] += x, size[what][i] += std::abs(x); };
  for (int64_t o = 0; o < gradient.count(); ++o) {
    int64_t x = o % s.output[2], y = o / s.output[2] % s.output[1], z = o / s.output[2] / s.output[1] % s.output[0];
    int64_t f = o / s.output_size() % s.filters, n = o / s.output_size() / s.filters;
    add(0, o, bias.value(f));
    for (int64_t v = 0; v < s.group_channels() * s.kernel_size(); ++v) {
      int64_t e = v % s.kernel[2], b = v / s.kernel[2] % s.kernel[1];
      int64_t a = v / s.kernel[2] / s.kernel[1] % s.kernel[0], k = v / s.kernel_size();
      int64_t iz = z * s.stride[0] - s.padding[0] + a * s.dilation[0];
      int64_t iy = y * s.stride[1] - s.padding[1] + b * s.dilation[1];
      int64_t ix = x * s.stride[2] - s.padding[2] + e * s.dilation[2];
      if (iz < 0 || iz >= s.input[0] || iy < 0 || iy >= s.input[1] || ix < 0 || ix >= s.input[2]) continue;
      int64_t channel = f / s.group_filters() * s.group_channels() + k;
      int64_t i = (((n * s.channels + channel) * s.input[0] + iz) * s.input[1] + iy) * s.input[2] + ix;
      int64_t j = f * s.group_channels() * s.kernel_size() + v;
      add(0, o, input.value(i) * weight.value(j));
      add(1, i, gradient.value(o) * weight.value(j));
      add(2, j, gradient.value(o) * input.value(i));
    }
  }

  bool wide = detected_gemm_microkernel() == &gemm_microkernel_avx512;
  for (ConvolutionPass pass : {ConvolutionPass::Forward, ConvolutionPass::Input, ConvolutionPass::Weight}) {
    auto what = static_cast<int>(pass);
    Tensor result(dtype, what == 0 ? out : what == 1 ? in : w);
    ConvolutionProblem problem{pass, s, result.view, gradient.view, input.view, weight.view, {}, 1};
    if (what == 0) problem.bias = bias.view;
    for (const auto& entry : convolution_implementations().entries()) {
      if (!entry.refuse(problem).empty()) continue;
      std::vector<char> expected;
      for (int threads : {1, 3}) {
        for (int narrow : {0, 1}) {
          bool lanes_matter = entry.name == "depthwise" && pass == ConvolutionPass::Weight;
          bool units_matter = entry.name == "tiles" && dtype == DType::BFloat16 && has_bfloat16_units();
          bool one_set = entry.name == "columns" || entry.name == "matrix_units";
          if (narrow == 1 && (!wide || one_set || lanes_matter || units_matter)) continue;
          std::fill(result.bytes.begin(), result.bytes.end(), '\x7f');
          problem.threads = threads;
          if (narrow == 0) {
            entry.run(problem);
          } else if (entry.name == "tiles") {
            run_convolution_tiles(problem, gemm_microkernel_avx2, convolution_routines_avx2);
          } else {
            run_convolution_depthwise(problem, convolution_routines_avx2);
          }
          if (expected.empty()) expected = result.bytes;
          ASSERT_TRUE(result.bytes == expected)
              << entry.name << ", pass " << what << ", threads " << threads << (narrow == 1 ? ", AVX2" : "");
        }
      }
      double rounding = dtype == DType::BFloat16 ? 1.0 / 256 : dtype == DType::Float16 ? 1.0 / 2048 : 0;
      for (size_t i = 0; i < want[what].size(); ++i) {
        double allowed = 1e-5 * size[what][i] + rounding * std::abs(want[what][i]) + 1e-7;
        ASSERT_NEAR(result.value(static_cast<int64_t>(i)), want[what][i], allowed)
            << entry.name << ", pass " << what << ", element " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryConvolution,
                         testing::Combine(testing::ValuesIn(kProblems),
                                          testing::Values(DType::Float32, DType::BFloat16, DType::Float16)));

// What is not finite reaches the elements whose sums contain it and no others, whatever lies next to it in a tile.
TEST(ConvolutionSpecialNumbers, ReachOnlyTheirOwnSums) {
  for (DType dtype : {DType::Float32, DType::BFloat16}) {
    for (int64_t channels : {5, 40}) {
      Tensor input(dtype, {1, channels, 9, 10}), weight(dtype, {20, channels, 3, 3}), out(dtype, {1, 20, 9, 10});
      input.fill(1), weight.fill(2);
      int64_t attributes[] = {2, 1, 1, 1, 1, 1, 1, 1};
      ConvolutionShape s(input.view, out.view, weight.view, attributes);
      // Input element (channel 4, y 3, x 9), the last of its line, is infinite.
      store_from_double(dtype, std::numeric_limits<double>::infinity(), input.at((4 * 9 + 3) * 10 + 9));
      ConvolutionProblem forward{ConvolutionPass::Forward, s, out.view, {}, input.view, weight.view, {}, 1};
      convolution_implementations().run(forward);
      for (int64_t i = 0; i < out.count(); ++i) {
        const int64_t x = i % 10, y = i / 10 % 9;
        const bool reached = x >= 8 && y >= 2 && y <= 4;
        ASSERT_EQ(std::isfinite(out.value(i)), !reached) << i << ", " << channels << " channels";
      }
      Tensor gradient(dtype, {1, 20, 9, 10}), result(dtype, {20, channels, 3, 3});
      gradient.fill(3);
      ConvolutionProblem backward{ConvolutionPass::Weight, s, result.view, gradient.view, input.view, {}, {}, 1};
      convolution_implementations().run(backward);
      for (int64_t i = 0; i < result.count(); ++i) {
        const bool reached = i / 9 % channels == 4 && i % 3 != 0;  // the left tap never sees the last of a line
        ASSERT_EQ(std::isfinite(result.value(i)), !reached) << i << ", " << channels << " channels";
      }
      // A NaN in one position of the gradient.
      store_from_double(dtype, std::numeric_limits<double>::quiet_NaN(), gradient.at((7 * 9 + 8) * 10));
      Tensor pulled(dtype, {1, channels, 9, 10});
      ConvolutionProblem pull{ConvolutionPass::Input, s, pulled.view, gradient.view, {}, weight.view, {}, 1};
      convolution_implementations().run(pull);
      for (int64_t i = 0; i < pulled.count(); ++i) {
        const bool reached = i % 10 <= 1 && i / 10 % 9 >= 7;
        ASSERT_EQ(std::isnan(pulled.value(i)), reached) << i << ", " << channels << " channels";
      }
    }
  }
}

TEST(ConvolutionList, DepthwiseGoesToItsOwnKernelAndEmptyProblemsToColumns) {
  Tensor input(DType::Float32, {1, 4, 6, 6}), weight(DType::Float32, {4, 1, 3, 3}), out(DType::Float32, {1, 4, 4, 4});
  int64_t attributes[] = {2, 1, 1, 0, 0, 1, 1, 4};
  ConvolutionProblem problem{ConvolutionPass::Forward,
                             ConvolutionShape(input.view, out.view, weight.view, attributes),
                             out.view,
                             {},
                             input.view,
                             weight.view,
                             {},
                             1};
  EXPECT_EQ(convolution_implementations().choose(problem).name, "depthwise");
  problem.shape.groups = 1;
  EXPECT_EQ(convolution_implementations().choose(problem).name, "tiles");
  problem.shape.batch = 0;
  EXPECT_EQ(convolution_implementations().choose(problem).name, "columns");
}

}  // namespace
}  // namespace neuron::kernels
