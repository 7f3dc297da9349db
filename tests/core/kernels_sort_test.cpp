// Sort, topk, cumulative operations, copies and concatenation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

void call(std::string_view name, std::vector<TensorView> outputs, std::vector<TensorView> inputs,
          std::vector<int64_t> attributes = {}, std::vector<Scalar> scalars = {}, int threads = 2) {
  const Kernel* kernel = find_kernel(name);
  ASSERT_NE(kernel, nullptr) << name;
  kernel->run({outputs, inputs, attributes, scalars, threads});
}

const float kNaN = std::numeric_limits<float>::quiet_NaN();
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

TEST(Sort, IsStableWithNaNGreatest) {
  Floats self{2, kNaN, 1, 2, -0.0f, 0.0f}, values(6);
  Ints order(6);
  TensorView in{self.data(), DType::Float32, {6}, {1}}, out{values.data(), DType::Float32, {6}, {1}},
      indices{order.data(), DType::Int64, {6}, {1}};
  call("sort", {out, indices}, {in}, {0, 0});
  EXPECT_EQ(order, (Ints{4, 5, 2, 0, 3, 1}));
  EXPECT_TRUE(std::isnan(values[5]));
  call("sort", {out, indices}, {in}, {0, 1});
  EXPECT_EQ(order, (Ints{1, 0, 3, 2, 4, 5}));
}

TEST(Sort, WorksAlongAnyDimensionWithAnyThreads) {
  std::mt19937 random(7);
  std::vector<int64_t> self(5 * 37 * 3);
  for (auto& value : self) value = static_cast<int64_t>(random() % 20);
  for (int threads : {1, 4}) {
    std::vector<int64_t> values(self.size()), order(self.size());
    Dims sizes{5, 37, 3}, strides{111, 3, 1};
    call("sort", {{values.data(), DType::Int64, sizes, strides}, {order.data(), DType::Int64, sizes, strides}},
         {{self.data(), DType::Int64, sizes, strides}}, {1, 0}, {}, threads);
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < 3; ++j) {
        for (int k = 0; k < 37; ++k) {
          int64_t at = i * 111 + k * 3 + j;
          EXPECT_EQ(values[at], self[i * 111 + order[at] * 3 + j]);
          if (k > 0) {
            EXPECT_TRUE(values[at - 3] < values[at] || (values[at - 3] == values[at] && order[at - 3] < order[at]));
          }
        }
      }
    }
  }
}

// Lines of a whole and a filled up network, and beyond it; every key width; equal keys, NaN, both zeros.
TEST(Sort, LongAndShortLinesEqualAStableSort) {
  std::mt19937 random(3);
  const float special[] = {0.0f, -0.0f, kNaN, -kNaN, std::numeric_limits<float>::infinity(), -1e-40f, 2.5f, -2.5f};
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Float16, DType::Float64, DType::Int64, DType::Int8}) {
    for (int64_t length : {1,   2,   3,   5,   8,   9,    16,   17,   31,   33,   64,   95,   97,
                           130, 255, 256, 257, 500, 1000, 1024, 1025, 2047, 2048, 2049, 70000}) {
      const size_t size = dtype_size(dtype);
      std::vector<char> self(length * size), values(length * size);
      std::vector<double> keys(length);
      for (int64_t i = 0; i < length; ++i) {
        double value = static_cast<double>(static_cast<int32_t>(random())) / (dtype == DType::Int64 ? 1e-3 : 1e7);
        if (random() % 4 == 0) value = special[random() % 8];
        if (is_integer(dtype)) {
          store_from_int(dtype, std::isfinite(value) ? static_cast<int64_t>(value) : 5, self.data() + i * size);
        } else {
          store_from_double(dtype, value, self.data() + i * size);
        }
        keys[i] = load_as_double(dtype, self.data() + i * size);
      }
      for (bool descending : {false, true}) {
        Ints expected(length), order(length);
        for (int64_t i = 0; i < length; ++i) expected[i] = i;
        std::stable_sort(expected.begin(), expected.end(), [&](int64_t x, int64_t y) {
          if (descending) std::swap(x, y);
          return keys[x] < keys[y] || (std::isnan(keys[y]) && !std::isnan(keys[x]));
        });
        call("sort", {{values.data(), dtype, {length}, {1}}, {order.data(), DType::Int64, {length}, {1}}},
             {{self.data(), dtype, {length}, {1}}}, {0, descending});
        ASSERT_EQ(order, expected) << dtype_name(dtype) << " " << length << " " << descending;
        for (int64_t i = 0; i < length; ++i) ASSERT_EQ(std::memcmp(&values[i * size], &self[order[i] * size], size), 0);
      }
    }
  }
}

