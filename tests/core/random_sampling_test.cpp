#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/base/philox.h"
#include "neuron/base/random_numbers.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

double uniform(uint64_t seed, int64_t offset, size_t element) {
  return static_cast<double>(random_long_word(seed, static_cast<uint64_t>(offset), element) >> 11) * 0x1p-53;
}

TEST(Philox, MatchesThePublishedVector) {
  // Known answer of the reference implementation for counter 0 and key 0.
  std::array<uint32_t, 4> expected = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(philox(0, 0), expected);
}

std::vector<int64_t> permutation(int64_t n, int64_t seed, int64_t offset) {
  std::vector<int64_t> values(static_cast<size_t>(n), -1);
  TensorView out{values.data(), DType::Int64, {n}, {1}};
  Scalar scalars[] = {Scalar::of(seed), Scalar::of(offset)};
  find_kernel("random_permutation")->run({.outputs = {&out, 1}, .inputs = {}, .attributes = {}, .scalars = scalars});
  return values;
}

TEST(RandomPermutation, HoldsEachNumberOnceAndFollowsTheSeed) {
  std::vector<int64_t> first = permutation(257, 1, 0), sorted = first, identity(257);
  std::iota(identity.begin(), identity.end(), 0);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, identity);
  EXPECT_NE(first, identity);
  EXPECT_EQ(permutation(257, 1, 0), first);
  EXPECT_NE(permutation(257, 2, 0), first);
  EXPECT_NE(permutation(257, 1, 260), first);
}

TEST(RandomPermutation, EveryOrderIsAsLikely) {
  std::map<std::vector<int64_t>, int> counts;
  constexpr int kDraws = 24000;
  for (int64_t i = 0; i < kDraws; ++i) ++counts[permutation(4, 3, 4 * i)];
  EXPECT_EQ(counts.size(), 24u);
  double chi_square = 0;  // 23 degrees of freedom: above 50 once in a thousand
  for (const auto& [order, count] : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000;
  EXPECT_LT(chi_square, 50);
  // Where an element of many ends up, in eighths.
  int places[8][8] = {};
  for (int64_t i = 0; i < 100; ++i) {
    const std::vector<int64_t> order = permutation(800, 5, 800 * i);
    for (size_t place = 0; place < order.size(); ++place) ++places[place / 100][order[place] / 100];
  }
  for (const auto& row : places) {
    for (int count : row) EXPECT_NEAR(count, 1250, 5 * std::sqrt(1250));
  }
}

TEST(RandomPermutation, IsTheSameForOtherDtypesAndStrides) {
  const std::vector<int64_t> expected = permutation(3000, 7, 40);
  std::vector<float> values(6000, -1);
  TensorView out{values.data(), DType::Float32, {3000}, {2}};
  Scalar scalars[] = {Scalar::of(int64_t{7}), Scalar::of(int64_t{40})};
  find_kernel("random_permutation")->run({.outputs = {&out, 1}, .inputs = {}, .attributes = {}, .scalars = scalars});
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(values[2 * i], static_cast<float>(expected[i]));
    ASSERT_EQ(values[2 * i + 1], -1);
  }
}

std::vector<int64_t> draw(std::vector<float> weights, int64_t samples, bool replacement, int64_t offset = 0) {
  std::vector<int64_t> drawn(static_cast<size_t>(samples));
  TensorView out{drawn.data(), DType::Int64, {1, samples}, {samples, 1}};
  TensorView in{weights.data(), DType::Float32, {1, static_cast<int64_t>(weights.size())}, {0, 1}};
  Scalar scalars[] = {Scalar::of(int64_t{3}), Scalar::of(offset)};
  int64_t attributes[] = {replacement};
  find_kernel("multinomial")
      ->run({.outputs = {&out, 1}, .inputs = {&in, 1}, .attributes = attributes, .scalars = scalars});
  return drawn;
}

TEST(Multinomial, DrawsInProportion) {
  int64_t counts[4] = {};
  for (int64_t category : draw({1, 0, 3, 4}, 40000, true)) ++counts[category];
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(static_cast<double>(counts[0]) / 40000, 0.125, 0.01);
  EXPECT_NEAR(static_cast<double>(counts[2]) / 40000, 0.375, 0.01);
}

TEST(Multinomial, WithoutReplacementTakesWeightedCategoriesFirst) {
  std::vector<int64_t> drawn = draw({1, 0, 3, 4}, 4, false);
  EXPECT_EQ(drawn[3], 1);
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(drawn, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(Multinomial, OneSampleIsTheFirstOfSeveral) {
  for (int64_t offset = 0; offset < 400 * 16; offset += 16) {
    std::vector<float> weights(16);
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto number = static_cast<float>(uniform(7, offset, i));
      weights[i] = number < 0.3f ? 0.0f : std::pow(number, 8.0f);  // some none, some little
    }
    // All of them, by the definition.
    std::vector<std::pair<double, int64_t>> order;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double variate = -std::log(1 - uniform(3, offset, i));
      order.emplace_back(weights[i] == 0 ? HUGE_VAL : variate / static_cast<double>(weights[i]),
                         static_cast<int64_t>(i));
    }
    std::sort(order.begin(), order.end());
    std::vector<int64_t> all = draw(weights, 16, false, offset), expected;
    for (const auto& [time, category] : order) expected.push_back(category);
    ASSERT_EQ(all, expected);
    ASSERT_EQ(draw(weights, 1, false, offset)[0], expected[0]);
    ASSERT_EQ(draw(weights, 3, false, offset)[2], expected[2]);
  }
}

TEST(Multinomial, RefusesWhatIsNoDistribution) {
  for (float bad : {-1.0f, HUGE_VALF, std::nanf("")}) {
    try {
      draw({1, bad}, 1, true);
      FAIL() << "no error for " << bad;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "probability tensor contains either `inf`, `nan` or element < 0");
    }
  }
  EXPECT_THROW(draw({0, 0}, 1, true), Error);
}

}  // namespace
}  // namespace neuron::kernels
