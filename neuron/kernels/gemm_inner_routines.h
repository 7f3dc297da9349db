// The routines of gemm_inner.h for one instruction set. The file that includes this header includes that of its
// `Vector` before.
//
// Order of summation: lane l of the register takes elements l, l + lanes, … (bfloat16: 2 l and 2 l + 1 of each block of
// 2 lanes) as one chain of fused multiply-adds from zero; then halves of the register are added until one lane is left.
#pragma once

#include <array>
#include <cstring>
#include <utility>

#include "neuron/kernels/gemm_inner.h"

namespace neuron::kernels {
namespace {

// How rows of a type are read: `kRegisters` registers of consecutive elements at a time.
struct RowsOfFloat32 {
  using Element = float;
  static constexpr int kRegisters = 1;
  NEURON_INLINE static void load(const float* x, Vector::Register* out) { out[0] = Vector::load(x); }
  NEURON_INLINE static Vector::Register in_order(const float* x) { return Vector::load(x); }
};
struct RowsOfFloat16 {
  using Element = uint16_t;
  static constexpr int kRegisters = 1;
  NEURON_INLINE static void load(const uint16_t* x, Vector::Register* out) { out[0] = Vector::load_float16(x); }
  NEURON_INLINE static Vector::Register in_order(const uint16_t* x) { return Vector::load_float16(x); }
};
struct RowsOfBFloat16 {
  using Element = uint16_t;
  static constexpr int kRegisters = 2;
  NEURON_INLINE static void load(const uint16_t* x, Vector::Register* out) { Vector::load_bfloat16(x, out[0], out[1]); }
  NEURON_INLINE static Vector::Register in_order(const uint16_t* x) { return Vector::load_bfloat16_in_order(x); }
};

// One block of a row of the matrix with kVectors vectors, whose blocks are `padded` apart.
template <typename Rows, int kVectors, int kRows>
NEURON_INLINE void add_block(const float* arranged, int64_t padded, const typename Rows::Element* block,
                             Vector::Register (&totals)[kVectors][kRows], int j) {
  Vector::Register row[Rows::kRegisters];
  Rows::load(block, row);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 2
    for (int part = 0; part < Rows::kRegisters; ++part) {
      totals[v][j] =
          Vector::multiply_add(row[part], Vector::load(arranged + v * padded + part * Vector::kLanes), totals[v][j]);
    }
  }
}

// How memory is read fastest, which depends on the processor's maker. Measured: Zen 4 has a quarter more of it in eight
// streams than in one; an Intel Xeon (Granite Rapids) reads a fifth more in two, line by line, than in eight.
struct ManyStreams {
  static constexpr int kStreams = 8;
  static constexpr int kRunBytes = 256;  // of one row before those of the next
  static constexpr int kLocality = 2;    // into the second cache: the first has no room for what so many have ahead
};
struct FewStreams {  // Intel's
  static constexpr int kStreams = 2;
  static constexpr int kRunBytes = 64;
  static constexpr int kLocality = 3;
};

// kRows rows of the matrix, `gap` rows apart, with kVectors vectors.
template <typename Streams, typename Rows, int kVectors, int kRows>
NEURON_TARGET void products(const float* arranged, int64_t padded, const typename Rows::Element* matrix,
                            int64_t row_stride, int64_t gap, int64_t k, float* sums) {
  using Element = typename Rows::Element;
  constexpr int kBlock = Rows::kRegisters * Vector::kLanes;
  constexpr int kRun = kVectors <= 2 ? Streams::kRunBytes / (kBlock * static_cast<int>(sizeof(Element))) : 1;
  constexpr int64_t kAhead = 2048 / sizeof(Element);
  Vector::Register totals[kVectors][kRows];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) totals[v][j] = Vector::zero();
  }
  const Element* starts[kRows];
  for (int j = 0; j < kRows; ++j) starts[j] = matrix + j * gap * row_stride;
  int64_t p = 0;
  for (; p + kRun * kBlock <= k; p += kRun * kBlock) {
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) {
#pragma GCC unroll 8
      for (int i = 0; i < kRun; ++i) {
        __builtin_prefetch(starts[j] + p + i * kBlock + kAhead, 0, Streams::kLocality);
        add_block<Rows>(arranged + p + i * kBlock, padded, starts[j] + p + i * kBlock, totals, j);
      }
    }
  }
  for (; p + kBlock <= k; p += kBlock) {
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) {
      __builtin_prefetch(starts[j] + p + kAhead, 0, Streams::kLocality);
      add_block<Rows>(arranged + p, padded, starts[j] + p, totals, j);
    }
  }
  if (p < k) {
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) {
      alignas(64) Element rest[kBlock] = {};
      std::memcpy(rest, starts[j] + p, static_cast<size_t>(k - p) * sizeof(Element));
      add_block<Rows>(arranged + p, padded, rest, totals, j);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) sums[v * kInnerMatrixRows + j * gap] = Vector::sum(totals[v][j]);
  }
}

