// Padding, pooling, windows as columns and grid sampling on memory of exact size: a linear kernel and its gradient are
// adjoint, <forward(x), g> = <x, backward(g)>, and maxima are those found one by one. Complex products element by
// element.
#include <gtest/gtest.h>

#include <complex>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

class Windows : public testing::TestWithParam<int> {
 protected:
  int64_t integer(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  std::vector<double> numbers(int64_t count) {
    std::vector<double> values(static_cast<size_t>(count));
    for (double& value : values) value = std::normal_distribution<double>()(random_);
    return values;
  }

 private:
  std::mt19937_64 random_{static_cast<uint64_t>(GetParam())};
};

int64_t product(const Dims& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

TensorView view(void* data, DType dtype, const Dims& sizes) {
  Dims strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) strides[d] = stride;
  return {data, dtype, sizes, strides};
}
TensorView view(std::vector<double>& values, const Dims& sizes) { return view(values.data(), DType::Float64, sizes); }

void call(std::string_view name, std::vector<TensorView> outputs, std::vector<TensorView> inputs,
          std::vector<int64_t> attributes) {
  const Kernel* kernel = find_kernel(name);
  ASSERT_NE(kernel, nullptr) << name;
  kernel->run({outputs, inputs, attributes, {}, 2});
}

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

struct Linear {
  std::string_view forward, backward;
  Dims in, out;
  std::vector<int64_t> attributes;
};

#define EXPECT_ADJOINT(...)                                                                               \
  do {                                                                                                    \
    const Linear linear __VA_ARGS__;                                                                      \
    std::vector<double> x = numbers(product(linear.in)), y(static_cast<size_t>(product(linear.out)));     \
    std::vector<double> g = numbers(product(linear.out)), gradient(x.size());                             \
    call(linear.forward, {view(y, linear.out)}, {view(x, linear.in)}, linear.attributes);                 \
    call(linear.backward, {view(gradient, linear.in)}, {view(g, linear.out)}, linear.attributes);         \
    EXPECT_NEAR(dot(y, g), dot(x, gradient), 1e-9 * static_cast<double>(1 + y.size())) << linear.forward; \
  } while (false)

TEST_P(Windows, PaddingIsAdjoint) {
  for (int64_t mode : {0, 1}) {
    const int64_t rank = integer(1, 3);
    Dims in{integer(1, 3)}, out{in[0]};
    std::vector<int64_t> attributes{mode, rank};
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t size = integer(2, 9), before = integer(-1, size - 1),
                    behind = integer(before < 0 ? 0 : -1, size - 1);
      in.push_back(size);
      out.push_back(size + before + behind);
      attributes.push_back(before);
    }
    EXPECT_ADJOINT({"pad", "pad_backward", in, out, attributes});
  }
}

TEST_P(Windows, AveragesAreAdjoint) {
  const int64_t rank = integer(2, 3);
  Dims in{integer(1, 3)}, out{in[0]}, adaptive{in[0]};
  std::vector<int64_t> kernel, stride, padding;
  if (rank == 2) kernel.push_back(1), stride.push_back(1), padding.push_back(0);
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t size = integer(1, 3), step = integer(1, 3), border = integer(0, size / 2), extent = integer(size, 20);
    kernel.push_back(size), stride.push_back(step), padding.push_back(border);
    in.push_back(extent);
    out.push_back((extent + 2 * border - size) / step + 1);
    adaptive.push_back(integer(1, extent + 1));
  }
  std::vector<int64_t> attributes{rank};
  for (const auto* part : {&kernel, &stride, &padding}) attributes.insert(attributes.end(), part->begin(), part->end());
  attributes.push_back(integer(0, 1));
  attributes.push_back(integer(0, 1) * 5);
  EXPECT_ADJOINT({"average_pool", "average_pool_backward", in, out, attributes});
  EXPECT_ADJOINT({"average_pool", "average_pool_backward", in, adaptive, {rank}});
}

TEST_P(Windows, ColumnsAreAdjoint) {
  std::vector<int64_t> a;
  for (int part = 0; part < 4; ++part) {
    for (int d = 0; d < 2; ++d) a.push_back(part == 2 ? integer(0, 2) : integer(1, 3));
  }
  Dims in{integer(1, 2), integer(1, 3)};
  int64_t windows = 1;
  for (int d = 0; d < 2; ++d) {
    const int64_t extent = a[2 + d] * (a[d] - 1) + 1 + integer(0, 9);
    in.push_back(extent);
    windows *= (extent + 2 * a[4 + d] - a[2 + d] * (a[d] - 1) - 1) / a[6 + d] + 1;
  }
  EXPECT_ADJOINT({"im2col", "col2im", in, Dims{in[0], in[1] * a[0] * a[1], windows}, a});
}

