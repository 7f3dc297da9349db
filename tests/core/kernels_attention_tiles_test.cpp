// The tiles of attention, of every instruction set: against each other and against float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/base/processor.h"
#include "neuron/kernels/attention_tiles.h"

namespace neuron::kernels {
namespace {

std::vector<const AttentionTiles*> sets() {
  std::vector<const AttentionTiles*> result{&attention_tiles_avx2};
  if (processor_features().runs_avx512()) result.push_back(&attention_tiles_avx512);
  if (processor_features().runs_avx512_bf16()) result.push_back(&attention_tiles_avx512_bf16);
  return result;
}

std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> result(count);
  for (float& x : result) x = static_cast<float>(static_cast<int>(random() % 4001) - 2000) / 700.0f;
  return result;
}

TEST(AttentionTiles, EveryInstructionSetGivesTheSameBits) {
  constexpr int64_t kCount = 37, kDepth = 29, kWidth = 48;
  std::vector<float> rows = numbers(kCount * kDepth, 1), panel = numbers(kDepth * kLanes, 2),
                     left = numbers(kCount * kLanes, 3), right = numbers(kLanes * kWidth, 4),
                     tall = numbers(kCount * kLanes, 5), vector = numbers(32, 6), weights = numbers(5 * kCount, 7);
  for (int i = kDepth; i < 32; ++i) vector[i] = 0;
  std::vector<std::vector<float>> first;
  for (const AttentionTiles* tiles : sets()) {
    std::vector<std::vector<float>> results;
    auto bytes = [](const std::vector<float>& x) { return reinterpret_cast<const char*>(x.data()); };
    for (int lanes : {48, 33, 16, 3}) {
      std::vector<float> maxima(kLanes, -3.0f), scores(kCount * kLanes), sums(kLanes, 0.5f), keep = tall;
      tiles->floats.rows_by_panel(bytes(rows), kDepth * 4, kCount, kDepth, panel.data(), lanes, 0.37f, scores.data(),
                                  maxima.data());
      results.push_back(scores);
      results.push_back(maxima);
      std::vector<int64_t> limits(kLanes);
      for (int i = 0; i < kLanes; ++i) limits[i] = i - 2;
      std::vector<float> bias(kCount * kLanes, 0.25f);
      tiles->mask(scores.data(), kCount, lanes, bias.data(), limits.data(), 3, maxima.data());
      results.push_back(scores);
      std::vector<uint64_t> counters(kLanes);
      for (int i = 0; i < kLanes; ++i) counters[i] = 0xfffffff0u + 5u * i;
      tiles->dropout(99, counters.data(), 8, kCount, lanes, 1u << 23, 2.0f, keep.data());
      results.push_back(keep);
      std::vector<float> gradients = tall, probabilities = scores, inverse(kLanes, 0.01f), corrections(kLanes, 0.3f);
      SoftmaxGradient inputs{keep.data(), maxima.data(), inverse.data(), corrections.data(), 0.5f};
      tiles->floats.softmax_gradient(probabilities.data(), gradients.data(), kCount, lanes, inputs, nullptr);
      results.push_back(probabilities);
      results.push_back(gradients);
      std::vector<float> before(kLanes, -2.0f), shifts(kLanes), fades(kLanes), largest = maxima;
      before[1] = largest[2] = -std::numeric_limits<float>::infinity();
      tiles->advance(largest.data(), lanes, before.data(), sums.data(), shifts.data(), fades.data());
      results.insert(results.end(), {before, sums, shifts, fades});
      tiles->floats.exponentials(scores.data(), kCount, lanes, maxima.data(), sums.data(), keep.data());
      results.push_back(scores);
      results.push_back(sums);
      std::vector<float> target(kDepth * kLanes, 1.0f);
      tiles->floats.columns_by_panel(bytes(rows), kDepth * 4, kDepth, kCount, scores.data(), lanes, maxima.data(),
                                     target.data());
      results.push_back(target);
      tiles->scale_lanes(target.data(), kDepth, lanes, fades.data());
      results.push_back(target);
      std::vector<float> lines(kLanes * kDepth), again(kDepth * kLanes, 7.0f);
      tiles->from_lanes(target.data(), lanes, kDepth, lines.data(), kDepth);
      results.push_back(lines);
      const char* pointers[kLanes];
      for (int i = 0; i < kLanes; ++i) pointers[i] = bytes(lines) + i * kDepth * 4;
      tiles->to_lanes(pointers, lanes, kDepth, again.data());
      for (int64_t u = 0; u < kDepth; ++u) {
        for (int i = 0; i < lanes; ++i) ASSERT_EQ(again[u * kLanes + i], target[u * kLanes + i]);
      }
    }
    std::vector<float> target(kCount * kWidth, 1.0f), dots(kCount), weighed(5 * kDepth);
    tiles->floats.rows_by_rows(bytes(left), kLanes * 4, kCount, kLanes, right.data(), kWidth, target.data());
    results.push_back(target);
    tiles->float_rows.dot(bytes(rows), kDepth * 4, kCount, kDepth, vector.data(), 32, 1, 1.5f, dots.data(), kCount);
    results.push_back(dots);
    tiles->float_rows.weigh(bytes(rows), kDepth * 4, kCount, kDepth, weights.data(), kCount, 5, weighed.data(), kDepth);
    results.push_back(weighed);
    results.push_back({tiles->row_dot(rows.data(), left.data(), 61), tiles->row_maximum(rows.data(), 61)});
    std::vector<float> line = rows;
    results.push_back({tiles->row_exponentials(line.data(), 61, 2.5f)});
    results.push_back(line);
    if (first.empty()) first = results;
    ASSERT_EQ(first.size(), results.size());
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(std::memcmp(first[i].data(), results[i].data(), first[i].size() * 4), 0) << tiles->name << " " << i;
    }
  }
}

