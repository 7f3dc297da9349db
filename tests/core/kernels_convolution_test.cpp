// Convolution and its gradients against their definition in float64.
#include <gtest/gtest.h>

#include <vector>

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

}  // namespace
}  // namespace neuron::kernels
