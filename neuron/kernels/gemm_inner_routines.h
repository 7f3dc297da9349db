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
};
struct RowsOfFloat16 {
  using Element = uint16_t;
  static constexpr int kRegisters = 1;
  NEURON_INLINE static void load(const uint16_t* x, Vector::Register* out) { out[0] = Vector::load_float16(x); }
};
struct RowsOfBFloat16 {
  using Element = uint16_t;
  static constexpr int kRegisters = 2;
  NEURON_INLINE static void load(const uint16_t* x, Vector::Register* out) { Vector::load_bfloat16(x, out[0], out[1]); }
};

// kRows rows of the matrix with kVectors vectors.
template <typename Rows, int kVectors, int kRows>
NEURON_TARGET void products(const float* arranged, int64_t padded, const typename Rows::Element* matrix,
                            int64_t row_stride, int64_t k, float* sums) {
  constexpr int kParts = Rows::kRegisters, kBlock = kParts * Vector::kLanes;
  using Element = typename Rows::Element;
  Vector::Register totals[kVectors][kRows], row[kParts];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) totals[v][j] = Vector::zero();
  }
  const Element* starts[kRows];
  for (int j = 0; j < kRows; ++j) starts[j] = matrix + j * row_stride;
  int64_t p = 0;
  for (; p + kBlock <= k; p += kBlock) {
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) {
      __builtin_prefetch(starts[j] + p + 1024 / sizeof(Element));
      Rows::load(starts[j] + p, row);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 2
        for (int part = 0; part < kParts; ++part) {
          totals[v][j] = Vector::multiply_add(
              row[part], Vector::load(arranged + v * padded + p + part * Vector::kLanes), totals[v][j]);
        }
      }
    }
  }
  if (p < k) {
    for (int j = 0; j < kRows; ++j) {
      alignas(64) Element rest[kBlock] = {};
      std::memcpy(rest, starts[j] + p, static_cast<size_t>(k - p) * sizeof(Element));
      Rows::load(rest, row);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 2
        for (int part = 0; part < kParts; ++part) {
          totals[v][j] = Vector::multiply_add(
              row[part], Vector::load(arranged + v * padded + p + part * Vector::kLanes), totals[v][j]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) sums[v * kInnerMatrixRows + j] = Vector::sum(totals[v][j]);
  }
}

// As many rows at a time as the registers hold sums for.
template <typename Rows, int kVectors>
void products_of_rows(const float* arranged, int64_t padded, const void* matrix, int64_t row_stride, int64_t rows,
                      int64_t k, float* sums) {
  constexpr int kRows = Vector::kSums / kVectors < 1 ? 1 : Vector::kSums / kVectors > 8 ? 8 : Vector::kSums / kVectors;
  auto* start = static_cast<const typename Rows::Element*>(matrix);
  int64_t j = 0;
  for (; j + kRows <= rows; j += kRows) {
    products<Rows, kVectors, kRows>(arranged, padded, start + j * row_stride, row_stride, k, sums + j);
  }
  for (; j < rows; ++j) {
    products<Rows, kVectors, 1>(arranged, padded, start + j * row_stride, row_stride, k, sums + j);
  }
}

template <typename Rows, size_t... kIndex>
constexpr auto make_products(std::index_sequence<kIndex...>) {
  return std::array{&products_of_rows<Rows, static_cast<int>(kIndex) + 1>...};
}

void compute(PackedSource type, int vectors, const float* arranged, int64_t padded, const void* matrix,
             int64_t row_stride, int64_t rows, int64_t k, float* sums) {
  using Index = std::make_index_sequence<kInnerVectors>;
  static constexpr auto kFloat32 = make_products<RowsOfFloat32>(Index());
  static constexpr auto kFloat16 = make_products<RowsOfFloat16>(Index());
  static constexpr auto kBFloat16 = make_products<RowsOfBFloat16>(Index());
  const auto& table = type == PackedSource::Float32 ? kFloat32 : type == PackedSource::Float16 ? kFloat16 : kBFloat16;
  table[vectors - 1](arranged, padded, matrix, row_stride, rows, k, sums);
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
