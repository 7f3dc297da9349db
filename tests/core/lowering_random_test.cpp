#include "neuron/base/random_numbers.h"
#include "tests/core/lowering_fixture.h"

namespace neuron::lowering::testing {
namespace {

constexpr DType f32 = DType::Float32, f64 = DType::Float64, bf16 = DType::BFloat16, i64 = DType::Int64,
                i1 = DType::Bool;

constexpr int64_t seed = 0x123456789abcdef0, offset = 0xfffffff0;
Operand index(int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  return {i64, values};
}

TEST(Random, UniformTakesTheUpperBits) {
  std::vector<double> actual = evaluate("uniform", f32, {index(200), seed, offset, 0.0, 1.0});
  for (int i = 0; i < 200; ++i) EXPECT_EQ(actual[i], (random_word(seed, offset, i) >> 8) * 0x1p-24) << i;
  actual = evaluate("uniform", bf16, {index(200), seed, offset, 0.0, 1.0});
  for (int i = 0; i < 200; ++i) EXPECT_EQ(actual[i], (random_word(seed, offset, i) >> 24) * 0x1p-8) << i;
  actual = evaluate("uniform", f64, {index(100), seed, offset, -1.0, 1.0});
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(actual[i], static_cast<double>(random_long_word(seed, offset, i) >> 11) * 0x1p-53 * 2 - 1);
}

TEST(Random, NarrowUniformExcludesItsUpperBound) {
  for (double u : evaluate("uniform", bf16, {index(4000), 7, 0, 0.0, 1.0})) EXPECT_LT(u, 1.0);
}

TEST(Random, NormalHasMeanAndDeviation) {
  std::vector<double> actual = evaluate("normal", f32, {index(100), seed, offset, 3.0, 2.0});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(actual[i], random_normal(seed, offset, i) * 2.0f + 3.0f) << i;
  actual = evaluate("normal", f64, {index(100), seed, offset, 3.0, 2.0});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(actual[i], random_normal_double(seed, offset, i) * 2 + 3) << i;
}

TEST(Random, IntegersScaleAWordOrTakeARemainder) {
  std::vector<double> narrow = evaluate("random", i64, {index(100), seed, offset, -5, 1000}, {0}),
                      wide = evaluate("random", i64, {index(100), seed, offset, -5, int64_t{1} << 40}, {1}),
                      power = evaluate("random", i64, {index(100), seed, offset, -5, int64_t{1} << 40}, {3});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(narrow[i], static_cast<double>((random_word(seed, offset, i) * uint64_t{1000}) >> 32) - 5);
    EXPECT_EQ(wide[i], power[i]);
    EXPECT_EQ(wide[i], static_cast<double>(random_long_word(seed, offset, i) % (uint64_t{1} << 40)) - 5);
  }
}

TEST(Random, MomentsOfTheDistributions) {
  auto mean_of = [](const std::vector<double>& x) {
    double sum = 0;
    for (double value : x) sum += value;
    return sum / static_cast<double>(x.size());
  };
  int64_t n = 20000;
  EXPECT_NEAR(mean_of(evaluate("normal", f32, {index(n), 1, 0, 0.0, 1.0})), 0, 0.03);
  EXPECT_NEAR(mean_of(evaluate("exponential", f32, {index(n), 1, 0, 2.0})), 0.5, 0.02);
  EXPECT_NEAR(mean_of(evaluate("bernoulli", f32, {index(n), 1, 0, 0.3})), 0.3, 0.01);
  EXPECT_NEAR(mean_of(evaluate("geometric", f32, {index(n), 1, 0, 0.25})), 4, 0.1);
  EXPECT_NEAR(mean_of(evaluate("random", i64, {index(n), 1, 0, 10, 6}, {0})), 12.5, 0.05);
  EXPECT_NEAR(mean_of(evaluate("random", i64, {index(n), 1, 0, -5, 6}, {1})), -2.5, 0.05);
}

TEST(Random, DropoutScalesWhatItKeeps) {
  std::vector<double> ones(1000, 1.0);
  auto results = run("native_dropout", f32, {f32, i1}, {index(1000), 5, 0, {f32, ones}, 0.25});
  std::vector<double> out = values(results[0]), mask = values(results[1]);
  int kept = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(mask[i], (random_word(5, 0, i) >> 8) * 0x1p-24 < 0.75);
    EXPECT_EQ(out[i], mask[i] != 0 ? double{1.0f / 0.75f} : 0.0);
    kept += mask[i] != 0;
  }
  EXPECT_NEAR(kept, 750, 50);
  expect_values(evaluate("native_dropout_backward", f32, {{f32, {3, 3}}, {i1, {1, 0}}, 2.0}), {6, 0});
}

