// The tiles of attention, of every instruction set: against each other and against float64.
#include <gtest/gtest.h>

#include <algorithm>
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
                     tall = numbers(kCount * kLanes, 5), vectors = numbers(64, 6), weights = numbers(8 * kCount, 7);
  for (int i = kDepth; i < 32; ++i) vectors[i] = vectors[32 + i] = 0;
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
    std::vector<float> target(kCount * kWidth, 1.0f), dots(2 * kCount), weighed(5 * kDepth);
    tiles->floats.rows_by_rows(bytes(left), kLanes * 4, kCount, kLanes, right.data(), kWidth, target.data());
    results.push_back(target);
    for (int count : {1, 2}) {
      tiles->float_rows.dot(bytes(rows), kDepth * 4, kCount, kDepth, vectors.data(), 32, count, 1.5f, dots.data());
      results.push_back(dots);
    }
    tiles->float_rows.weigh(bytes(rows), kDepth * 4, kCount, kDepth, weights.data(), 8, 5, weighed.data(), kDepth,
                            nullptr);
    results.push_back(weighed);
    for (int lanes : {1, 2, 4, 8}) {
      std::vector<float> scores(weights.begin(), weights.begin() + kCount * lanes), maxima(8), sums(8);
      tiles->lane_maxima(scores.data(), kCount, lanes, maxima.data());
      tiles->lane_exponentials(scores.data(), kCount, lanes, maxima.data(), sums.data());
      results.insert(results.end(), {scores, maxima, sums});
    }
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

// The lanes that `vectors` vectors take.
int lanes_of(int vectors) { return vectors <= 2 ? vectors : vectors <= 4 ? 4 : 8; }