TEST(Sort, TopKTakesTheFirstOfEqualElements) {
  for (int64_t length : {6, 600}) {
    Floats self(length, 0), values(3);
    self[1] = 5, self[3] = 5, self[4] = 7, self[5] = 5;
    Ints order(3);
    TensorView in{self.data(), DType::Float32, {length}, {1}}, out{values.data(), DType::Float32, {3}, {1}},
        indices{order.data(), DType::Int64, {3}, {1}};
    call("topk", {out, indices}, {in}, {3, 0, 1, 1});
    EXPECT_EQ(values, (Floats{7, 5, 5}));
    EXPECT_EQ(order, (Ints{4, 1, 3}));
    self[2] = kNaN;
    call("topk", {out, indices}, {in}, {3, 0, 1, 1});
    EXPECT_EQ(order, (Ints{2, 4, 1}));
    call("topk", {out, indices}, {in}, {1, 0, 0, 1});
    EXPECT_EQ(order[0], 0);
  }
}

// Few of many in order and in a heap, and many of few: the beginning of a stable sort.
TEST(Sort, TopKIsTheBeginningOfAStableSort) {
  std::mt19937 random(7);
  for (int64_t k : {1, 8, 32, 33, 70}) {
    for (int64_t length : {k, 31 * k, 32 * k, 40 * k}) {
      for (bool rising : {false, true}) {
        Floats self(length), values(k);
        for (int64_t i = 0; i < length; ++i) self[i] = static_cast<float>(rising ? i : random() % 50);
        Ints expected(length), order(k);
        for (int64_t i = 0; i < length; ++i) expected[i] = i;
        std::stable_sort(expected.begin(), expected.end(), [&](int64_t x, int64_t y) { return self[x] > self[y]; });
        expected.resize(k);
        call("topk", {{values.data(), DType::Float32, {k}, {1}}, {order.data(), DType::Int64, {k}, {1}}},
             {{self.data(), DType::Float32, {length}, {1}}}, {k, 0, 1, 1});
        ASSERT_EQ(order, expected) << k << " of " << length;
        for (int64_t i = 0; i < k; ++i) ASSERT_EQ(values[i], self[order[i]]);
      }
    }
  }
}

TEST(Cumulative, SumsAreKeptInFloat64AndNarrowOnesInFloat32) {
  int64_t n = 1000;
  Floats self(n, 0.1f), result(n);
  TensorView in{self.data(), DType::Float32, {n}, {1}}, out{result.data(), DType::Float32, {n}, {1}};
  call("cumsum", {out}, {in}, {0});
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(result[i], static_cast<float>(static_cast<double>(0.1f) * static_cast<double>(i + 1)));
  }
  std::vector<uint16_t> narrow(300, float_to_bfloat16(1)), sums(300);
  call("cumsum", {{sums.data(), DType::BFloat16, {300}, {1}}}, {{narrow.data(), DType::BFloat16, {300}, {1}}}, {0});
  EXPECT_EQ(bfloat16_to_float(sums[299]), 300.0f);
  Ints numbers{1, 2, 3, 4, 5, 6}, products(6);
  call("cumprod", {{products.data(), DType::Int64, {2, 3}, {3, 1}}}, {{numbers.data(), DType::Int64, {2, 3}, {3, 1}}},
       {0});
  EXPECT_EQ(products, (Ints{1, 2, 3, 4, 10, 18}));
  Floats mixed{1, 3, 3, kNaN, 9}, best(5);
  Ints place(5);
  call("cummax", {{best.data(), DType::Float32, {5}, {1}}, {place.data(), DType::Int64, {5}, {1}}},
       {{mixed.data(), DType::Float32, {5}, {1}}}, {0});
  EXPECT_EQ(place, (Ints{0, 1, 2, 3, 3}));
  EXPECT_TRUE(std::isnan(best[4]));
}