// As many rows at a time as the registers hold sums for, far from each other: the matrix is read in that many streams,
// for a core has more of memory in several than in one. An odd number of rows between them, as streams that are a
// power of two apart would share few sets of a cache.
template <typename Streams, typename Rows, int kVectors>
void products_of_rows(const float* arranged, int64_t padded, const void* matrix, int64_t row_stride, int64_t rows,
                      int64_t k, float* sums) {
  constexpr int kFit = Vector::kSums / kVectors, kMost = kVectors <= 2 ? Streams::kStreams : 8;
  constexpr int kRows = kFit < 1 ? 1 : kFit > kMost ? kMost : kFit;
  auto* start = static_cast<const typename Rows::Element*>(matrix);
  int64_t j = 0;
  while (rows - j >= kRows) {
    const int64_t share = (rows - j) / kRows, gap = share % 2 == 0 ? share - 1 : share;
    for (int64_t i = 0; i < gap; ++i) {
      products<Streams, Rows, kVectors, kRows>(arranged, padded, start + (j + i) * row_stride, row_stride, gap, k,
                                               sums + j + i);
    }
    j += gap * kRows;
  }
  for (; j < rows; ++j) {
    products<Streams, Rows, kVectors, 1>(arranged, padded, start + j * row_stride, row_stride, 1, k, sums + j);
  }
}

template <typename Streams, typename Rows, size_t... kIndex>
constexpr auto make_products(std::index_sequence<kIndex...>) {
  return std::array{&products_of_rows<Streams, Rows, static_cast<int>(kIndex) + 1>...};
}

template <typename Streams>
void compute(PackedSource type, int vectors, const float* arranged, int64_t padded, const void* matrix,
             int64_t row_stride, int64_t rows, int64_t k, float* sums) {
  using Index = std::make_index_sequence<kInnerVectors>;
  static constexpr auto kFloat32 = make_products<Streams, RowsOfFloat32>(Index());
  static constexpr auto kFloat16 = make_products<Streams, RowsOfFloat16>(Index());
  static constexpr auto kBFloat16 = make_products<Streams, RowsOfBFloat16>(Index());
  const auto& table = type == PackedSource::Float32 ? kFloat32 : type == PackedSource::Float16 ? kFloat16 : kBFloat16;
  table[vectors - 1](arranged, padded, matrix, row_stride, rows, k, sums);
}

// One register of columns: sums += vectors * row, in memory.
template <typename Rows, int kVectors>
NEURON_TARGET void add_row(const float* vectors, int64_t stride, const typename Rows::Element* row, float* sums) {
  Vector::Register values = Rows::in_order(row);
  for (int v = 0; v < kVectors; ++v) {
    float* target = sums + v * Vector::kLanes;
    Vector::store(target, Vector::multiply_add(Vector::broadcast(vectors[v * stride]), values, Vector::load(target)));
  }
}

// kRegisters registers of columns and `depth` rows; vectors have k elements. Sums are begun, or gone on with.
template <typename Rows, int kVectors, int kRegisters>
NEURON_TARGET void combine_columns(const float* vectors, const typename Rows::Element* matrix, int64_t row_stride,
                                   int64_t depth, int64_t k, bool begin, float* sums, int64_t sums_stride) {
  Vector::Register totals[kVectors][kRegisters];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int r = 0; r < kRegisters; ++r) {
      totals[v][r] = begin ? Vector::zero() : Vector::load(sums + v * sums_stride + r * Vector::kLanes);
    }
  }
  for (int64_t p = 0; p < depth; ++p, matrix += row_stride) {
    Vector::Register row[kRegisters];
#pragma GCC unroll 8
    for (int r = 0; r < kRegisters; ++r) row[r] = Rows::in_order(matrix + r * Vector::kLanes);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Vector::Register x = Vector::broadcast(vectors[v * k + p]);
#pragma GCC unroll 8
      for (int r = 0; r < kRegisters; ++r) totals[v][r] = Vector::multiply_add(x, row[r], totals[v][r]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int r = 0; r < kRegisters; ++r) Vector::store(sums + v * sums_stride + r * Vector::kLanes, totals[v][r]);
  }
}

