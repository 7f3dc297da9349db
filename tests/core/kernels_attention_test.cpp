// Attention against a float64 softmax, forward and backward, with masks, causal order, dropout, grouped heads and odd
// sizes, on all units of the processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/base/philox.h"
#include "neuron/base/processor.h"
#include "neuron/kernels/attention_matrix_units.h"
#include "neuron/kernels/attention_tiles.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/matrix_units.h"

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
  int mask;  // 0 none, 1 additive, 2 bool with one query that may attend to nothing, 3 additive for a batch entry's
             // keys
  DType dtype = DType::Float32;
  double dropout = 0;
};

// What attention of a dtype can run on here, the best last.
std::vector<AttentionUnits> available_units(DType dtype) {
  std::vector<AttentionUnits> units{AttentionUnits::Avx2};
  if (processor_features().runs_avx512()) units.push_back(AttentionUnits::Avx512);
  if (dtype != DType::BFloat16) return units;
  if (processor_features().runs_avx512_bf16()) units.push_back(AttentionUnits::Avx512BFloat16);
  if (has_bfloat16_matrix_units()) units.push_back(AttentionUnits::Best);
  return units;
}

class Attention : public testing::TestWithParam<Case> {};

constexpr int64_t kSeed = 0x123456789abcdef, kOffset = 0xfffffff0;

