#include "tests/core/lowering_fixture.h"

namespace neuron::lowering::testing {
namespace {

constexpr DType f32 = DType::Float32, f64 = DType::Float64, bf16 = DType::BFloat16, i64 = DType::Int64,
                i1 = DType::Bool;
constexpr DType i8 = DType::Int8;

std::vector<double> row(std::string_view name, DType dtype, std::vector<Operand> operands,
                        std::vector<int64_t> attributes = {}) {
  return values(run(name, dtype, {dtype}, std::move(operands), std::move(attributes), 1)[0]);
}

TEST(Reductions, SumsAccumulateWide) {
  // 300 ones do not fit the eight bits of a bfloat16 accumulator.
  expect_values(row("sum", bf16, {{bf16, std::vector<double>(300, 1.0), {1, 300}}}), {300});
  expect_values(row("sum", i64, {{i8, {100, 100, 100, 1, 2, 3}, {2, 3}}}), {300, 6});
  expect_values(row("sum", i64, {{i1, {1, 0, 1}, {1, 3}}}), {2});
  expect_values(row("mean", f32, {{f32, {1, 2, 3, 4, 5, 6}, {2, 3}}, 3}), {2, 5});
  expect_values(row("prod", f64, {{f64, {2, 3, 4}, {1, 3}}}), {24});
  expect_values(row("nansum", f64, {{f64, {2, kNaN, 4}, {1, 3}}}), {6});
}

TEST(Reductions, EmptyRowsGiveTheIdentity) {
  Operand empty(f32, {}, {2, 0});
  expect_values(row("sum", f32, {empty}), {0, 0});
  expect_values(row("prod", f32, {empty}), {1, 1});
  expect_values(row("mean", f32, {empty, 0}), {kNaN, kNaN});
  expect_values(values(run("all", f32, {i1}, {empty}, {}, 1)[0]), {1, 1});
  expect_values(values(run("any", f32, {i1}, {empty}, {}, 1)[0]), {0, 0});
}

TEST(Reductions, ExtremesOfEveryClass) {
  Operand x(f32, {1, 5, 3, -2, kNaN, 7}, {2, 3});
  expect_values(row("amax", f32, {x}), {5, kNaN});
  expect_values(row("amin", f32, {x}), {1, kNaN});
  expect_values(row("amax", i8, {{i8, {-128, -128}, {1, 2}}}), {-128});
  expect_values(row("amin", i64, {{i64, {9, 4}, {1, 2}}}), {4});
  expect_values(row("amax", i1, {{i1, {0, 1}, {1, 2}}}), {1});
}

TEST(Reductions, FirstExtremeWinsAndNaNBeforeAll) {
  Operand x(f32, {1, 5, 5, -2, kNaN, kNaN, -kInfinity, -kInfinity, -kInfinity}, {3, 3});
  auto results = run("max", f32, {f32, i64}, {x, positions(3, 3)}, {}, 1);
  expect_values(values(results[0]), {5, kNaN, -kInfinity});
  expect_values(values(results[1]), {1, 1, 0});
  expect_values(values(run("argmin", f32, {i64}, {x, positions(3, 3)}, {}, 1)[0]), {0, 1, 0});
  expect_values(values(run("argmax", i8, {i64}, {{i8, {3, 9, 9}, {1, 3}}, positions(1, 3)}, {}, 1)[0]), {1});
}

TEST(Reductions, TruthAndCounts) {
  Operand x(f32, {0, kNaN, 0, 0}, {2, 2});
  expect_values(values(run("any", f32, {i1}, {x}, {}, 1)[0]), {1, 0});
  expect_values(values(run("all", f32, {i1}, {x}, {}, 1)[0]), {0, 0});
  expect_values(values(run("count_nonzero", f32, {i64}, {x}, {}, 1)[0]), {1, 0});
}

TEST(Reductions, VarianceTakesTwoPasses) {
  // With one pass over the squares nothing of the spread would be left in float32.
  Operand x(f32, {10000.0, 10000.5, 10001.0}, {1, 3});
  expect_values(row("var", f32, {x, 1.0, 3}), {0.25});
  expect_values(row("std", f32, {x, 1.0, 3}), {0.5});
  auto both = run("var_mean", f32, {f32, f32}, {x, 0.0, 3}, {}, 1);
  expect_values(values(both[0]), {1.0 / 6}, 1e-6);
  expect_values(values(both[1]), {10000.5});
  expect_values(row("var", f32, {{f32, {3}, {1, 1}}, 1.0, 1}), {kNaN});
}

TEST(Reductions, Norms) {
  Operand x(f64, {3, -4, 0}, {1, 3});
  double orders[] = {0, 0, 1, 2, kInfinity, -kInfinity};
  double expected[] = {0, 2, 7, 5, 4, 0};
  for (int64_t kind = 1; kind < 6; ++kind)
    expect_values(row("linalg_vector_norm", f64, {x, orders[kind]}, {kind}), {expected[kind]});
  expect_values(row("linalg_vector_norm", f64, {x, 3.0}, {0}), {std::cbrt(91.0)}, 1e-15);
  expect_values(row("linalg_vector_norm", f64, {{f64, {}, {1, 0}}, kInfinity}, {4}), {0});
}

TEST(Softmax, IsStableAndSumsToOne) {
  Operand x(f64, {1000, 1000 + std::log(3.0), -kInfinity}, {1, 3});
  expect_values(row("_softmax", f64, {x}), {0.25, 0.75, 0}, 1e-12);
  expect_values(row("_log_softmax", f64, {x}), {std::log(0.25), std::log(0.75), -kInfinity}, 1e-12);
  expect_values(row("logsumexp", f64, {x}), {1000 + std::log(4.0)}, 1e-15);
  Operand none(f64, {-kInfinity, -kInfinity}, {1, 2});
  expect_values(row("logsumexp", f64, {none}), {-kInfinity});
  expect_values(row("logsumexp", f64, {{f64, {kInfinity, 1}, {1, 2}}}), {kInfinity});
  expect_values(row("_softmax", f64, {none}), {kNaN, kNaN});
}

TEST(Softmax, Gradients) {
  Operand y(f64, {0.25, 0.75}, {1, 2}), g(f64, {1, 3}, {1, 2});
  double sum = 0.25 * 1 + 0.75 * 3;
  expect_values(row("_softmax_backward_data", f64, {g, y}), {(1 - sum) * 0.25, (3 - sum) * 0.75}, 1e-15);
  Operand logs(f64, {std::log(0.25), std::log(0.75)}, {1, 2});
  expect_values(row("_log_softmax_backward_data", f64, {g, logs}), {1 - 0.25 * 4, 3 - 0.75 * 4}, 1e-14);
}

TEST(Normalization, LayerNormGivesItsStatisticsInFloat32) {
  Operand x(bf16, {1, 2, 3, 4}, {1, 4}), weight(bf16, {1, 1, 2, 2}, {1, 4}), bias(bf16, {0, 0, 0, 1}, {1, 4});
  auto results = run("native_layer_norm", bf16, {f32, f32, f32}, {x, weight, bias, 0.0, 4}, {1, 1}, 1);
  double rstd = 1 / std::sqrt(1.25);
  expect_values(values(results[1]), {2.5});
  expect_values(values(results[2]), {rstd}, 1e-7);
  EXPECT_EQ(values(results[0])[3],
            double{bfloat16_to_float(float_to_bfloat16(static_cast<float>(2 * 1.5 * rstd + 1)))});
}

// The gradient of sum(g * layer_norm(x)) by differences.
TEST(Normalization, LayerNormGradient) {
  std::vector<double> x = {0.5, -1.25, 2, 0.25}, g = {1, -2, 0.5, 3}, w = {1.5, 0.5, -1, 2};
  double eps = 1e-3;
  auto loss = [&](const std::vector<double>& at) {
    std::vector<double> y = row("native_layer_norm", f64, {{f64, at, {1, 4}}, {f64, w, {1, 4}}, eps, 4}, {1, 0});
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += g[i] * y[i];
    return sum;
  };
  auto results = run("native_layer_norm", f64, {f64, f64, f64}, {{f64, x, {1, 4}}, eps, 4}, {0, 0}, 1);
  double mean = values(results[1])[0], rstd = values(results[2])[0];
  Operand mean_row(f64, std::vector<double>(4, mean), {1, 4}), rstd_row(f64, std::vector<double>(4, rstd), {1, 4});
  std::vector<double> actual = row("native_layer_norm_backward", f64,
                                   {{f64, g, {1, 4}}, {f64, x, {1, 4}}, mean_row, rstd_row, {f64, w, {1, 4}}, 4}, {1});
  for (int i = 0; i < 4; ++i) {
    std::vector<double> up = x, down = x;
    up[i] += 1e-6;
    down[i] -= 1e-6;
    EXPECT_NEAR(actual[i], (loss(up) - loss(down)) / 2e-6, 1e-7) << i;
  }
}

TEST(Normalization, RootMeanSquareAndItsGradient) {
  std::vector<double> x = {0.5, -1.25, 2}, g = {1, -2, 0.5};
  auto forward = [&](const std::vector<double>& at) {
    return run("_fused_rms_norm", f64, {f64, f64}, {{f64, at, {1, 3}}, 1e-3, 3}, {0}, 1);
  };
  double rstd = 1 / std::sqrt((0.25 + 1.5625 + 4) / 3 + 1e-3);
  expect_values(values(forward(x)[0]), {x[0] * rstd, x[1] * rstd, x[2] * rstd}, 1e-15);
  Operand rstd_row(f64, std::vector<double>(3, rstd), {1, 3});
  std::vector<double> actual =
      row("_fused_rms_norm_backward", f64, {{f64, g, {1, 3}}, {f64, x, {1, 3}}, rstd_row, 3}, {0});
  for (int i = 0; i < 3; ++i) {
    double slope = 0;
    for (double sign : {1.0, -1.0}) {
      std::vector<double> at = x;
      at[i] += sign * 1e-6;
      std::vector<double> y = values(forward(at)[0]);
      for (int j = 0; j < 3; ++j) slope += sign * g[j] * y[j];
    }
    EXPECT_NEAR(actual[i], slope / 2e-6, 1e-7) << i;
  }
}

TEST(Normalization, PiecesOfBatchNorm) {
  Operand x(f64, {1, 3, 2, 6}, {2, 2});
  auto statistics = run("mean_rstd", f64, {f64, f64}, {x, 0.0, 2}, {}, 1);
  expect_values(values(statistics[0]), {2, 4});
  expect_values(values(statistics[1]), {1, 0.5});
  Operand mean(f64, {2, 2, 4, 4}, {2, 2}), rstd(f64, {1, 1, 0.5, 0.5}, {2, 2});
  expect_values(values(run("normalize_affine", f64, {f64}, {x, mean, rstd, 3.0, 1.0}, {1, 1})[0]), {-2, 4, -2, 4});
  expect_values(row("centered_square_sum", f64, {x, mean}), {2, 8});
  auto sums = run("normalized_gradient_sums", f64, {f64, f64}, {{f64, {1, 2, 3, 4}, {2, 2}}, x, mean, rstd}, {}, 1);
  expect_values(values(sums[0]), {3, 7});
  expect_values(values(sums[1]), {1, 1});
  expect_values(evaluate("running_average", f32, {{f32, {10}}, {f32, {20}}, 0.25}), {12.5});
  expect_values(evaluate("variance_of_sum", f64, {{f64, {6}}, 4, 1.0}), {2});
}

TEST(Normalization, PiecesOfGroupNorm) {
  Operand weight(f64, {2, 3, 2, 3}, {2, 2});
  auto sums =
      run("weighted_sums", f64, {f64, f64}, {{f64, {1, 2, 3, 4}, {2, 2}}, {f64, {5, 6, 0, -1}, {2, 2}}, weight}, {}, 1);
  expect_values(values(sums[0]), {8, 18});
  expect_values(values(sums[1]), {28, -3});
  // (4 * 3 - 8 / 4 - (7 - 1) * 0.5 * (6 / 4)) * 0.5
  expect_values(evaluate("group_norm_backward", f64, {{f64, {4}}, {f64, {7}}, 1.0, 0.5, 8.0, 6.0, 4, 3.0}), {2.75});
}

TEST(Normalization, GradientWithStatisticsOfTheInputSumsToZero) {
  std::vector<double> x = {1, 3, 2, 6, 4, 0}, g = {1, -2, 0.5, 3, -1, 2};
  auto statistics = run("mean_rstd", f64, {f64, f64}, {{f64, x, {1, 6}}, 0.0, 6}, {}, 1);
  double mean = values(statistics[0])[0], rstd = values(statistics[1])[0], sum = 0, product = 0;
  for (int i = 0; i < 6; ++i) {
    sum += g[i];
    product += g[i] * (x[i] - mean) * rstd;
  }
  std::vector<double> actual =
      evaluate("normalize_backward", f64, {{f64, g}, {f64, x}, mean, rstd, sum, product, 6, 2.0}, {1});
  double total = 0, along = 0;
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(actual[i], 2 * rstd * (g[i] - sum / 6 - (x[i] - mean) * rstd * product / 6), 1e-14);
    total += actual[i];
    along += actual[i] * x[i];
  }
  EXPECT_NEAR(total, 0, 1e-13);
  EXPECT_NEAR(along, 0, 1e-12);
}

}  // namespace
}  // namespace neuron::lowering::testing
