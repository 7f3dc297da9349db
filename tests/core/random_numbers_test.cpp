// The numbers of docs/numerics.md: their definition, and the lines that kernels make many at a time.
#include "neuron/base/random_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <set>
#include <vector>

#include "neuron/base/philox.h"
#include "neuron/base/processor.h"
#include "neuron/kernels/random_lines.h"

namespace neuron {
namespace {

constexpr uint64_t kSeed = 0x123456789abcdef0;
// The second carries into the high half of the counter within a group of elements.
constexpr uint64_t kOffsets[] = {0, 0xfffffff4, 0x1234567890abc};

TEST(Philox, MatchesThePublishedVectors) {
  // Known answers of the reference implementation: counter 0 and key 0; the upper half of its counter is always 0 here.
  std::array<uint32_t, 4> expected = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(philox(0, 0), expected);
}

TEST(RandomNumbers, ElementsShareBlocks) {
  for (uint64_t offset : kOffsets) {
    for (uint64_t i = 0; i < 300; ++i) {
      const uint64_t b = i / 64, q = i % 64 / 16, j = i % 16;
      ASSERT_EQ(random_word(kSeed, offset, i), philox(kSeed, offset + 16 * b + j)[q]) << i;
      const uint64_t wide_b = i / 32, wide_q = i % 32 / 16;
      const auto words = philox(kSeed, offset + 16 * wide_b + j);
      ASSERT_EQ(random_long_word(kSeed, offset, i), uint64_t{words[2 * wide_q + 1]} << 32 | words[2 * wide_q]) << i;
    }
  }
}

TEST(RandomNumbers, CountersStayBelowTheNumberOfElements) {
  // What one operation of n elements reads is not read by the next, whose offset is n further, of whatever kind it is.
  for (uint64_t n = 1; n < 300; ++n) {
    std::set<uint32_t> first;
    for (uint64_t i = 0; i < n; ++i) {
      first.insert(random_word(kSeed, 0, i));
      const uint64_t wide = random_long_word(kSeed, 0, i);
      first.insert(static_cast<uint32_t>(wide));
      first.insert(static_cast<uint32_t>(wide >> 32));
    }
    for (uint64_t i = 0; i < 100; ++i) {
      const uint64_t wide = random_long_word(kSeed, n, i);
      ASSERT_FALSE(first.contains(random_word(kSeed, n, i))) << n << " " << i;
      ASSERT_FALSE(first.contains(static_cast<uint32_t>(wide)) || first.contains(static_cast<uint32_t>(wide >> 32)));
    }
  }
}

TEST(RandomNumbers, NormalsAreBoxMuller) {
  double largest = 0, radius = 0;
  for (uint64_t i = 0; i < 200000; ++i) {
    const uint64_t first = i & ~uint64_t{16};
    const uint32_t a = random_word(kSeed, 5, first), b = random_word(kSeed, 5, first + 16);
    const double v = static_cast<double>(static_cast<float>(static_cast<int32_t>(a >> 1 | 1))) * 0x1p-31;
    const double r = std::sqrt(-2 * std::log(v)),
                 t = 2 * std::numbers::pi * static_cast<double>((b >> 6 & 0xffffff) | 1) * 0x1p-26;
    const double cosine = std::cos(t) * (b >> 31 != 0 ? -1 : 1), sine = std::sin(t) * ((b >> 30 & 1) != 0 ? -1 : 1);
    const double expected = r * (i % 32 < 16 ? cosine : sine);
    largest =
        std::max(largest, std::fabs(random_normal(kSeed, 5, i) - expected) / std::max(std::fabs(expected), 1e-30));
    radius = std::max(radius, r);
  }
  EXPECT_LT(largest, 4e-7);  // relative
  EXPECT_GT(radius, 4.5);
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t first = i & ~uint64_t{16};
    const double v = (static_cast<double>(random_long_word(kSeed, 5, first) >> 11) + 1) * 0x1p-53,
                 turn = static_cast<double>(random_long_word(kSeed, 5, first + 16) >> 11) * 0x1p-53;
    const double radius_of = std::sqrt(-2 * std::log(v)), angle = 2 * std::numbers::pi * turn;
    EXPECT_EQ(random_normal_double(kSeed, 5, i), radius_of * (i % 32 < 16 ? std::cos(angle) : std::sin(angle)));
  }
}

template <typename Number>
void expect_line(void (*line)(uint64_t, uint64_t, uint64_t, uint64_t, int64_t, Number*),
                 Number (*number)(uint64_t, uint64_t, uint64_t)) {
  for (uint64_t offset : kOffsets) {
    for (uint64_t first : {0, 5, 16, 77, 1000}) {
      for (uint64_t step : {0, 1, 2, 3, 64, 1001}) {
        for (int64_t count : {0, 1, 7, 8, 16, 31, 64, 200}) {
          std::vector<Number> got(static_cast<size_t>(count) + 1, Number{77});
          line(kSeed, offset, first, step, count, got.data());
          for (int64_t k = 0; k < count; ++k) {
            const Number want = number(kSeed, offset, first + step * static_cast<uint64_t>(k));
            ASSERT_EQ(std::memcmp(&got[static_cast<size_t>(k)], &want, sizeof want), 0)
                << offset << " " << first << " " << step << " " << count << " " << k;
          }
          ASSERT_EQ(got.back(), Number{77});
        }
      }
    }
  }
}

TEST(RandomLines, AreTheNumbersOneByOne) {
  std::vector<const kernels::RandomLines*> all = {&kernels::random_lines_avx2};
  if (processor_features().runs_avx512()) all.push_back(&kernels::random_lines_avx512);
  for (const kernels::RandomLines* lines : all) {
    expect_line(lines->words, random_word);
    expect_line(lines->long_words, random_long_word);
    expect_line(lines->normals, random_normal);
    expect_line(lines->double_normals, random_normal_double);
  }
}

// Statistics of the numbers as they are handed out: fixed seeds, so that a test passes always or never.
struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};
Moments moments_of(const std::vector<float>& x) {
  const auto n = static_cast<double>(x.size());
  Moments m;
  for (float value : x) m.mean += value / n;
  for (float value : x) {
    const double d = value - m.mean;
    m.variance += d * d / n, m.skewness += d * d * d / n, m.kurtosis += d * d * d * d / n;
  }
  m.skewness /= std::pow(m.variance, 1.5), m.kurtosis /= m.variance * m.variance;
  return m;
}

