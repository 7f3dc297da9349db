// Attention against a float64 softmax, forward and backward, with masks, causal order, grouped heads and odd sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/kernels/attention_rows.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

struct Tensor {
  std::vector<char> bytes;
  TensorView view;
  // Stored as [sizes[0], sizes[2], sizes[1], sizes[3]] when `swapped`: the layout a model's heads really have.
  Tensor(DType dtype, Dims sizes, bool swapped = false) {
    int64_t count = 1;
    Dims strides(sizes.size());
    SmallVector<int, 6> order;
    for (int d = 0; d < static_cast<int>(sizes.size()); ++d) order.push_back(d);
    if (swapped) std::swap(order[1], order[2]);
    for (int i = static_cast<int>(sizes.size()) - 1; i >= 0; --i) {
      strides[order[i]] = count;
      count *= sizes[order[i]];
    }
    bytes.resize(count * dtype_size(dtype));
    view = {bytes.data(), dtype, sizes, strides};
  }
  char* at(int64_t a, int64_t b, int64_t c, int64_t d) const {
    int64_t offset =
        a * view.strides[0] + b * view.strides[1] + c * view.strides[2] + (view.rank() > 3 ? d * view.strides[3] : 0);
    return view.as<char>() + offset * static_cast<int64_t>(dtype_size(view.dtype));
  }
  double get(int64_t a, int64_t b, int64_t c, int64_t d) const { return load_as_double(view.dtype, at(a, b, c, d)); }
  void fill(uint32_t seed) {
    std::mt19937 random(seed);
    for (int64_t a = 0; a < view.sizes[0]; ++a)
      for (int64_t b = 0; b < view.sizes[1]; ++b)
        for (int64_t c = 0; c < view.sizes[2]; ++c)
          for (int64_t d = 0; d < view.sizes[3]; ++d)
            store_from_double(view.dtype, (static_cast<int>(random() % 401) - 200) / 100.0, at(a, b, c, d));
  }
};

struct Case {
  int64_t batch, heads, key_heads, queries, keys, depth, value_depth;
  bool causal;
  int mask;  // 0 none, 1 additive, 2 bool with one query that may attend to nothing
  DType dtype = DType::Float32;
};

class Attention : public testing::TestWithParam<Case> {};