template <typename Rows, int kVectors>
void combine_rows(const float* vectors, const void* matrix, int64_t row_stride, int64_t columns, int64_t k, float* sums,
                  int64_t sums_stride) {
  constexpr int kFit = Vector::kSums / kVectors, kRegisters = kFit < 1 ? 1 : kFit > 8 ? 8 : kFit;
  constexpr int64_t kLanes = Vector::kLanes;
  auto* start = static_cast<const typename Rows::Element*>(matrix);
  // A few rows at a time along all columns: as many streams as the processor fetches ahead.
  constexpr int64_t kBlock = kRegisters * kLanes, kDepth = 16;
  int64_t whole = columns / kBlock * kBlock;
  for (int64_t p = 0; p < k; p += kDepth) {
    int64_t depth = k - p < kDepth ? k - p : kDepth;
    for (int64_t c = 0; c < whole; c += kBlock) {
      combine_columns<Rows, kVectors, kRegisters>(vectors + p, start + p * row_stride + c, row_stride, depth, k, p == 0,
                                                  sums + c, sums_stride);
    }
  }
  for (int64_t c = whole; c < columns; c += kLanes) {
    if (c + kLanes <= columns) {
      combine_columns<Rows, kVectors, 1>(vectors, start + c, row_stride, k, k, true, sums + c, sums_stride);
    } else if (columns >= kLanes) {  // the last columns once more, from the beginning: the same sums
      int64_t last = columns - kLanes;
      combine_columns<Rows, kVectors, 1>(vectors, start + last, row_stride, k, k, true, sums + last, sums_stride);
    } else {  // fewer columns than lanes: rows with room behind them
      alignas(64) typename Rows::Element row[kLanes] = {};
      alignas(64) float narrow[kVectors * kLanes] = {};
      for (int64_t p = 0; p < k; ++p) {
        std::memcpy(row, start + p * row_stride, static_cast<size_t>(columns) * sizeof(row[0]));
        add_row<Rows, kVectors>(vectors + p, k, row, narrow);
      }
      for (int v = 0; v < kVectors; ++v) {
        std::memcpy(sums + v * sums_stride, narrow + v * kLanes, static_cast<size_t>(columns) * sizeof(float));
      }
    }
  }
}

template <typename Rows, size_t... kIndex>
constexpr auto make_combine(std::index_sequence<kIndex...>) {
  return std::array{&combine_rows<Rows, static_cast<int>(kIndex) + 1>...};
}

void combine(PackedSource type, int count, const float* vectors, const void* matrix, int64_t row_stride,
             int64_t columns, int64_t k, float* sums, int64_t sums_stride) {
  using Index = std::make_index_sequence<kInnerVectors>;
  static constexpr auto kFloat32 = make_combine<RowsOfFloat32>(Index());
  static constexpr auto kFloat16 = make_combine<RowsOfFloat16>(Index());
  static constexpr auto kBFloat16 = make_combine<RowsOfBFloat16>(Index());
  const auto& table = type == PackedSource::Float32 ? kFloat32 : type == PackedSource::Float16 ? kFloat16 : kBFloat16;
  table[count - 1](vectors, matrix, row_stride, columns, k, sums, sums_stride);
}

void arrange(PackedSource type, const float* vector, int64_t k, float* arranged) {
  if (type != PackedSource::BFloat16) {
    int64_t padded = (k + Vector::kLanes - 1) / Vector::kLanes * Vector::kLanes;
    std::memcpy(arranged, vector, static_cast<size_t>(k) * sizeof(float));
    for (int64_t p = k; p < padded; ++p) arranged[p] = 0;
    return;
  }
  for (int64_t block = 0; block < k; block += 2 * Vector::kLanes) {
    for (int64_t l = 0; l < Vector::kLanes; ++l) {
      for (int64_t odd = 0; odd < 2; ++odd) {
        int64_t p = block + 2 * l + odd;
        arranged[block + odd * Vector::kLanes + l] = p < k ? vector[p] : 0.0f;
      }
    }
  }
}

}  // namespace
}  // namespace neuron::kernels