// Largest distance of the empirical distribution from `distribution`, times sqrt(n).
template <typename Distribution>
double kolmogorov(std::vector<float> x, Distribution&& distribution) {
  std::sort(x.begin(), x.end());
  double largest = 0;
  const auto n = static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double f = distribution(static_cast<double>(x[i]));
    largest = std::max({largest, static_cast<double>(i + 1) / n - f, f - static_cast<double>(i) / n});
  }
  return largest * std::sqrt(n);
}

double correlation(const std::vector<float>& x, const std::vector<float>& y, size_t lag) {
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i + lag < x.size(); ++i) xy += x[i] * y[i + lag], xx += x[i] * x[i], yy += y[i + lag] * y[i + lag];
  return xy / std::sqrt(xx * yy);
}

constexpr int64_t kMany = 1 << 20;

void expect_unrelated(const std::vector<float>& x, const std::vector<float>& next) {
  const double bound = 5 / std::sqrt(static_cast<double>(kMany));
  for (size_t lag : {1, 2, 7, 8, 15, 16, 17, 31, 32, 48, 63, 64, 65, 1024}) {
    EXPECT_LT(std::fabs(correlation(x, x, lag)), bound) << "lag " << lag;
  }
  for (size_t lag : {0, 1, 16, 32}) EXPECT_LT(std::fabs(correlation(x, next, lag)), bound) << "next, lag " << lag;
}

TEST(RandomStatistics, Normals) {
  for (uint64_t seed : {0, 1, 2}) {
    std::vector<float> x(kMany), next(kMany);
    kernels::random_lines().normals(seed, 0, 0, 1, kMany, x.data());
    kernels::random_lines().normals(seed, kMany, 0, 1, kMany, next.data());
    const Moments m = moments_of(x);
    const double n = kMany;
    EXPECT_LT(std::fabs(m.mean), 4 / std::sqrt(n));
    EXPECT_LT(std::fabs(m.variance - 1), 4 * std::sqrt(2 / n));
    EXPECT_LT(std::fabs(m.skewness), 4 * std::sqrt(6 / n));
    EXPECT_LT(std::fabs(m.kurtosis - 3), 4 * std::sqrt(24 / n));
    EXPECT_LT(kolmogorov(x, [](double value) { return 0.5 * std::erfc(-value / std::numbers::sqrt2); }), 1.95);
    expect_unrelated(x, next);
    // Squares too: cosine and sine share a radius.
    auto centred = [](std::vector<float> values) {
      for (float& value : values) value = value * value - 1;
      return values;
    };
    expect_unrelated(centred(x), centred(next));
    // The tails: beyond 4 lie 63.3 in a million.
    const auto beyond = std::count_if(x.begin(), x.end(), [](float value) { return std::fabs(value) > 4; });
    EXPECT_NEAR(static_cast<double>(beyond), 6.334e-5 * n, 4 * std::sqrt(6.334e-5 * n));
  }
}

TEST(RandomStatistics, Words) {
  for (uint64_t seed : {0, 1, 2}) {
    auto uniform = [&](uint64_t offset) {
      std::vector<uint32_t> words(kMany);
      kernels::random_lines().words(seed, offset, 0, 1, kMany, words.data());
      std::vector<float> x(kMany);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(words[i] >> 8) * 0x1p-24f;
      return x;
    };
    std::vector<float> x = uniform(0), next = uniform(kMany);
    EXPECT_LT(kolmogorov(x, [](double value) { return value; }), 1.95);
    for (float& value : x) value -= 0.5f;
    for (float& value : next) value -= 0.5f;
    expect_unrelated(x, next);
  }
}

}  // namespace
}  // namespace neuron