// A row of narrow elements is what its widened copy is, and a vector what it is by itself, whatever meets the rows with
// it.
TEST(AttentionTiles, FewVectorsMeetRowsOfEveryKind) {
  constexpr int64_t kCount = 150;  // more than are weighed together
  for (const AttentionTiles* tiles : sets()) {
    for (int64_t depth : {29, 64, 128, 200}) {
      const int64_t padded = (depth + 15) / 16 * 16, rows = kCount * depth;
      std::vector<float> source = numbers(rows, 1), vectors = numbers(2 * padded, 2), weights = numbers(8 * kCount, 3);
      for (int v = 0; v < 2; ++v) std::fill_n(vectors.begin() + v * padded + depth, padded - depth, 0.0f);
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
      // [vector][key], as weights are given to the others.
      auto by_vector = [&](const std::vector<float>& lanes, int count) {
        std::vector<float> result(count * kCount);
        for (int64_t k = 0; k < kCount; ++k) {
          for (int v = 0; v < count; ++v) result[v * kCount + k] = lanes[k * count + v];
        }
        return result;
      };
      auto dot = [&](const AttentionRows& products, const void* data, int64_t size, int first, int count) {
        std::vector<float> result(count * kCount);
        products.dot(static_cast<const char*>(data), depth * size, kCount, depth, vectors.data() + first * padded,
                     padded, count, 0.7f, result.data());
        return by_vector(result, count);
      };
      auto weigh = [&](const AttentionRows& products, const void* data, int64_t size, int first, int count) {
        const int lanes = lanes_of(count);
        std::vector<float> result(count * depth), side_by_side(lanes * kCount);
        for (int64_t k = 0; k < kCount; ++k) {
          for (int v = 0; v < count; ++v) side_by_side[k * lanes + v] = weights[(first + v) * kCount + k];
        }
        products.weigh(static_cast<const char*>(data), depth * size, kCount, depth, side_by_side.data(), lanes, count,
                       result.data(), depth, static_cast<const char*>(data));
        return result;
      };
      if (tiles->bfloat16_pair_rows.dot != nullptr && depth % 2 == 0) {
        const AttentionRows& pairs = tiles->bfloat16_pair_rows;
        std::vector<uint16_t> rounded;
        for (float x : vectors) rounded.push_back(float_to_bfloat16(x));
        const int64_t pair_stride = padded / 2;
        auto pair_dot = [&](int first, int count) {
          std::vector<float> result(count * kCount);
          const int64_t units = depth / 2;
          std::vector<uint32_t> given(count * ((units + 15) / 16 * 16));
          for (int v = 0; v < count; ++v) {
            std::memcpy(given.data() + v * static_cast<int64_t>(given.size()) / count,
                        rounded.data() + (first + v) * padded, pair_stride * 4);
          }
          pairs.dot(reinterpret_cast<const char*>(kinds[1].elements.data()), depth * 2, kCount, units, given.data(),
                    static_cast<int64_t>(given.size()) / count, count, 0.7f, result.data());
          return by_vector(result, count);
        };
        std::vector<float> dots, sums;
        for (int v = 0; v < 2; ++v) {
          for (float x : pair_dot(v, 1)) dots.push_back(x);
        }
        EXPECT_EQ(pair_dot(0, 2), dots);
        for (int v = 0; v < 8; ++v) {
          for (float x : weigh(pairs, kinds[1].elements.data(), 2, v, 1)) sums.push_back(x);
        }
        for (int count = 2; count <= 8; ++count) {
          EXPECT_EQ(weigh(pairs, kinds[1].elements.data(), 2, 0, count),
                    std::vector<float>(sums.begin(), sums.begin() + count * depth))
              << count;
        }
      }
      for (const Kind& kind : kinds) {
        std::vector<float> dots, sums;
        for (int v = 0; v < 2; ++v) {
          for (float x : dot(tiles->float_rows, kind.widened.data(), 4, v, 1)) dots.push_back(x);
        }
        for (int v = 0; v < 8; ++v) {
          for (float x : weigh(tiles->float_rows, kind.widened.data(), 4, v, 1)) sums.push_back(x);
        }
        for (int count = 1; count <= 2; ++count) {
          const std::vector<float> first(dots.begin(), dots.begin() + count * kCount);
          EXPECT_EQ(dot(tiles->float_rows, kind.widened.data(), 4, 0, count), first) << tiles->name << " " << count;
          EXPECT_EQ(dot(kind.products, kind.elements.data(), 2, 0, count), first) << tiles->name << " " << count;
        }
        for (int count = 1; count <= 8; ++count) {
          const std::vector<float> first(sums.begin(), sums.begin() + count * depth);
          EXPECT_EQ(weigh(tiles->float_rows, kind.widened.data(), 4, 0, count), first) << tiles->name << " " << count;
          EXPECT_EQ(weigh(kind.products, kind.elements.data(), 2, 0, count), first) << tiles->name << " " << count;
        }
      }
    }
  }
}

