// The loops of AttentionTiles over rows of memory: few queries against keys and values, and single rows. Included after
// attention_tile_loops.h, in the same way and with the same requirements.

// How many rows ahead memory is asked for: the processor's own prefetching does not look beyond a page.
constexpr int64_t kPrefetchRows = 32;

// Rows are read one after the other, as prefetching expects. kChunks: of 16 units in a row, 0 when not known; known
// ones leave the vector in registers.
template <typename Units, int kRows, int kChunks, bool kPrefetches>
NEURON_TARGET void dot_rows_tile(const char* rows, int64_t row_bytes, int64_t depth, const float* vector, float scale,
                                 float* result) {
  Vector x[kChunks == 0 ? 1 : kChunks], sums[kRows];
#pragma GCC unroll 8
  for (int c = 0; c < kChunks; ++c) x[c] = load(vector + 16 * c);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const char* row = rows + i * row_bytes;
    Vector sum = zero();
    if constexpr (kChunks != 0) {
#pragma GCC unroll 8
      for (int c = 0; c < kChunks; ++c) {
        if (kPrefetches) __builtin_prefetch(row + kPrefetchRows * row_bytes + 64 * c);
        sum = Units::step(x[c], load(reinterpret_cast<const float*>(row) + 16 * c), sum);
      }
    } else {
      int64_t u = 0;
      for (; u + 16 <= depth; u += 16) {
        if (kPrefetches) __builtin_prefetch(row + kPrefetchRows * row_bytes + 4 * u);
        sum = Units::step(load(vector + u), load(reinterpret_cast<const float*>(row) + u), sum);
      }
      if (u < depth) {
        sum = Units::step(load(vector + u), load_first(reinterpret_cast<const float*>(row) + u, depth - u), sum);
      }
    }
    sums[i] = sum;
  }
  float values[kRows];
  reduce_lanes<kRows>(sums, values);
  for (int i = 0; i < kRows; ++i) result[i] = scale * values[i];
}

// All vectors meet a group of rows while those are in the nearest cache.
template <typename Units, int kChunks>
NEURON_TARGET void dot_rows_of(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const float* vectors,
                               int64_t vector_stride, int vector_count, float scale, float* result,
                               int64_t result_stride) {
  for (int64_t k = 0; k < count; k += kDotRows, rows += kDotRows * row_bytes) {
    bool whole = k + kDotRows <= count;
    for (int r = 0; r < vector_count; ++r) {
      const float* vector = vectors + r * vector_stride;
      float* place = result + r * result_stride + k;
      if (whole && r == 0) {
        dot_rows_tile<Units, kDotRows, kChunks, true>(rows, row_bytes, depth, vector, scale, place);
      } else if (whole) {
        dot_rows_tile<Units, kDotRows, kChunks, false>(rows, row_bytes, depth, vector, scale, place);
      } else {
        for (int64_t i = 0; i < count - k; ++i) {
          dot_rows_tile<Units, 1, 0, false>(rows + i * row_bytes, row_bytes, depth, vector, scale, place + i);
        }
      }
    }
  }
}

template <typename Units>
NEURON_TARGET void dot_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const void* vectors,
                            int64_t vector_stride, int vector_count, float scale, float* result,
                            int64_t result_stride) {
  auto* x = static_cast<const float*>(vectors);
  auto* body = depth == 32    ? dot_rows_of<Units, 2>
               : depth == 64  ? dot_rows_of<Units, 4>
               : depth == 128 ? dot_rows_of<Units, 8>
                              : dot_rows_of<Units, 0>;
  body(rows, row_bytes, count, depth, x, vector_stride, vector_count, scale, result, result_stride);
}