TEST_P(Windows, SamplesAreAdjoint) {
  const int64_t rank = integer(2, 3), batch = integer(1, 3), channels = integer(1, 11);
  Dims in{batch, channels}, out{batch, channels}, grid{batch};
  for (int64_t d = 0; d < rank; ++d) {
    in.push_back(integer(1, 7));
    out.push_back(integer(1, 12));
    grid.push_back(out.back());
  }
  grid.push_back(rank);
  std::vector<double> places = numbers(product(grid));
  for (int64_t interpolation = 0; interpolation < (rank == 2 ? 3 : 2); ++interpolation) {
    const std::vector<int64_t> attributes{rank, interpolation, integer(0, 2), integer(0, 1)};
    std::vector<double> x = numbers(product(in)), y(static_cast<size_t>(product(out))), g = numbers(product(out));
    std::vector<double> gradient(x.size()), of_grid(places.size());
    call("grid_sample", {view(y, out)}, {view(x, in), view(places, grid)}, attributes);
    call("grid_sample_input", {view(gradient, in)}, {view(g, out), view(places, grid)}, attributes);
    call("grid_sample_grid", {view(of_grid, grid)}, {view(g, out), view(x, in), view(places, grid)}, attributes);
    EXPECT_NEAR(dot(y, g), dot(x, gradient), 1e-9 * static_cast<double>(1 + y.size())) << interpolation;
  }
}

TEST_P(Windows, MaximaAreThoseFoundOneByOne) {
  const int64_t kernel = integer(1, 3), stride = integer(1, 3), padding = integer(0, kernel / 2),
                dilation = integer(1, 2);
  const int64_t reach = dilation * (kernel - 1) + 1;
  const Dims in{integer(1, 3), reach + integer(0, 5), reach + integer(0, 30)};
  auto extent = [&](int64_t size) { return (size + 2 * padding - reach) / stride + 1; };
  const Dims out{in[0], extent(in[1]), extent(in[2])};
  std::vector<float> x(static_cast<size_t>(product(in))), y(static_cast<size_t>(product(out)));
  for (float& value : x) value = static_cast<float>(integer(-4, 4));
  std::vector<int64_t> places(y.size());
  call("max_pool", {view(y.data(), DType::Float32, out), view(places.data(), DType::Int64, out)},
       {view(x.data(), DType::Float32, in)},
       {2, 1, kernel, kernel, 1, stride, stride, 0, padding, padding, 1, dilation, dilation});
  for (int64_t i = 0; i < product(out); ++i) {
    const int64_t plane = i / (out[1] * out[2]), row = i / out[2] % out[1], column = i % out[2];
    int64_t best = -1;
    for (int64_t tap = 0; tap < kernel * kernel; ++tap) {
      const int64_t r = row * stride - padding + tap / kernel * dilation;
      const int64_t c = column * stride - padding + tap % kernel * dilation;
      if (r < 0 || c < 0 || r >= in[1] || c >= in[2]) continue;
      const int64_t place = r * in[2] + c;
      const float* values = x.data() + plane * in[1] * in[2];
      if (best < 0 || values[place] > values[best]) best = place;
    }
    ASSERT_EQ(places[i], best);
    ASSERT_EQ(y[i], x[plane * in[1] * in[2] + best]);
  }
}

TEST_P(Windows, ComplexNumbersAreMultipliedAndCompared) {
  const Dims sizes{integer(1, 4), integer(1, 40)};
  using Z = std::complex<float>;
  std::vector<Z> x(static_cast<size_t>(product(sizes))), y(x.size()), z(x.size());
  for (auto* values : {&x, &y}) {
    for (Z& value : *values) value = {static_cast<float>(integer(-9, 9)), static_cast<float>(integer(-9, 9))};
  }
  call("complex_mul", {view(z.data(), DType::Complex64, sizes)},
       {view(x.data(), DType::Complex64, sizes), view(y.data(), DType::Complex64, sizes)}, {0, 0});
  std::vector<uint8_t> equal(x.size());
  call("complex_eq", {view(equal.data(), DType::Bool, sizes)},
       {view(x.data(), DType::Complex64, sizes), view(x.data(), DType::Complex64, sizes)}, {0, 0});
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(z[i], x[i] * y[i]);
    ASSERT_EQ(equal[i], 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Windows, testing::Range(0, 100));

}  // namespace
}  // namespace neuron::kernels