// A row of narrow elements is what its widened copy is, and a vector what it is by itself, whatever meets the rows with
// it.
TEST(AttentionTiles, FewVectorsMeetRowsOfEveryKind) {
  constexpr int64_t kCount = 150;  // more than are weighed together
  for (const AttentionTiles* tiles : sets()) {
    for (int64_t depth : {29, 64, 128}) {
      const int64_t padded = (depth + 15) / 16 * 16, rows = kCount * depth;
      std::vector<float> source = numbers(rows, 1), vectors = numbers(8 * padded, 2), weights = numbers(8 * kCount, 3);
      for (int v = 0; v < 8; ++v) std::fill_n(vectors.begin() + v * padded + depth, padded - depth, 0.0f);
      struct Kind {
        const AttentionRows& products;
        std::vector<uint16_t> elements;
        std::vector<float> widened;
      };
      std::vector<Kind> kinds{{tiles->half_rows, {}, {}}, {tiles->bfloat16_rows, {}, {}}};
      for (float x : source) {
        kinds[0].elements.push_back(float_to_float16(x));
        kinds[0].widened.push_back(float16_to_float(kinds[0].elements.back()));
        kinds[1].elements.push_back(float_to_bfloat16(x));
        kinds[1].widened.push_back(bfloat16_to_float(kinds[1].elements.back()));
      }
      auto dot = [&](const AttentionRows& products, const void* data, int64_t size, int first, int count) {
        std::vector<float> result(count * kCount);
        products.dot(static_cast<const char*>(data), depth * size, kCount, depth, vectors.data() + first * padded,
                     padded, count, 0.7f, result.data(), kCount);
        return result;
      };
      auto weigh = [&](const AttentionRows& products, const void* data, int64_t size, int first, int count) {
        std::vector<float> result(count * depth);
        products.weigh(static_cast<const char*>(data), depth * size, kCount, depth, weights.data() + first * kCount,
                       kCount, count, result.data(), depth);
        return result;
      };
      if (tiles->bfloat16_pair_rows.dot != nullptr && depth % 2 == 0) {
        const AttentionRows& pairs = tiles->bfloat16_pair_rows;
        std::vector<uint16_t> rounded;
        for (float x : vectors) rounded.push_back(float_to_bfloat16(x));
        const int64_t pair_stride = (depth / 2 + 15) / 16 * 16;
        ASSERT_EQ(pair_stride * 2, padded);
        auto pair_dot = [&](int first, int count) {
          std::vector<float> result(count * kCount);
          pairs.dot(reinterpret_cast<const char*>(kinds[1].elements.data()), depth * 2, kCount, depth / 2,
                    rounded.data() + first * padded, pair_stride, count, 0.7f, result.data(), kCount);
          return result;
        };
        std::vector<float> dots, sums;
        for (int v = 0; v < 8; ++v) {
          for (float x : pair_dot(v, 1)) dots.push_back(x);
          for (float x : weigh(pairs, kinds[1].elements.data(), 2, v, 1)) sums.push_back(x);
        }
        for (int count = 2; count <= 8; ++count) {
          EXPECT_EQ(pair_dot(0, count), std::vector<float>(dots.begin(), dots.begin() + count * kCount)) << count;
          EXPECT_EQ(weigh(pairs, kinds[1].elements.data(), 2, 0, count),
                    std::vector<float>(sums.begin(), sums.begin() + count * depth))
              << count;
        }
      }
      for (const Kind& kind : kinds) {
        for (int count = 1; count <= 8; ++count) {
          std::vector<float> dots, sums;
          for (int v = 0; v < count; ++v) {
            for (float x : dot(tiles->float_rows, kind.widened.data(), 4, v, 1)) dots.push_back(x);
            for (float x : weigh(tiles->float_rows, kind.widened.data(), 4, v, 1)) sums.push_back(x);
          }
          EXPECT_EQ(dot(tiles->float_rows, kind.widened.data(), 4, 0, count), dots) << tiles->name << " " << count;
          EXPECT_EQ(dot(kind.products, kind.elements.data(), 2, 0, count), dots) << tiles->name << " " << count;
          EXPECT_EQ(weigh(tiles->float_rows, kind.widened.data(), 4, 0, count), sums) << tiles->name << " " << count;
          EXPECT_EQ(weigh(kind.products, kind.elements.data(), 2, 0, count), sums) << tiles->name << " " << count;
        }
      }
    }
  }
}