template <int kCount, int kVectors>
NEURON_TARGET void weigh_float_rows_tile(const char* rows, int64_t row_bytes, int64_t count, int64_t width,
                                         const float* weights, int64_t weight_stride, float* target,
                                         int64_t target_stride) {
  Vector sums[kCount][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = zero();
  }
  int64_t last = width - 16 * (kVectors - 1);  // elements of the last vector
  for (int64_t k = 0; k < count; ++k, rows += row_bytes) {
    Vector row[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(rows + kPrefetchRows * row_bytes + 64 * v);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors - 1; ++v) row[v] = load(reinterpret_cast<const float*>(rows) + 16 * v);
    const float* end = reinterpret_cast<const float*>(rows) + 16 * (kVectors - 1);
    row[kVectors - 1] = last >= 16 ? load(end) : load_first(end, last);
#pragma GCC unroll 4
    for (int r = 0; r < kCount; ++r) {
      Vector weight = broadcast(weights + r * weight_stride + k);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = multiply_add(weight, row[v], sums[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors - 1; ++v) store(target + r * target_stride + 16 * v, sums[r][v]);
    float* end = target + r * target_stride + 16 * (kVectors - 1);
    if (last >= 16) {
      store(end, sums[r][kVectors - 1]);
    } else {
      store_first(end, last, sums[r][kVectors - 1]);
    }
  }
}

// kCount vectors of weights at a time: a row is loaded once for them.
template <int kCount>
NEURON_TARGET void weigh_float_rows_of(const char* rows, int64_t row_bytes, int64_t count, int64_t width,
                                       const float* weights, int64_t weight_stride, float* target,
                                       int64_t target_stride) {
  constexpr int kVectors = kCount == 1 ? 2 * kWeighedVectors : kWeighedVectors;
  int64_t j = 0;
  for (; width - j >= 16 * kVectors; j += 16 * kVectors) {
    weigh_float_rows_tile<kCount, kVectors>(rows + j * 4, row_bytes, count, 16 * kVectors, weights, weight_stride,
                                            target + j, target_stride);
  }
  for (; width - j >= 16 * kWeighedVectors; j += 16 * kWeighedVectors) {
    weigh_float_rows_tile<kCount, kWeighedVectors>(rows + j * 4, row_bytes, count, 16 * kWeighedVectors, weights,
                                                   weight_stride, target + j, target_stride);
  }
  for (; j < width; j += 16) {
    weigh_float_rows_tile<kCount, 1>(rows + j * 4, row_bytes, count, width - j < 16 ? width - j : 16, weights,
                                     weight_stride, target + j, target_stride);
  }
}

template <typename Body>
NEURON_INLINE void over_vectors(int vectors, const Body& body) {
  int r = 0;
  for (; r + 4 <= vectors; r += 4) body.template run<4>(r);
  if (vectors - r == 3) body.template run<3>(r);
  if (vectors - r == 2) body.template run<2>(r);
  if (vectors - r == 1) body.template run<1>(r);
}

struct WeighFloatRows {
  const char* rows;
  int64_t row_bytes, count, width;
  const float* weights;
  int64_t weight_stride;
  float* target;
  int64_t target_stride;
  template <int kCount>
  NEURON_INLINE void run(int r) const {
    weigh_float_rows_of<kCount>(rows, row_bytes, count, width, weights + r * weight_stride, weight_stride,
                                target + r * target_stride, target_stride);
  }
};

NEURON_TARGET void weigh_float_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t width,
                                    const float* weights, int64_t weight_stride, int vectors, float* target,
                                    int64_t target_stride) {
  over_vectors(vectors, WeighFloatRows{rows, row_bytes, count, width, weights, weight_stride, target, target_stride});
}

NEURON_TARGET float row_exponentials(float* row, int64_t count, float shift) {
  Vector sum = zero(), by = set(shift);
  for (int64_t j = 0; j < count; j += 16) {
    int64_t rest = count - j;
    Vector x = rest >= 16 ? load(row + j) : lowest_from(rest, load_first(row + j, rest));
    x = exponential(subtract(x, by));
    sum = add(sum, x);
    if (rest >= 16) {
      store(row + j, x);
    } else {
      store_first(row + j, rest, x);
    }
  }
  float result;
  reduce_lanes<1>(&sum, &result);
  return result;
}

NEURON_TARGET float row_maximum(const float* row, int64_t count) {
  float best = -__builtin_inff();
  int64_t j = 0;
  if (count >= 16) {
    Vector lanes = set(best);
    for (; j + 16 <= count; j += 16) lanes = maximum(load(row + j), lanes);
    alignas(64) float values[16];
    store(values, lanes);
    for (float value : values) best = value > best ? value : best;
  }
  for (; j < count; ++j) best = row[j] > best ? row[j] : best;
  return best;
}

NEURON_TARGET float row_dot(const float* x, const float* y, int64_t count) {
  Vector sum = zero();
  for (int64_t j = 0; j < count; j += 16) {
    int64_t rest = count - j;
    Vector a = rest >= 16 ? load(x + j) : load_first(x + j, rest);
    Vector b = rest >= 16 ? load(y + j) : load_first(y + j, rest);
    sum = multiply_add(a, b, sum);
  }
  float result;
  reduce_lanes<1>(&sum, &result);
  return result;
}
