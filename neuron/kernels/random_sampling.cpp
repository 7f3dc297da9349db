// Kernels "random_permutation" and "multinomial". Scalars: seed, offset (docs/numerics.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/base/float_formats.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/random_lines.h"

namespace neuron::kernels {
namespace {

char* element(const TensorView& view, int64_t offset) {
  return view.as<char>() + offset * static_cast<int64_t>(dtype_size(view.dtype));
}

// Uniform numbers in [0, 1), multiples of 2^-53: made a few neighbours at a time, as they are asked for.
class UniformNumbers {
 public:
  UniformNumbers(uint64_t seed, uint64_t offset) : seed_(seed), offset_(offset) {}
  double at(uint64_t element) {
    if (element / kTogether != group_) {
      group_ = element / kTogether;
      random_lines().long_words(seed_, offset_, group_ * kTogether, 1, kTogether, words_);
    }
    return static_cast<double>(words_[element % kTogether] >> 11) * 0x1p-53;
  }

 private:
  static constexpr int kTogether = 32;
  const uint64_t seed_, offset_;
  uint64_t group_ = ~uint64_t{0};
  uint64_t words_[kTogether];
};

// outputs: a vector of n; receives 0 … n-1 after n exchanges: place i with one of i … n-1, by 64 random bits of element
// i (Durstenfeld, "Algorithm 235: random permutation", 1964).
void run_permutation(const Call& call) {
  constexpr int64_t kTogether = 1024;
  const TensorView& out = call.outputs[0];
  const auto seed = static_cast<uint64_t>(call.scalars[0].as_int()),
             offset = static_cast<uint64_t>(call.scalars[1].as_int());
  const auto count = static_cast<uint64_t>(out.numel());
  std::vector<int64_t> apart;
  const bool in_place = out.dtype == DType::Int64 && out.strides[0] == 1;
  if (!in_place) apart.resize(count);
  int64_t* values = in_place ? out.as<int64_t>() : apart.data();
  std::iota(values, values + count, 0);
  uint64_t words[kTogether];
  for (uint64_t first = 0; first < count; first += kTogether) {
    const uint64_t end = std::min(count, first + kTogether);
    random_lines().long_words(seed, offset, first, 1, static_cast<int64_t>(end - first), words);
    for (uint64_t i = first; i < end; ++i) {
      const auto product = static_cast<unsigned __int128>(words[i - first]) * (count - i);
      std::swap(values[i], values[i + static_cast<uint64_t>(product >> 64)]);
    }
  }
  for (uint64_t i = 0; i < apart.size(); ++i)
    store_from_int(out.dtype, apart[i], element(out, static_cast<int64_t>(i) * out.strides[0]));
}

// The weights of a row as doubles, checked: CPU's texts.
std::vector<double> checked_weights(const TensorView& weights, int64_t row) {
  std::vector<double> values(static_cast<size_t>(weights.sizes[1]));
  double sum = 0;
  bool valid = true;
  dispatch_real(weights.dtype, [&]<typename E>(E) {
    const auto* from = weights.as<typename E::Storage>() + row * weights.strides[0];
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(E::load(from[static_cast<int64_t>(i) * weights.strides[1]]));
      valid = valid && values[i] >= 0 && values[i] <= std::numeric_limits<double>::max();
      sum += values[i];
    }
  });
  if (!valid) fail(ErrorKind::Runtime, "probability tensor contains either `inf`, `nan` or element < 0");
  if (!(sum > 0)) fail(ErrorKind::Runtime, "invalid multinomial distribution (sum of probabilities <= 0)");
  return values;
}

// The `samples` categories with the smallest exponential variates of rate weight, in their order. Categories without
// weight come last; most are when only the best of many are kept, and no number is made for them.
template <typename Give>
void sample_without_replacement(const std::vector<double>& values, int64_t samples, UniformNumbers& numbers,
                                uint64_t first, Give&& give) {
  std::vector<std::pair<double, int64_t>> order;
  double least = HUGE_VAL;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    const double number = numbers.at(first + i);
    // -log(1 - u) is not less than u, but for roundings: of one sample most logarithms need not be known.
    constexpr double kRoundings = 1 - 0x1p-40;
    if (samples == 1 && number * kRoundings > least * values[i]) continue;
    const double time = -std::log(1 - number) / values[i];
    if (samples == 1) {
      if (time >= least && !order.empty()) continue;
      order.clear();
      least = time;
    }
    order.emplace_back(time, static_cast<int64_t>(i));
  }
  const int64_t sorted = std::min(samples, static_cast<int64_t>(order.size()));
  std::partial_sort(order.begin(), order.begin() + sorted, order.end());
  for (int64_t s = 0; s < sorted; ++s) give(s, order[static_cast<size_t>(s)].second);
  int64_t s = sorted;
  for (size_t i = 0; i < values.size() && s < samples; ++i) {
    if (values[i] == 0) give(s++, static_cast<int64_t>(i));
  }
}

// outputs: (rows, samples) int64; inputs: weights (rows, categories); attributes: with replacement.
// With replacement: the cumulative weights are searched for a uniform number each.
void run_multinomial(const Call& call) {
  const TensorView &out = call.outputs[0], &weights = call.inputs[0];
  UniformNumbers numbers(static_cast<uint64_t>(call.scalars[0].as_int()),
                         static_cast<uint64_t>(call.scalars[1].as_int()));
  uint64_t next = 0;
  const int64_t rows = out.sizes[0], samples = out.sizes[1], categories = weights.sizes[1];
  // Nothing is written when any row is refused.
  for (int64_t row = 0; rows > 1 && row < rows; ++row) checked_weights(weights, row);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<double> values = checked_weights(weights, row);
    auto give = [&](int64_t sample, int64_t category) {
      *reinterpret_cast<int64_t*>(element(out, row * out.strides[0] + sample * out.strides[1])) = category;
    };
    if (call.attributes[0] == 0) {
      sample_without_replacement(values, samples, numbers, next, give);
      next += static_cast<uint64_t>(categories);
      continue;
    }
    for (size_t i = 1; i < values.size(); ++i) values[i] += values[i - 1];
    for (int64_t s = 0; s < samples; ++s) {
      const double point = numbers.at(next++) * values.back();
      auto found = std::upper_bound(values.begin(), values.end(), point);
      // Rounding can carry the point to the end: the last category with a weight.
      if (found == values.end()) found = std::lower_bound(values.begin(), values.end(), values.back());
      give(s, found - values.begin());
    }
  }
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "random_permutation", .run = run_permutation}),
    KernelRegistration({.name = "multinomial", .run = run_multinomial, .may_raise = true}),
};

}  // namespace
}  // namespace neuron::kernels
