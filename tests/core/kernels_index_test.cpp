// Gather, scatter, advanced indexing, embedding, nonzero and losses, on layouts with gaps, transposition and broadcast.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/base/float_formats.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

template <typename T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::Float32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::Int64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::Bool;
}

Dims dense(const Dims& sizes) {
  Dims strides(sizes.size());
  int64_t stride = 1;
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= sizes[d];
  }
  return strides;
}

template <typename T>
TensorView view(std::vector<T>& values, Dims sizes, Dims strides = {}) {
  if (strides.size() != sizes.size()) strides = dense(sizes);
  return {values.data(), dtype_of<T>(), sizes, strides};
}

void call(std::string_view name, std::vector<TensorView> outputs, std::vector<TensorView> inputs,
          std::vector<int64_t> attributes = {}, std::vector<Scalar> scalars = {}, int threads = 2) {
  const Kernel* kernel = find_kernel(name);
  ASSERT_NE(kernel, nullptr) << name;
  kernel->run({outputs, inputs, attributes, scalars, threads});
}

template <typename Body>
void expect_error(ErrorKind kind, const std::string& text, const Body& body) {
  try {
    body();
    FAIL() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_EQ(std::string(error.what()), text);
  }
}

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

TEST(Index, EmbeddingPicksRowsOfAnyLayoutAndRaises) {
  Floats weight{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, result(12);
  Ints indices{3, 0, 1, 1};
  call("index_select", {view(result, {2, 2, 3})}, {view(weight, {4, 3}), view(indices, {2, 2})}, {0});
  EXPECT_EQ(result, (Floats{9, 10, 11, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  // The same memory read as a [3, 4] matrix transposed, along dimension 1.
  Floats columns(6);
  Ints pick{2, 0};
  call("index_select", {view(columns, {3, 2})}, {view(weight, {3, 4}, {1, 3}), view(pick, {2})}, {1});
  EXPECT_EQ(columns, (Floats{6, 0, 7, 1, 8, 2}));
  indices[2] = 4;
  expect_error(ErrorKind::Index, "index out of range in self", [&] {
    call("index_select", {view(result, {2, 2, 3})}, {view(weight, {4, 3}), view(indices, {2, 2})}, {0});
  });
  EXPECT_TRUE(find_kernel("index_select")->may_raise);
}

TEST(Index, BroadcastIndexTensorsWrapNegativesAndNameTheDimension) {
  Floats self(24), result(4 * 3);
  for (int i = 0; i < 24; ++i) self[i] = static_cast<float>(i);
  // self [2, 3, 4]; x[[[0],[-1]], :, [1, 2]] -> block [2, 2] first, then the slice of 3.
  Ints rows{0, -1}, columns{1, 2};
  TensorView a = view(rows, {2, 2}, {1, 0}), b = view(columns, {2, 2}, {0, 1});
  call("index", {view(result, {2, 2, 3})}, {view(self, {2, 3, 4}), a, b}, {0, 0, 2});
  EXPECT_EQ(result, (Floats{1, 5, 9, 2, 6, 10, 13, 17, 21, 14, 18, 22}));
  // x[:, [2, 0]] keeps the block in the middle.
  Ints middle{2, 0};
  Floats kept(16);
  call("index", {view(kept, {2, 2, 4})}, {view(self, {2, 3, 4}), view(middle, {2})}, {1, 1});
  EXPECT_EQ(kept, (Floats{8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15}));
  columns[1] = 7;
  expect_error(ErrorKind::Index, "index 7 is out of bounds for dimension 2 with size 4",
               [&] { call("index", {view(result, {2, 2, 3})}, {view(self, {2, 3, 4}), a, b}, {0, 0, 2}); });
  rows[0] = -3;
  expect_error(ErrorKind::Index, "index -3 is out of bounds for dimension 0 with size 2",
               [&] { call("index", {view(result, {2, 2, 3})}, {view(self, {2, 3, 4}), a, b}, {0, 0, 2}); });
}

TEST(Index, PutKeepsTheLastOfEqualPlacesAndAccumulatesInOrder) {
  for (int threads : {1, 2, 4}) {
    Floats self(6, 1), values{10, 20, 30, 40, 50, 60};
    Ints index{1, 0, 1};
    call("index_put", {view(self, {3, 2})}, {view(values, {3, 2}), view(index, {3})}, {0, 0, 0}, {}, threads);
    EXPECT_EQ(self, (Floats{30, 40, 50, 60, 1, 1}));
    call("index_put", {view(self, {3, 2})}, {view(values, {3, 2}), view(index, {3})}, {1, 0, 0}, {}, threads);
    EXPECT_EQ(self, (Floats{60, 80, 110, 140, 1, 1}));
    call("index_add", {view(self, {3, 2})}, {view(values, {3, 2}), view(index, {3})}, {0}, {Scalar::of(-1.0)}, threads);
    EXPECT_EQ(self, (Floats{30, 40, 50, 60, 1, 1}));
  }
}

TEST(Index, IntegersWrapAround) {
  Ints self{std::numeric_limits<int64_t>::max()}, source{1}, index{0};
  call("index_add", {view(self, {1})}, {view(source, {1}), view(index, {1})}, {0}, {Scalar::of(int64_t{1})});
  EXPECT_EQ(self[0], std::numeric_limits<int64_t>::min());
  call("scatter", {view(self, {1})}, {view(index, {1}), view(self, {1})}, {0, 1});
  EXPECT_EQ(self[0], 0);
}

TEST(Index, NarrowFloatsAreSummedInFloat32) {
  // 256 + 1 + 1 in bfloat16 would stay 256 when each addition were rounded.
  std::vector<int64_t> index(4, 0);
  uint16_t self[1] = {float_to_bfloat16(256)}, source[4];
  for (auto& value : source) value = float_to_bfloat16(1);
  TensorView to{self, DType::BFloat16, {1}, {1}}, from{source, DType::BFloat16, {4}, {1}};
  call("index_add", {to}, {from, view(index, {4})}, {0}, {Scalar::of(1.0)});
  EXPECT_EQ(bfloat16_to_float(self[0]), 260.0f);
  call("scatter", {to}, {view(index, {4}), from}, {0, 1});
  EXPECT_EQ(bfloat16_to_float(self[0]), 264.0f);
}

TEST(Scatter, GatherAndScatterAddAreInverseInShape) {
  Floats self{1, 2, 3, 4, 5, 6}, picked(4);
  Ints index{2, 0, 1, 1};
  call("gather", {view(picked, {2, 2})}, {view(self, {2, 3}), view(index, {2, 2})}, {1});
  EXPECT_EQ(picked, (Floats{3, 1, 5, 5}));
  for (int threads : {1, 3}) {
    Floats sums(6, 0);
    call("scatter", {view(sums, {2, 3})}, {view(index, {2, 2}), view(picked, {2, 2})}, {1, 1}, {}, threads);
    EXPECT_EQ(sums, (Floats{1, 0, 3, 0, 10, 0}));
    Floats filled(6, 0);
    call("scatter", {view(filled, {3, 2})}, {view(index, {2, 2})}, {0, 0}, {Scalar::of(7.0)}, threads);
    EXPECT_EQ(filled, (Floats{0, 7, 7, 7, 7, 0}));
  }
  index[3] = 3;
  expect_error(ErrorKind::Runtime, "index 3 is out of bounds for dimension 1 with size 3",
               [&] { call("gather", {view(picked, {2, 2})}, {view(self, {2, 3}), view(index, {2, 2})}, {1}); });
}

TEST(Embedding, BackwardSumsPerRowSkipsPaddingAndScales) {
  Floats gradient{1, 2, 3, 4, 5, 6, 7, 8}, weight(6, 9);
  Ints indices{1, 2, 1, 0};
  call("embedding_dense_backward", {view(weight, {3, 2})}, {view(gradient, {2, 2, 2}), view(indices, {2, 2})}, {-1, 0});
  EXPECT_EQ(weight, (Floats{7, 8, 6, 8, 3, 4}));
  call("embedding_dense_backward", {view(weight, {3, 2})}, {view(gradient, {2, 2, 2}), view(indices, {2, 2})}, {2, 1});
  EXPECT_EQ(weight, (Floats{7, 8, 3, 4, 0, 0}));
}

TEST(Nonzero, CountsThenListsPositions) {
  Floats self{0, 1, std::numeric_limits<float>::quiet_NaN(), 0, -0.0f, 2};
  Ints count(1), places(6);
  call("count_nonzero", {view(count, {})}, {view(self, {2, 3})});
  EXPECT_EQ(count[0], 3);
  call("nonzero", {view(places, {3, 2})}, {view(self, {2, 3})});
  EXPECT_EQ(places, (Ints{0, 1, 0, 2, 1, 2}));
  std::vector<uint8_t> mask{1, 0};
  Floats selected(3);
  call("masked_select", {view(selected, {3})}, {view(self, {2, 3}), view(mask, {2, 3}, {1, 0})});
  EXPECT_EQ(selected[1], 1.0f);
  Floats few{1, 2};
  expect_error(ErrorKind::Runtime, "Number of elements of source < number of ones in mask",
               [&] { call("masked_scatter", {view(self, {2, 3})}, {view(mask, {2, 3}, {1, 0}), view(few, {2})}); });
  Ints divisor{3, 0};
  expect_error(ErrorKind::Runtime, "ZeroDivisionError", [&] { call("check_divisor", {}, {view(divisor, {2})}); });
}

TEST(NllLoss, ReducesWithWeightsAndIgnoredTargets) {
  Floats input{-1, -2, -3, -4, -5, -6, -7, -8, -9}, weight{1, 2, 3}, loss(1), total(1), scales(3);
  Ints target{2, -100, 1};
  call("nll_loss_forward", {view(loss, {}), view(total, {})},
       {view(input, {3, 3}), view(target, {3}), view(weight, {3})}, {1, -100});
  EXPECT_EQ(total[0], 5.0f);
  EXPECT_EQ(loss[0], (3.0f * 3 + 8 * 2) / 5);
  Floats upstream{10};
  call("nll_loss_scales", {view(scales, {3})},
       {view(upstream, {}), view(target, {3}), view(total, {}), view(weight, {3})}, {1, -100, 3});
  EXPECT_EQ(scales, (Floats{-6, 0, -4}));
  expect_error(ErrorKind::Index, "Target 2 is out of bounds.", [&] {
    call("nll_loss_scales", {view(scales, {3})}, {view(upstream, {}), view(target, {3}), view(total, {})},
         {1, -100, 2});
  });
  Floats each(3);
  call("nll_loss_forward", {view(each, {3}), view(total, {})}, {view(input, {3, 3}), view(target, {3})}, {0, -100});
  EXPECT_EQ(each, (Floats{3, 0, 8}));
  target[0] = 3;
  expect_error(ErrorKind::Index, "Target 3 is out of bounds.", [&] {
    call("nll_loss_forward", {view(loss, {}), view(total, {})}, {view(input, {3, 3}), view(target, {3})}, {1, -100});
  });
  // [N, C, S]: one sample, two classes, three places.
  Floats spatial{-1, -2, -3, -4, -5, -6};
  Ints places{0, 1, 0};
  call("nll_loss_forward", {view(loss, {}), view(total, {})}, {view(spatial, {1, 2, 3}), view(places, {1, 3})},
       {2, -100});
  EXPECT_EQ(loss[0], 9.0f);
}

// Contributions to one place are added in order, in float32, and rounded once.
TEST(IndexAdd, NarrowFloatsRoundOncePerPlace) {
  const int64_t rows = 5, width = 1030, count = 40;
  std::vector<uint16_t> self(rows * width), source(count * width);
  for (size_t i = 0; i < self.size(); ++i) self[i] = float_to_bfloat16(static_cast<float>(i % 97) * 0.37f - 11);
  for (size_t i = 0; i < source.size(); ++i) source[i] = float_to_bfloat16(static_cast<float>(i % 89) * 0.011f - 0.4f);
  Ints index(count);
  for (int64_t i = 0; i < count; ++i) index[i] = i * i % rows == 3 ? 1 : i * i % rows;
  std::vector<uint16_t> expected = self;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t j = 0; j < width; ++j) {
      float sum = bfloat16_to_float(self[row * width + j]);
      for (int64_t i = 0; i < count; ++i) {
        if (index[i] == row) sum += 0.5f * bfloat16_to_float(source[i * width + j]);
      }
      expected[row * width + j] = float_to_bfloat16(sum);
    }
  }
  for (int threads : {1, 2}) {
    std::vector<uint16_t> result = self;
    call("index_add", {{result.data(), DType::BFloat16, {rows, width}, {width, 1}}},
         {{source.data(), DType::BFloat16, {count, width}, {width, 1}}, view(index, {count})}, {0}, {Scalar::of(0.5)},
         threads);
    EXPECT_EQ(result, expected);
  }
}

}  // namespace
}  // namespace neuron::kernels