void expect_float64(const Case& c, AttentionUnits units) {
  Tensor query(c.dtype, {c.batch, c.heads, c.queries, c.depth}, true),
      key(c.dtype, {c.batch, c.key_heads, c.keys, c.depth}),
      value(c.dtype, {c.batch, c.key_heads, c.keys, c.value_depth}, true);
  Tensor out(c.dtype, {c.batch, c.heads, c.queries, c.value_depth}, true), gradient(c.dtype, out.view.sizes);
  Tensor logsumexp(DType::Float32, {c.batch, c.heads, c.queries}), maxima(DType::Float32, logsumexp.view.sizes),
      sums(DType::Float32, logsumexp.view.sizes);
  Tensor dq(c.dtype, query.view.sizes), dk(c.dtype, key.view.sizes), dv(c.dtype, value.view.sizes, true);
  query.fill(1), key.fill(2), value.fill(3), gradient.fill(4);
  Dims mask_sizes{1, 1, c.queries, c.keys};
  if (c.mask == 3) mask_sizes = {c.batch, 1, 1, c.keys};
  Tensor mask(c.mask == 2 ? DType::Bool : DType::Float32, mask_sizes), dmask(DType::Float32, mask_sizes);
  if (c.mask == 1 || c.mask == 3) mask.fill(5);
  if (c.mask == 2) {
    for (int64_t i = 0; i < c.queries; ++i)
      for (int64_t j = 0; j < c.keys; ++j) *mask.at(0, 0, i, j) = i != 1 && (i * 7 + j * 3) % 5 != 0;
  }
  double scale = 1 / std::sqrt(static_cast<double>(c.depth));
  std::vector<Scalar> scalars{Scalar::of(scale)};
  if (c.dropout > 0) {
    for (Scalar x : {Scalar::of(c.dropout), Scalar::of(kSeed), Scalar::of(kOffset)}) scalars.push_back(x);
  }
  bool mask_gradient = c.mask == 1 || c.mask == 3;
  int64_t attributes[] = {c.causal, 1, static_cast<int64_t>(units)};
  std::vector<char> first_out, first_dq, first_dk, first_dv, first_dmask;
  // More threads than heads: the backward pass takes its other way.
  for (int threads : {1, 2, 3, 17}) {
    TensorView outputs[] = {out.view, logsumexp.view, maxima.view, sums.view};
    std::vector<TensorView> inputs{query.view, key.view, value.view};
    if (c.mask) inputs.push_back(mask.view);
    find_kernel("attention")->run({outputs, inputs, attributes, scalars, threads});
    TensorView gradients[] = {dq.view, dk.view, dv.view}, mask_gradients[] = {dmask.view};
    std::vector<TensorView> given{gradient.view, query.view,     key.view,    value.view,
                                  out.view,      logsumexp.view, maxima.view, sums.view};
    if (c.mask) given.push_back(mask.view);
    find_kernel("attention_backward")->run({gradients, given, attributes, scalars, threads});
    if (mask_gradient) {
      find_kernel("attention_mask_gradient")->run({mask_gradients, given, attributes, scalars, threads});
    }
    if (threads == 1) {
      first_out = out.bytes, first_dq = dq.bytes, first_dk = dk.bytes, first_dv = dv.bytes, first_dmask = dmask.bytes;
    }
    EXPECT_EQ(first_out, out.bytes) << threads;
    EXPECT_EQ(first_dq, dq.bytes) << threads;
    EXPECT_EQ(first_dk, dk.bytes) << threads;
    EXPECT_EQ(first_dv, dv.bytes) << threads;
    EXPECT_EQ(first_dmask, dmask.bytes) << threads;
  }

  double tolerance = c.dtype == DType::Float32 ? 2e-5 : c.dtype == DType::Float16 ? 4e-3 : 3e-2;
  std::vector<double> want_dk(dk.view.numel()), want_dv(dv.view.numel()), want_dmask(dmask.view.numel());
  auto uniform = [&](int64_t row, int64_t j) {
    auto words = philox(kSeed, static_cast<uint64_t>(kOffset + row * ((c.keys + 3) / 4) + j / 4));
    return static_cast<double>(words[j % 4] >> 8) * 0x1p-24;
  };
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      int64_t kh = h / (c.heads / c.key_heads);
      for (int64_t i = 0; i < c.queries; ++i) {
        std::vector<double> p(c.keys), keep(c.keys, 1.0);
        double sum = 0;
        int64_t mask_row = c.mask == 3 ? 0 : i, mask_batch = c.mask == 3 ? b : 0;
        for (int64_t j = 0; j < c.keys; ++j) {
          double score = 0;
          for (int64_t d = 0; d < c.depth; ++d) score += query.get(b, h, i, d) * key.get(b, kh, j, d);
          score *= scale;
          if (mask_gradient) score += mask.get(mask_batch, 0, mask_row, j);
          bool open = (c.mask != 2 || mask.get(0, 0, i, j) != 0) && (!c.causal || j <= i);
          p[j] = open ? std::exp(score) : 0;
          sum += p[j];
          if (c.dropout > 0) {
            bool kept = uniform((b * c.heads + h) * c.queries + i, j) < static_cast<float>(1 - c.dropout);
            keep[j] = kept ? 1 / (1 - c.dropout) : 0;
          }
        }
        for (double& x : p) x = sum > 0 ? x / sum : 0;
        double correction = 0;
        std::vector<double> dp(c.keys);
        for (int64_t d = 0; d < c.value_depth; ++d) {
          double want = 0;
          for (int64_t j = 0; j < c.keys; ++j) want += p[j] * keep[j] * value.get(b, kh, j, d);
          ASSERT_NEAR(out.get(b, h, i, d), want, tolerance * 2) << b << " " << h << " " << i << " " << d;
          correction += want * gradient.get(b, h, i, d);
        }
        if (sum > 0) {
          ASSERT_NEAR(logsumexp.get(b, h, i, 0), std::log(sum), 1e-4 + tolerance);
        }
        for (int64_t j = 0; j < c.keys; ++j) {
          for (int64_t d = 0; d < c.value_depth; ++d) {
            dp[j] += gradient.get(b, h, i, d) * value.get(b, kh, j, d);
            want_dv[((b * c.key_heads + kh) * c.keys + j) * c.value_depth + d] +=
                p[j] * keep[j] * gradient.get(b, h, i, d);
          }
          dp[j] = p[j] * (dp[j] * keep[j] - correction);
          if (mask_gradient) want_dmask[(mask_batch * mask_sizes[2] + mask_row) * c.keys + j] += dp[j];
          dp[j] *= scale;
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
  if (!mask_gradient) return;
  for (int64_t i = 0; i < dmask.view.numel(); ++i) {
    ASSERT_NEAR(dmask.view.as<float>()[i], want_dmask[i], tolerance * (10 + std::abs(want_dmask[i]))) << i;
  }
}

TEST_P(Attention, AgreesWithFloat64ForwardAndBackward) {
  for (AttentionUnits units : available_units(GetParam().dtype)) {
    SCOPED_TRACE(static_cast<int>(units));
    expect_float64(GetParam(), units);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, Attention,
    testing::Values(Case{2, 2, 2, 65, 65, 16, 16, true, 0}, Case{1, 4, 2, 3, 300, 8, 24, false, 0},
                    Case{1, 2, 1, 70, 270, 32, 32, false, 1}, Case{1, 1, 1, 15, 9, 7, 3, false, 2},
                    Case{1, 2, 2, 66, 30, 16, 16, true, 0}, Case{1, 2, 2, 530, 300, 20, 16, true, 1},
                    Case{2, 3, 1, 20, 600, 33, 65, true, 3}, Case{1, 1, 1, 5, 1100, 48, 40, true, 1},
                    Case{1, 2, 2, 50, 60, 16, 16, false, 1, DType::Float32, 0.3},
                    Case{2, 2, 1, 70, 301, 16, 16, true, 2, DType::Float32, 0.5},
                    Case{1, 2, 2, 2, 701, 16, 16, false, 0, DType::Float32, 0.2},
                    Case{1, 2, 2, 40, 300, 16, 16, false, 0, DType::BFloat16},
                    Case{1, 4, 2, 75, 301, 33, 17, true, 1, DType::BFloat16},
                    Case{1, 2, 2, 51, 67, 64, 64, false, 2, DType::BFloat16, 0.25},
                    Case{1, 8, 2, 1, 777, 80, 64, false, 3, DType::BFloat16}, Case{1, 8, 1, 1, 701, 64, 128, false, 0},
                    Case{2, 14, 2, 1, 150, 96, 40, true, 0}, Case{1, 5, 1, 1, 530, 256, 17, false, 3},
                    Case{1, 3, 1, 2, 333, 48, 65, true, 1}, Case{1, 8, 1, 1, 701, 64, 128, false, 0, DType::BFloat16},
                    Case{1, 3, 1, 2, 333, 48, 66, true, 1, DType::BFloat16},
                    Case{1, 6, 1, 1, 530, 33, 17, false, 3, DType::BFloat16, 0.2},
                    Case{1, 7, 1, 1, 701, 128, 64, false, 0, DType::Float16},
                    Case{1, 2, 1, 50, 70, 24, 20, true, 1, DType::Float16},
                    Case{1, 3, 1, 2, 90, 40, 64, false, 0, DType::Float16}, Case{1, 2, 2, 100, 90, 256, 250, false, 0},
                    Case{1, 1, 1, 1, 1, 1, 1, true, 0}));

// Sizes around those of tiles, panels and blocks, and heads of every kind of length.
std::vector<Case> bfloat16_cases() {
  std::vector<Case> cases;
  auto add = [&](Case c) {
    c.dtype = DType::BFloat16;
    cases.push_back(c);
  };
  for (int64_t depth : {1, 15, 31, 32, 72, 80, 96, 130, 256}) add({1, 2, 1, 20, 35, depth, depth, true, 0});
  for (int64_t length : {9, 16, 17, 47, 48, 49, 95, 97, 127, 129, 257}) {
    add({1, 1, 1, length, length, 24, 40, true, 0});
    add({1, 2, 2, 60, length, 40, 24, false, 2});
  }
  add({2, 6, 2, 70, 301, 33, 17, true, 3});
  add({1, 2, 2, 300, 140, 32, 32, true, 1});
  add({1, 2, 2, 33, 400, 16, 16, true, 0});
  add({1, 4, 1, 50, 140, 64, 64, false, 1, DType::BFloat16, 0.3});
  add({1, 2, 2, 130, 130, 64, 65, true, 2, DType::BFloat16, 0.5});
  add({1, 12, 1, 1, 300, 64, 64, true, 3});
  for (int64_t heads : {2, 3, 4, 8}) add({2, heads, 1, 1, 1000 + heads, 64, 40, false, 3});
  add({1, 4, 1, 1, 528, 96, 130, false, 1, DType::BFloat16, 0.3});
  add({1, 4, 2, 3, 600, 33, 64, true, 2});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(BFloat16, Attention, testing::ValuesIn(bfloat16_cases()));

// Every number of queries that may share a key head as a step of a model that generates, and one more.
std::vector<Case> few_queries() {
  std::vector<Case> cases;
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Float16}) {
    for (int64_t heads = 1; heads <= 9; ++heads) {
      const int mask = static_cast<int>(heads % 4);
      cases.push_back({2, 2 * heads, 2, 1, 515 + heads, 20 + heads, 40 + heads, false, mask, dtype});
      cases.push_back({1, heads, 1, 1, 23 * heads, 64, 32, false, mask % 2, dtype, 0.25});
      cases.push_back({1, 1, 1, heads, 40 + heads, 2 * heads, 128, true, 2, dtype});
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(FewQueries, Attention, testing::ValuesIn(few_queries()));

// Large scores, whose multiples are rounded by more than one or overflow, of a scale of any sign, and excluded ones: as
// with vectors.
TEST(AttentionMatrixUnits, ScoresOfAnySizeAndScale) {
  if (!has_bfloat16_matrix_units()) GTEST_SKIP() << "this processor has no matrix units";
  for (double size : {1.0, 300.0, 2000.0, 1e5, 1e18}) {
    for (double scale : {0.5, -0.5, 0.0}) {
      for (bool causal : {false, true}) {
        std::vector<std::vector<double>> results;
        for (AttentionUnits units : {AttentionUnits::Avx512BFloat16, AttentionUnits::Best}) {
          Tensor query(DType::BFloat16, {1, 1, 60, 16}), key(DType::BFloat16, {1, 1, 200, 16}), value = key,
                                                                                                out = query;
          value.view.data = value.bytes.data(), out.view.data = out.bytes.data();
          Tensor sums(DType::Float32, {1, 1, 60}), logs = sums, maxima = sums;
          logs.view.data = logs.bytes.data(), maxima.view.data = maxima.bytes.data();
          query.fill(1), key.fill(2), value.fill(3);
          for (Tensor* tensor : {&query, &key}) {
            for (int64_t i = 0; i < tensor->view.numel(); ++i) {
              char* place = tensor->bytes.data() + 2 * i;
              store_from_double(DType::BFloat16, load_as_double(DType::BFloat16, place) * size, place);
            }
          }
          TensorView outputs[] = {out.view, logs.view, maxima.view, sums.view};
          std::vector<TensorView> inputs{query.view, key.view, value.view};
          std::vector<Scalar> scalars{Scalar::of(scale)};
          int64_t attributes[] = {causal, 1, static_cast<int64_t>(units)};
          find_kernel("attention")->run({outputs, inputs, attributes, scalars, 1});
          std::vector<double>& result = results.emplace_back();
          for (int64_t i = 0; i < 60; ++i) {
            for (int64_t d = 0; d < 16; ++d) result.push_back(out.get(0, 0, i, d));
          }
        }
        for (size_t i = 0; i < results[0].size(); ++i) {
          ASSERT_NEAR(results[0][i], results[1][i], 3e-2) << size << " " << scale << " " << i;
        }
      }
    }
  }
}

__attribute__((target(NEURON_MATRIX_UNITS))) void meet(const AttentionMeeting& meeting, AttentionLanes& lanes) {
  const MatrixTiles tiles;
  attention_matrix_units.meet(meeting, lanes);
}

// Probabilities on matrix units: 7.5e-5 and the rounding of their argument, then that to bfloat16.
TEST(AttentionMatrixUnits, ExponentialsAreRoundedOnce) {
  if (!has_bfloat16_matrix_units()) GTEST_SKIP() << "this processor has no matrix units";
  std::vector<float> values{0, -0.5f, -1, -87, -200, -1e30f};
  for (float x = -86; x <= 0; x += 0.0137f) values.push_back(bfloat16_to_float(float_to_bfloat16(x)));
  std::vector<uint16_t> key(16 * 32), value(16 * 32);
  key[0] = float_to_bfloat16(1);
  for (float scale : {0.25f, 1.0f}) {
    for (bool large : {false, true}) {
      for (size_t first = 0; first < values.size(); first += kLanes) {
        std::vector<uint32_t> panel(16 * kLanes);
        std::vector<float> scratch(meeting_scratch(1)), result(16 * kLanes);
        const size_t count = std::min<size_t>(kLanes, values.size() - first);
        for (size_t i = 0; i < count; ++i) panel[i] = float_to_bfloat16(values[first + i]);
        AttentionLanes lanes;
        std::fill(lanes.largest, lanes.largest + kLanes, 0.0f);
        lanes.result = result.data();
        lanes.large = large;
        meet({.keys = {reinterpret_cast<const char*>(key.data()), 64},
              .values = {reinterpret_cast<const char*>(value.data()), 64},
              .first = 0,
              .count = 1,
              .depth = 32,
              .width = 16,
              .panel = panel.data(),
              .lanes = kLanes,
              .scale = scale,
              .bias = nullptr,
              .limits = nullptr,
              .open = 1,
              .keep = nullptr,
              .scratch = scratch.data()},
             lanes);
        for (size_t i = 0; i < count; ++i) {
          const float x = values[first + i] * scale;
          uint32_t unit;
          std::memcpy(&unit, scratch.data() + 32 * kLanes + i, sizeof(unit));
          const double want = x < -86.64f ? 0 : std::exp(static_cast<double>(x));
          ASSERT_NEAR(lanes.sums[i], want, want * (7.6e-5 + 1.25 * 0x1p-24 * std::min(100.0f, std::abs(x)))) << x;
          EXPECT_EQ(unit, float_to_bfloat16(lanes.sums[i])) << x;
        }
      }
    }
  }
}

}  // namespace
}  // namespace neuron::kernels