TEST(Optimizers, AdamWStep) {
  double lr = 0.1, beta1 = 0.9, beta2 = 0.99, decay = 0.01, eps = 1e-8, step = 3;
  auto corrections = run("adam_corrections", f64, {f64, f64}, {{f32, {step}}, lr, beta1, beta2});
  double step_size = lr / (1 - std::pow(beta1, step)), root = std::sqrt(1 - std::pow(beta2, step));
  expect_values(values(corrections[0]), {step_size}, 1e-15);
  expect_values(values(corrections[1]), {root}, 1e-15);
  double p = 1.5, g = -0.25, m = 0.125, v = 0.5;
  auto results = run("_fused_adamw_", f64, {f64, f64, f64},
                     {{f64, {p}},
                      {f64, {g}},
                      {f64, {m}},
                      {f64, {v}},
                      lr,
                      beta1,
                      beta2,
                      decay,
                      eps,
                      Operand(corrections[0].data<double>()[0]),
                      Operand(corrections[1].data<double>()[0])},
                     {0, 0, 0, 0});
  double m2 = beta1 * m + (1 - beta1) * g, v2 = beta2 * v + (1 - beta2) * g * g;
  expect_values(values(results[0]), {p * (1 - lr * decay) - step_size * m2 / (std::sqrt(v2) / root + eps)}, 1e-14);
  expect_values(values(results[1]), {m2}, 1e-14);
  expect_values(values(results[2]), {v2}, 1e-14);
}

TEST(Optimizers, SgdWithMomentumAndAScaler) {
  double p = 1, g = 8, buffer = 0.5, scale = 4;
  std::vector<Operand> operands = {{f64, {p}}, {f64, {g}}, {f64, {buffer}}, 0.1,       0.9,
                                   0.5,        0.0,        {f64, {scale}},  {f64, {0}}};
  std::vector<int64_t> attributes = {1, 1, 1, 1, 0, 0};
  auto results = run("_fused_sgd_", f64, {f64, f64, f64}, operands, attributes);
  double gradient = 2 + 0.1 * p, velocity = 0.9 * buffer + gradient;
  expect_values(values(results[0]), {p - 0.5 * (gradient + 0.9 * velocity)}, 1e-15);
  expect_values(values(results[1]), {velocity}, 1e-15);
  expect_values(values(results[2]), {2});
  operands.back() = Operand(f64, {1});
  results = run("_fused_sgd_", f64, {f64, f64, f64}, operands, attributes);
  expect_values(values(results[0]), {p});
  expect_values(values(results[1]), {buffer});
}

TEST(Optimizers, ScaleGrowsAndBacksOff) {
  auto step = [](double found, double tracker) {
    auto results = run("_amp_update_scale_", f32, {f32, DType::Int32},
                       {{f32, {8}}, {DType::Int32, {tracker}}, {f32, {found}}, 2.0, 0.5, 3});
    return std::pair(values(results[0])[0], values(results[1])[0]);
  };
  EXPECT_EQ(step(0, 0), std::pair(8.0, 1.0));
  EXPECT_EQ(step(0, 2), std::pair(16.0, 0.0));
  EXPECT_EQ(step(1, 2), std::pair(4.0, 0.0));
}

}  // namespace
}  // namespace neuron::lowering::testing
