#include <functional>

#include "tests/core/lowering_fixture.h"

namespace neuron::lowering::testing {
namespace {

constexpr DType f64 = DType::Float64;
const std::vector<double> points = {-30, -7.5, -3.5, -1.25, -0.3, 0.2, 0.7, 1.9, 3.25, 8, 25};

double erf_distribution(double x) { return 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }

struct Case {
  const char* name;
  std::function<double(double)> formula;
  std::vector<Operand> parameters;
  const char* backward;  // name of the gradient
  std::vector<int64_t> attributes;
};

const Case cases[] = {
    {"relu", [](double x) { return std::max(x, 0.0); }, {}, nullptr, {}},
    {"leaky_relu", [](double x) { return x > 0 ? x : 0.1 * x; }, {0.1}, "leaky_relu_backward", {}},
    {"gelu", [](double x) { return x * erf_distribution(x); }, {}, "gelu_backward", {0}},
    {"gelu",
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); },
     {},
     "gelu_backward",
     {1}},
    {"silu", [](double x) { return x / (1 + std::exp(-x)); }, {}, "silu_backward", {}},
    {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, {}, "mish_backward", {}},
    {"softplus",
     [](double x) { return 2 * x > 20 ? x : std::log1p(std::exp(2 * x)) / 2; },
     {2.0, 20.0},
     "softplus_backward",
     {}},
    {"hardtanh", [](double x) { return std::min(std::max(x, -2.0), 3.0); }, {-2.0, 3.0}, "hardtanh_backward", {}},
    {"hardsigmoid", [](double x) { return std::min(std::max(x + 3, 0.0), 6.0) / 6; }, {}, "hardsigmoid_backward", {}},
    {"hardswish", [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }, {}, "hardswish_backward", {}},
    {"log_sigmoid_forward", [](double x) { return -std::log1p(std::exp(-x)); }, {}, "log_sigmoid_backward", {}},
    {"hardshrink", [](double x) { return std::fabs(x) <= 0.5 ? 0 : x; }, {0.5}, "hardshrink_backward", {}},
    {"softshrink",
     [](double x) { return x > 0.5    ? x - 0.5
                           : x < -0.5 ? x + 0.5
                                      : 0; },
     {0.5},
     "softshrink_backward",
     {}},
    {"celu", [](double x) { return x > 0 ? x : 1.5 * std::expm1(x / 1.5); }, {1.5}, nullptr, {}},
    {"elu", [](double x) { return x > 0 ? 0.5 * x : 0.5 * 2 * std::expm1(1.5 * x); }, {2.0, 0.5, 1.5}, nullptr, {}},
};

TEST(Activations, MatchTheirFormulas) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::vector<Operand> operands = {Operand(f64, points)};
    operands.insert(operands.end(), c.parameters.begin(), c.parameters.end());
    std::vector<double> expected;
    for (double x : points) expected.push_back(c.formula(x));
    // 1 + erf(x) and 1 + tanh(x) cancel in the far negative tail: the error is one of the 1, not of the difference.
    std::vector<double> actual = evaluate(c.name, f64, operands, c.attributes);
    for (size_t i = 0; i < points.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 4e-15 * std::fabs(points[i])) << points[i];
  }
}

TEST(Activations, GradientsAreTheSlopesOfTheirFormulas) {
  for (const Case& c : cases) {
    if (c.backward == nullptr) continue;
    SCOPED_TRACE(c.backward);
    std::vector<Operand> operands = {Operand(f64, std::vector<double>(points.size(), 2.0)), Operand(f64, points)};
    operands.insert(operands.end(), c.parameters.begin(), c.parameters.end());
    std::vector<double> actual = evaluate(c.backward, f64, operands, c.attributes);
    for (size_t i = 0; i < points.size(); ++i) {
      double h = 1e-5, x = points[i];
      double slope = (c.formula(x + h) - c.formula(x - h)) / (2 * h);
      EXPECT_NEAR(actual[i], 2 * slope, 1e-7) << "at " << x;
    }
  }
}

TEST(Activations, EluGradientFromInputAndFromResult) {
  double alpha = 2, scale = 0.5, input_scale = 1.5;
  for (double x : {-1.25, 0.75}) {
    double result = x > 0 ? scale * x : alpha * scale * std::expm1(input_scale * x);
    double slope = x > 0 ? scale : alpha * scale * input_scale * std::exp(input_scale * x);
    std::vector<Operand> operands = {Operand(f64, {3}), alpha, scale, input_scale, Operand(f64, {x})};
    expect_values(evaluate("elu_backward", f64, operands, {0}), {3 * slope}, 1e-14);
    operands.back() = Operand(f64, {result});
    expect_values(evaluate("elu_backward", f64, operands, {1}), {3 * slope}, 1e-14);
  }
}

TEST(Activations, GradientsFromOutputs) {
  double y = std::tanh(0.3), s = 1 / (1 + std::exp(-0.3));
  expect_values(evaluate("tanh_backward", f64, {Operand(f64, {2}), Operand(f64, {y})}), {2 * (1 - y * y)}, 1e-15);
  expect_values(evaluate("sigmoid_backward", f64, {Operand(f64, {2}), Operand(f64, {s})}), {2 * s * (1 - s)}, 1e-15);
  expect_values(evaluate("threshold_backward", f64, {Operand(f64, {1, 2, 3}), Operand(f64, {0, kNaN, 1}), 0}),
                {0, 2, 3});
}

TEST(Activations, GatedLinearUnitAndParametricSlope) {
  double s = 1 / (1 + std::exp(-0.5));
  expect_values(evaluate("glu", f64, {Operand(f64, {3}), Operand(f64, {0.5})}), {3 * s}, 1e-15);
  auto gradients = run("glu_backward", f64, {f64, f64}, {Operand(f64, {2}), Operand(f64, {3}), Operand(f64, {0.5})});
  expect_values(values(gradients[0]), {2 * s}, 1e-15);
  expect_values(values(gradients[1]), {2 * 3 * s * (1 - s)}, 1e-15);
  auto prelu = run("_prelu_kernel_backward", f64, {f64, f64}, {Operand(f64, {2, 2}), Operand(f64, {3, -3}), 0.25});
  expect_values(values(prelu[0]), {2, 0.5});
  expect_values(values(prelu[1]), {0, -6});
}

TEST(Losses, ValuesAndGradients) {
  Operand x(f64, {0.25, 2.5}), target(f64, {0.5, 0.5});
  expect_values(evaluate("mse_loss", f64, {x, target}), {0.0625, 4});
  expect_values(evaluate("mse_loss_backward", f64, {1.0, x, target, 0.5}), {-0.25, 2});
  expect_values(evaluate("smooth_l1_loss", f64, {x, target, 1.0}), {0.03125, 1.5});
  expect_values(evaluate("smooth_l1_loss_backward", f64, {1.0, x, target, 1.0, 1.0}), {-0.25, 1});
  expect_values(evaluate("huber_loss", f64, {x, target, 0.5}), {0.03125, 0.5 * (2 - 0.25)});
  expect_values(evaluate("huber_loss_backward", f64, {1.0, x, target, 0.5, 1.0}), {-0.25, 0.5});
  Operand p(f64, {0.25, 0}), hit(f64, {1, 1});
  expect_values(evaluate("binary_cross_entropy", f64, {p, hit}, {0}), {-std::log(0.25), 100}, 1e-15);
  expect_values(evaluate("binary_cross_entropy_backward", f64, {1.0, p, hit, 1.0}, {0}), {-4, -1e12}, 1e-12);
}

}  // namespace
}  // namespace neuron::lowering::testing