// Lines next to one another, several at a time, and alone: the same running sums and products, also in place.
TEST(Cumulative, EveryLayoutGivesTheSameBits) {
  std::mt19937 random(5);
  const std::pair<int64_t, int64_t> shapes[] = {{19, 300}, {300, 19}, {8, 128},  {7, 130}, {1, 5},
                                                {3, 1},    {21, 9},   {5, 1100}, {3, 2500}};
  for (DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16, DType::Int64}) {
    for (auto [rows, columns] : shapes) {
      const size_t size = dtype_size(dtype);
      std::vector<char> self(rows * columns * size), result(self.size()), expected(self.size());
      for (int64_t i = 0; i < rows * columns; ++i) {
        const auto value = static_cast<int32_t>(random());
        if (is_integer(dtype)) {
          store_from_int(dtype, value, &self[i * size]);
        } else {
          store_from_double(dtype, value * 1e-9, &self[i * size]);
        }
      }
      for (bool product : {false, true}) {
        for (int64_t dimension : {0, 1}) {
          const int64_t lines = dimension == 0 ? columns : rows, length = dimension == 0 ? rows : columns;
          const int64_t step = dimension == 0 ? columns : 1, next = dimension == 0 ? 1 : columns;
          for (int64_t l = 0; l < lines; ++l) {
            double wide = product;
            float single = product;
            uint64_t whole = product;
            auto join = [&](auto running, auto value) { return product ? running * value : running + value; };
            for (int64_t i = 0; i < length; ++i) {
              char *from = &self[(l * next + i * step) * size], *to = &expected[(l * next + i * step) * size];
              if (is_integer(dtype)) {
                whole = join(whole, static_cast<uint64_t>(load_as_int(dtype, from)));
                store_from_int(dtype, static_cast<int64_t>(whole), to);
              } else if (dtype == DType::Float32 || dtype == DType::Float64) {
                store_from_double(dtype, wide = join(wide, load_as_double(dtype, from)), to);
              } else {
                store_from_double(dtype, single = join(single, static_cast<float>(load_as_double(dtype, from))), to);
              }
            }
          }
          const char* name = product ? "cumprod" : "cumsum";
          for (int threads : {1, 3}) {
            call(name, {{result.data(), dtype, {rows, columns}, {columns, 1}}},
                 {{self.data(), dtype, {rows, columns}, {columns, 1}}}, {dimension}, {}, threads);
            ASSERT_EQ(result, expected) << name << " " << dtype_name(dtype) << " " << rows << "x" << columns << " "
                                        << dimension;
          }
          result = self;
          call(name, {{result.data(), dtype, {rows, columns}, {columns, 1}}},
               {{result.data(), dtype, {rows, columns}, {columns, 1}}}, {dimension});
          ASSERT_EQ(result, expected) << "in place";
        }
      }
    }
  }
}

TEST(Copy, TransposesInTilesOfEveryElementSize) {
  for (DType dtype : {DType::UInt8, DType::BFloat16, DType::Float32, DType::Float64, DType::Complex128}) {
    for (int threads : {1, 2}) {
      int64_t batch = 3, rows = 70, columns = 37;
      size_t size = dtype_size(dtype);
      std::vector<uint8_t> source(batch * rows * columns * size), target(source.size());
      for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 7 + i / 251);
      call("copy", {{target.data(), dtype, {batch, rows, columns}, {rows * columns, columns, 1}}},
           {{source.data(), dtype, {batch, rows, columns}, {rows * columns, 1, rows}}}, {}, {}, threads);
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j)
            ASSERT_EQ(std::memcmp(&target[((b * rows + i) * columns + j) * size],
                                  &source[((b * columns + j) * rows + i) * size], size),
                      0);
    }
  }
}

TEST(Copy, ConvertsBroadcastsAndFills) {
  Ints numbers{1, -2, 3};
  Floats result(6);
  call("copy", {{result.data(), DType::Float32, {2, 3}, {3, 1}}}, {{numbers.data(), DType::Int64, {2, 3}, {0, 1}}});
  EXPECT_EQ(result, (Floats{1, -2, 3, 1, -2, 3}));
  call("fill", {{result.data(), DType::Float32, {3}, {2}}}, {}, {}, {Scalar::of(0.5)});
  EXPECT_EQ(result, (Floats{0.5, -2, 0.5, 1, 0.5, 3}));
}

TEST(Concat, PutsPartsSideBySide) {
  Floats a{1, 2, 3, 4}, b{5, 6}, none, result(6);
  call("concat", {{result.data(), DType::Float32, {2, 3}, {3, 1}}},
       {{a.data(), DType::Float32, {2, 2}, {2, 1}},
        {none.data(), DType::Float32, {2, 0}, {1, 1}},
        {b.data(), DType::Float32, {2, 1}, {1, 1}}},
       {1});
  EXPECT_EQ(result, (Floats{1, 2, 5, 3, 4, 6}));
}

}  // namespace
}  // namespace neuron::kernels