// Vectors side by side. The gaps between rows and what follows the last one hold NaN, which must not be met.
TEST(AttentionTiles, GroupsMeetRowsOfEveryKind) {
  constexpr int64_t kCount = 61, kRoom = 64;
  for (int64_t gap : {0, 6}) {
    for (int64_t depth : {1, 3, 8, 29, 64, 90, 128}) {
      const int64_t padded = (depth + 3) / 4 * 4, row = depth + gap;
      std::vector<float> rows = numbers(kCount * row, 1), vectors = numbers(8 * depth, 2);
      std::vector<uint16_t> halves, bfloats;
      std::vector<float> widened_halves, widened_bfloats, scratch(kWidenedRows * (padded + 12));
      for (int64_t i = 0; i < kCount * row; ++i) {
        if (i % row >= depth) rows[i] = std::numeric_limits<float>::quiet_NaN();
        widened_halves.push_back(float16_to_float(halves.emplace_back(float_to_float16(rows[i]))));
        widened_bfloats.push_back(bfloat16_to_float(bfloats.emplace_back(float_to_bfloat16(rows[i]))));
      }
      // [key][lane] of vectors from `lane` on.
      auto dot = [&](const AttentionRows& products, const void* data, int64_t size, int64_t count, int first,
                     int lanes) {
        std::vector<float> panel(lanes * padded), result(lanes * kRoom, -1.0f);
        for (int v = 0; v < lanes; ++v) {
          for (int64_t u = 0; u < depth; ++u) {
            panel[u / 4 * lanes * 4 + panel_place(v, lanes) * 4 + u % 4] = vectors[(first + v) * depth + u];
          }
        }
        products.dot_groups(static_cast<const char*>(data), row * size, count, depth, panel.data(), lanes, 0.7f,
                            result.data(), static_cast<const char*>(data), scratch.data());
        return result;
      };
      std::vector<float> first;
      for (const AttentionTiles* tiles : sets()) {
        SCOPED_TRACE(tiles->name + std::string(" ") + std::to_string(depth));
        for (int64_t count : {0, 1, 5, 24, 30, 61}) {
          std::vector<float> result = dot(tiles->float_rows, rows.data(), 4, count, 0, 8);
          for (int64_t v = 0; v < 8; ++v) {
            for (int64_t k = 0; k < kRoom; ++k) {
              double want = 0, size = 0;
              for (int64_t u = 0; u < depth && k < count; ++u) {
                const double term = static_cast<double>(rows[k * row + u]) * vectors[v * depth + u];
                want += term, size += std::abs(term);
              }
              const float got = result[k * 8 + v];
              // Groups write no further than the rows go.
              ASSERT_NEAR(got, k < count ? 0.7 * want : -1, size * 0x1p-20) << v << " " << k;
            }
          }
          if (count == kCount) {
            if (first.empty()) first = result;
            EXPECT_EQ(result, first);
          }
          for (int group : {0, 4}) {
            std::vector<float> four = dot(tiles->float_rows, rows.data(), 4, count, group, 4), same;
            for (int64_t k = 0; k < kRoom; ++k) {
              same.insert(same.end(), result.begin() + k * 8 + group, result.begin() + k * 8 + group + 4);
            }
            EXPECT_EQ(four, same);
          }
          for (int lanes : {4, 8}) {
            EXPECT_EQ(dot(tiles->half_rows, halves.data(), 2, count, 0, lanes),
                      dot(tiles->float_rows, widened_halves.data(), 4, count, 0, lanes));
            EXPECT_EQ(dot(tiles->bfloat16_rows, bfloats.data(), 2, count, 0, lanes),
                      dot(tiles->float_rows, widened_bfloats.data(), 4, count, 0, lanes));
          }
        }
      }
    }
  }
}

// A lane is what a row of its keys is. What is beyond the last key is not written.
TEST(AttentionTiles, LanesHaveMaximaAndExponentialsOfTheirOwn) {
  for (const AttentionTiles* tiles : sets()) {
    for (int lanes : {1, 2, 4, 8}) {
      for (int64_t keys : {0, 1, 2, 3, 7, 16, 33, 150, 512}) {
        SCOPED_TRACE(tiles->name + std::string(" ") + std::to_string(lanes) + " " + std::to_string(keys));
        std::vector<float> scores = numbers(keys * lanes + 16, 11), given = scores, maxima(9, 7.0f), sums(9, 7.0f);
        tiles->lane_maxima(scores.data(), keys, lanes, maxima.data());
        tiles->lane_exponentials(scores.data(), keys, lanes, maxima.data(), sums.data());
        for (int l = 0; l < lanes; ++l) {
          std::vector<float> row(keys);
          for (int64_t k = 0; k < keys; ++k) row[k] = given[k * lanes + l];
          ASSERT_EQ(maxima[l], tiles->row_maximum(row.data(), keys));
          if (keys == 0) continue;
          ASSERT_EQ(sums[l], tiles->row_exponentials(row.data(), keys, maxima[l]));
          for (int64_t k = 0; k < keys; ++k) ASSERT_EQ(scores[k * lanes + l], row[k]);
        }
        EXPECT_EQ(maxima[lanes], 7.0f);
        EXPECT_EQ(sums[lanes], 7.0f);
        EXPECT_TRUE(std::equal(scores.begin() + keys * lanes, scores.end(), given.begin() + keys * lanes));
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