TEST_P(Attention, AgreesWithFloat64ForwardAndBackward) {
  Case c = GetParam();
  Tensor query(c.dtype, {c.batch, c.heads, c.queries, c.depth}, true),
      key(c.dtype, {c.batch, c.key_heads, c.keys, c.depth}),
      value(c.dtype, {c.batch, c.key_heads, c.keys, c.value_depth}, true);
  Tensor out(c.dtype, {c.batch, c.heads, c.queries, c.value_depth}, true), gradient(c.dtype, out.view.sizes);
  Tensor logsumexp(DType::Float32, {c.batch, c.heads, c.queries});
  Tensor dq(c.dtype, query.view.sizes), dk(c.dtype, key.view.sizes), dv(c.dtype, value.view.sizes, true);
  query.fill(1), key.fill(2), value.fill(3), gradient.fill(4);
  Tensor mask(c.mask == 2 ? DType::Bool : DType::Float32, {1, 1, c.queries, c.keys});
  if (c.mask == 1) mask.fill(5);
  if (c.mask == 2) {
    for (int64_t i = 0; i < c.queries; ++i)
      for (int64_t j = 0; j < c.keys; ++j) *mask.at(0, 0, i, j) = i != 1 && (i * 7 + j * 3) % 5 != 0;
  }
  double scale = 1 / std::sqrt(static_cast<double>(c.depth));
  Scalar scalars[] = {Scalar::of(scale)};
  int64_t attributes[] = {c.causal};
  std::vector<char> first_out, first_dk;
  for (int threads : {1, 3}) {
    TensorView outputs[] = {out.view, logsumexp.view};
    std::vector<TensorView> inputs{query.view, key.view, value.view};
    if (c.mask) inputs.push_back(mask.view);
    find_kernel("attention")->run({outputs, inputs, attributes, scalars, threads});
    TensorView gradients[] = {dq.view, dk.view, dv.view};
    std::vector<TensorView> given{gradient.view, query.view, key.view, value.view, out.view, logsumexp.view};
    if (c.mask) given.push_back(mask.view);
    find_kernel("attention_backward")->run({gradients, given, attributes, scalars, threads});
    if (threads == 1) first_out = out.bytes, first_dk = dk.bytes;
  }
  EXPECT_TRUE(first_out == out.bytes && first_dk == dk.bytes);

  double tolerance = c.dtype == DType::Float32 ? 2e-5 : 3e-2;
  std::vector<double> want_dk(dk.view.numel()), want_dv(dv.view.numel());
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      int64_t kh = h / (c.heads / c.key_heads);
      for (int64_t i = 0; i < c.queries; ++i) {
        std::vector<double> p(c.keys);
        double sum = 0;
        for (int64_t j = 0; j < c.keys; ++j) {
          double score = 0;
          for (int64_t d = 0; d < c.depth; ++d) score += query.get(b, h, i, d) * key.get(b, kh, j, d);
          score *= scale;
          if (c.mask == 1) score += mask.get(0, 0, i, j);
          bool open = (c.mask != 2 || mask.get(0, 0, i, j) != 0) && (!c.causal || j <= i);
          p[j] = open ? std::exp(score) : 0;
          sum += p[j];
        }
        for (double& x : p) x = sum > 0 ? x / sum : 0;
        double correction = 0;
        std::vector<double> dp(c.keys);
        for (int64_t d = 0; d < c.value_depth; ++d) {
          double want = 0;
          for (int64_t j = 0; j < c.keys; ++j) want += p[j] * value.get(b, kh, j, d);
          ASSERT_NEAR(out.get(b, h, i, d), want, tolerance * 2) << b << " " << h << " " << i << " " << d;
          correction += want * gradient.get(b, h, i, d);
        }
        if (sum > 0) {
          ASSERT_NEAR(logsumexp.get(b, h, i, 0), std::log(sum), 1e-4 + tolerance);
        }
        for (int64_t j = 0; j < c.keys; ++j) {
          for (int64_t d = 0; d < c.value_depth; ++d) {
            dp[j] += gradient.get(b, h, i, d) * value.get(b, kh, j, d);
            want_dv[((b * c.key_heads + kh) * c.keys + j) * c.value_depth + d] += p[j] * gradient.get(b, h, i, d);
          }
          dp[j] = p[j] * (dp[j] - correction) * scale;
          for (int64_t d = 0; d < c.depth; ++d) {
            want_dk[((b * c.key_heads + kh) * c.keys + j) * c.depth + d] += dp[j] * query.get(b, h, i, d);
          }
        }
        for (int64_t d = 0; d < c.depth; ++d) {
          double want = 0;
          for (int64_t j = 0; j < c.keys; ++j) want += dp[j] * key.get(b, kh, j, d);
          ASSERT_NEAR(dq.get(b, h, i, d), want, tolerance * 10) << b << " " << h << " " << i << " " << d;
        }
      }
    }
    for (int64_t kh = 0; kh < c.key_heads; ++kh) {
      for (int64_t j = 0; j < c.keys; ++j) {
        for (int64_t d = 0; d < c.depth; ++d) {
          double want = want_dk[((b * c.key_heads + kh) * c.keys + j) * c.depth + d];
          ASSERT_NEAR(dk.get(b, kh, j, d), want, tolerance * (10 + std::abs(want)));
        }
        for (int64_t d = 0; d < c.value_depth; ++d) {
          double want = want_dv[((b * c.key_heads + kh) * c.keys + j) * c.value_depth + d];
          ASSERT_NEAR(dv.get(b, kh, j, d), want, tolerance * (10 + std::abs(want)));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Attention,
                         testing::Values(Case{2, 2, 2, 65, 65, 16, 16, true, 0}, Case{1, 4, 2, 3, 300, 8, 24, false, 0},
                                         Case{1, 2, 1, 70, 270, 32, 32, false, 1}, Case{1, 1, 1, 5, 9, 7, 3, false, 2},
                                         Case{1, 2, 2, 66, 30, 16, 16, true, 0},
                                         Case{1, 2, 2, 40, 300, 16, 16, false, 0, DType::BFloat16},
                                         Case{1, 1, 1, 1, 1, 1, 1, true, 0}));

TEST(AttentionRows, ExponentialsAreWithinTwoUlp) {
  std::vector<float> row;
  for (float x = -88; x < 88; x += 0.0137f) row.push_back(x);
  std::vector<float> values = row;
  exponentials(values.data(), static_cast<int64_t>(values.size()), 0);
  for (size_t i = 0; i < row.size(); ++i) {
    double want = std::exp(static_cast<double>(row[i]));
    if (want < 1.2e-38) continue;
    ASSERT_NEAR(values[i] / want, 1.0, 2.4e-7) << row[i];
  }
  float special[] = {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 0, -200};
  exponentials(special, 4, 0);
  EXPECT_EQ(special[0], 0.0f);
  EXPECT_TRUE(std::isnan(special[1]));
  EXPECT_EQ(special[2], 1.0f);
  EXPECT_EQ(special[3], 0.0f);
}

}  // namespace
}  // namespace neuron::kernels