// Four vectors side by side. The gaps between rows and what follows the last one hold NaN, which must not be met.
TEST(AttentionTiles, GroupsMeetRowsOfEveryKind) {
  constexpr int64_t kCount = 61, kGap = 6, kStride = 64;
  for (int64_t depth : {1, 3, 8, 29, 64, 90, 128}) {
    const int64_t padded = (depth + 3) / 4 * 4, row = depth + kGap;
    std::vector<float> rows = numbers(kCount * row, 1), vectors = numbers(8 * depth, 2), panel(8 * padded);
    std::vector<uint16_t> halves, bfloats;
    std::vector<float> widened_halves, widened_bfloats, scratch(kWidenedRows * (padded + 12));
    for (int64_t i = 0; i < kCount * row; ++i) {
      if (i % row >= depth) rows[i] = std::numeric_limits<float>::quiet_NaN();
      widened_halves.push_back(float16_to_float(halves.emplace_back(float_to_float16(rows[i]))));
      widened_bfloats.push_back(bfloat16_to_float(bfloats.emplace_back(float_to_bfloat16(rows[i]))));
    }
    for (int64_t v = 0; v < 8; ++v) {
      for (int64_t u = 0; u < depth; ++u) {
        panel[v / 4 * padded * 4 + u / 4 * 16 + v % 4 * 4 + u % 4] = vectors[v * depth + u];
      }
    }
    auto dot = [&](const AttentionRows& products, const void* data, int64_t size, int64_t count, int group,
                   int groups) {
      std::vector<float> result(4 * groups * kStride, -1.0f);
      products.dot_groups(static_cast<const char*>(data), row * size, count, depth, panel.data() + group * padded * 4,
                          groups, 0.7f, result.data(), kStride, static_cast<const char*>(data), scratch.data());
      return result;
    };
    std::vector<float> first;
    for (const AttentionTiles* tiles : sets()) {
      SCOPED_TRACE(tiles->name + std::string(" ") + std::to_string(depth));
      for (int64_t count : {0, 1, 5, 24, 30, 61}) {
        std::vector<float> result = dot(tiles->float_rows, rows.data(), 4, count, 0, 2);
        for (int64_t v = 0; v < 8; ++v) {
          for (int64_t k = 0; k < kStride; ++k) {
            double want = 0, size = 0;
            for (int64_t u = 0; u < depth && k < count; ++u) {
              const double term = static_cast<double>(rows[k * row + u]) * vectors[v * depth + u];
              want += term, size += std::abs(term);
            }
            const float got = result[v * kStride + k];
            // Groups write no further than the rows go.
            ASSERT_NEAR(got, k < count ? 0.7 * want : -1, size * 0x1p-20) << v << " " << k;
          }
        }
        if (count == kCount) {
          if (first.empty()) first = result;
          EXPECT_EQ(result, first);
        }
        std::vector<float> low = dot(tiles->float_rows, rows.data(), 4, count, 0, 1),
                           high = dot(tiles->float_rows, rows.data(), 4, count, 1, 1);
        low.insert(low.end(), high.begin(), high.end());
        EXPECT_EQ(result, low);
        if (tiles->half_rows.dot_groups == nullptr) continue;
        EXPECT_EQ(dot(tiles->half_rows, halves.data(), 2, count, 0, 2),
                  dot(tiles->float_rows, widened_halves.data(), 4, count, 0, 2));
        EXPECT_EQ(dot(tiles->bfloat16_rows, bfloats.data(), 2, count, 0, 2),
                  dot(tiles->float_rows, widened_bfloats.data(), 4, count, 0, 2));
      }
    }
  }
}

// The bound grows with the argument: 1 / ln 2 and the product with it are rounded.
TEST(AttentionTiles, ExponentialsAreWithinTwoUlpAndTheRoundingOfTheirArgument) {
  for (const AttentionTiles* tiles : sets()) {
    std::vector<float> row;
    for (float x = -86; x <= 0; x += 0.0137f) row.push_back(x);
    std::vector<float> values = row;
    tiles->row_exponentials(values.data(), static_cast<int64_t>(values.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) {
      double want = std::exp(static_cast<double>(row[i]));
      ASSERT_NEAR(values[i] / want, 1.0, 2.4e-7 + std::abs(row[i]) * 1.25 * 0x1p-24) << row[i];
    }
    float special[] = {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 0, -200};
    tiles->row_exponentials(special, 4, 0);
    EXPECT_EQ(special[0], 0.0f);
    EXPECT_TRUE(std::isnan(special[1]));
    EXPECT_EQ(special[2], 1.0f);
    EXPECT_EQ(special[3], 0.0f);
  }
}

}  // namespace
}  // namespace neuron::kernels
