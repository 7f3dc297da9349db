// The loops of AttentionTiles over rows of memory: few queries against keys and values, and single rows. Included after
// attention_tile_loops.h, in the same way and with the same requirements; also kDotSums and kWeighedVectors, and for
// each kind of element in memory a struct with kBytes of a unit, load(), load_first() and step().

// kChunks: of 16 units in a row, 0 when not known.
template <typename Elements, int kRows, int kVectors, int kChunks, bool kPrefetches>
NEURON_TARGET void dot_rows_tile(const char* rows, int64_t row_bytes, const char* next, int64_t next_quarter,
                                 int64_t next_row_bytes, int64_t depth, const float* vectors, int64_t vector_stride,
                                 float scale, float* result, int64_t result_stride) {
  Vector sums[kVectors * kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kVectors * kRows; ++i) sums[i] = zero();
  const int64_t chunks = kChunks != 0 ? kChunks : depth / 16;
#pragma GCC unroll 8
  for (int64_t c = 0; c < chunks; ++c) {
    Vector x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) x[v] = load(vectors + v * vector_stride + 16 * c);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const char* place = rows + i * row_bytes + 16 * Elements::kBytes * c;
      if (kPrefetches && 16 * Elements::kBytes * c % 64 == 0) {
        const char* fetched = next + (i % 4 * next_quarter + i / 4 * next_row_bytes);
        __builtin_prefetch(fetched + 16 * Elements::kBytes * c, 0, 2);
      }
      Vector row = Elements::load(place);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[v * kRows + i] = Elements::step(x[v], row, sums[v * kRows + i]);
    }
  }
  const int64_t rest = kChunks != 0 ? 0 : depth % 16;
  if (rest != 0) {
    for (int i = 0; i < kRows; ++i) {
      Vector row = Elements::load_first(rows + i * row_bytes + 16 * Elements::kBytes * chunks, rest);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[v * kRows + i] = Elements::step(load(vectors + v * vector_stride + 16 * chunks), row, sums[v * kRows + i]);
      }
    }
  }
  float values[kVectors * kRows];
  reduce_lanes<kVectors * kRows>(sums, values);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) result[v * result_stride + i] = scale * values[v * kRows + i];
  }
}

// All vectors meet a group of rows, some of them at a time, while those are in the nearest cache.
template <typename Elements, int kRows, int kVectors, int kChunks>
NEURON_TARGET void dot_rows_of(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const float* vectors,
                               int64_t vector_stride, int vector_count, float scale, float* result,
                               int64_t result_stride, NextRows next) {
  const int64_t next_quarter = count / 4 * next.row_bytes;
  int64_t k = 0;
  for (; k + kRows <= count; k += kRows, rows += kRows * row_bytes) {
    dot_rows_tile<Elements, kRows, kVectors, kChunks, true>(rows, row_bytes, next.data + k / 4 * next.row_bytes,
                                                            next_quarter, next.row_bytes, depth, vectors, vector_stride,
                                                            scale, result + k, result_stride);
    int r = kVectors;
    for (; r + kVectors <= vector_count; r += kVectors) {
      dot_rows_tile<Elements, kRows, kVectors, kChunks, false>(rows, row_bytes, rows, 0, 0, depth,
                                                               vectors + r * vector_stride, vector_stride, scale,
                                                               result + r * result_stride + k, result_stride);
    }
    for (; r < vector_count; ++r) {
      dot_rows_tile<Elements, kRows, 1, kChunks, false>(rows, row_bytes, rows, 0, 0, depth, vectors + r * vector_stride,
                                                        vector_stride, scale, result + r * result_stride + k,
                                                        result_stride);
    }
  }
  for (; k < count; ++k, rows += row_bytes) {
    for (int r = 0; r < vector_count; ++r) {
      dot_rows_tile<Elements, 1, 1, 0, false>(rows, row_bytes, rows, 0, 0, depth, vectors + r * vector_stride,
                                              vector_stride, scale, result + r * result_stride + k, result_stride);
    }
  }
}

template <typename Elements, int kRows, int kVectors>
NEURON_TARGET void dot_rows_by(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const float* vectors,
                               int64_t vector_stride, int vector_count, float scale, float* result,
                               int64_t result_stride, NextRows next) {
  auto* body = depth == 32    ? dot_rows_of<Elements, kRows, kVectors, 2>
               : depth == 64  ? dot_rows_of<Elements, kRows, kVectors, 4>
               : depth == 128 ? dot_rows_of<Elements, kRows, kVectors, 8>
                              : dot_rows_of<Elements, kRows, kVectors, 0>;
  body(rows, row_bytes, count, depth, vectors, vector_stride, vector_count, scale, result, result_stride, next);
}

template <typename Elements>
NEURON_TARGET void dot_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const void* vectors,
                            int64_t vector_stride, int vector_count, float scale, float* result, int64_t result_stride,
                            NextRows next) {
  auto* body = vector_count >= 4   ? dot_rows_by<Elements, kDotSums / 4, 4>
               : vector_count == 3 ? dot_rows_by<Elements, kDotSums / 4, 3>
               : vector_count == 2 ? dot_rows_by<Elements, kDotSums / 2, 2>
                                   : dot_rows_by<Elements, kDotSums, 1>;
  body(rows, row_bytes, count, depth, static_cast<const float*>(vectors), vector_stride, vector_count, scale, result,
       result_stride, next);
}

// Keys [begin, end) of `count` that are weighed together, by one of some groups of vectors after the other: each asks
// for its share of the rows that come next, in four runs of them side by side, which memory serves faster than one.
struct WeighedPart {
  NextRows next;
  int64_t begin, end, count;
  int group, groups;

  NEURON_INLINE bool fetches(int64_t k) const { return groups == 1 || (k & (groups - 1)) == group; }
  NEURON_INLINE const char* row_to_fetch(int64_t k) const {
    int64_t quarter = count / 4;
    return next.data + (k < 4 * quarter ? k % 4 * quarter + k / 4 : k) * next.row_bytes;
  }
};
constexpr int64_t kWeighedTogether = 64;

template <typename Elements, int kCount, int kVectors>
NEURON_TARGET void weigh_rows_tile(const char* rows, int64_t row_bytes, const WeighedPart& part, int64_t offset,
                                   int64_t width, const float* weights, int64_t weight_stride, float* target,
                                   int64_t target_stride) {
  Vector sums[kCount][kVectors];
  int64_t last = width - 16 * (kVectors - 1);  // elements of the last vector
#pragma GCC unroll 4
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const float* sum = target + r * target_stride + 16 * v;
      sums[r][v] = part.begin == 0 ? zero() : v < kVectors - 1 || last >= 16 ? load(sum) : load_first(sum, last);
    }
  }
  for (int64_t k = part.begin; k < part.end; ++k) {
    Vector row[kVectors];
    if (part.fetches(k)) {
      const char* fetched = part.row_to_fetch(k) + offset;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; v += 4 / Elements::kBytes) {
        __builtin_prefetch(fetched + 16 * Elements::kBytes * v, 0, 2);
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors - 1; ++v) row[v] = Elements::load(rows + 16 * Elements::kBytes * v);
    const char* end = rows + 16 * Elements::kBytes * (kVectors - 1);
    rows += row_bytes;
    row[kVectors - 1] = last >= 16 ? Elements::load(end) : Elements::load_first(end, last);
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

// kCount vectors of weights at a time: a row is loaded once for them. `rows` are those of the part.
template <typename Elements, int kCount>
NEURON_TARGET void weigh_rows_of(const char* rows, int64_t row_bytes, const WeighedPart& part, int64_t width,
                                 const float* weights, int64_t weight_stride, float* target, int64_t target_stride) {
  constexpr int kVectors = kCount == 1 ? 2 * kWeighedVectors : kWeighedVectors;
  int64_t j = 0;
  for (; width - j >= 16 * kVectors; j += 16 * kVectors) {
    weigh_rows_tile<Elements, kCount, kVectors>(rows + j * Elements::kBytes, row_bytes, part, j * Elements::kBytes,
                                                16 * kVectors, weights, weight_stride, target + j, target_stride);
  }
  for (; width - j >= 16 * kWeighedVectors; j += 16 * kWeighedVectors) {
    weigh_rows_tile<Elements, kCount, kWeighedVectors>(rows + j * Elements::kBytes, row_bytes, part,
                                                       j * Elements::kBytes, 16 * kWeighedVectors, weights,
                                                       weight_stride, target + j, target_stride);
  }
  for (; j < width; j += 16) {
    weigh_rows_tile<Elements, kCount, 1>(rows + j * Elements::kBytes, row_bytes, part, j * Elements::kBytes,
                                         width - j < 16 ? width - j : 16, weights, weight_stride, target + j,
                                         target_stride);
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

template <typename Elements>
struct WeighRows {
  const char* rows;
  int64_t row_bytes;
  WeighedPart part;
  int64_t width;
  const float* weights;
  int64_t weight_stride;
  float* target;
  int64_t target_stride;
  template <int kCount>
  NEURON_INLINE void run(int r) const {
    WeighedPart own = part;
    own.group = r / 4;
    weigh_rows_of<Elements, kCount>(rows, row_bytes, own, width, weights + r * weight_stride, weight_stride,
                                    target + r * target_stride, target_stride);
  }
};

// Calls body(part) for parts of the keys that stay in the nearest cache while all vectors meet them.
template <typename Body>
NEURON_INLINE void over_parts(int64_t count, int vectors, NextRows next, const Body& body) {
  int64_t step = vectors > 1 ? kWeighedTogether : count < 1 ? 1 : count;
  for (int64_t begin = 0; begin == 0 || begin < count; begin += step) {
    body(WeighedPart{next, begin, begin + step < count ? begin + step : count, count, 0, vectors > 4 ? 2 : 1});
  }
}

template <typename Elements>
NEURON_TARGET void weigh_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t width, const float* weights,
                              int64_t weight_stride, int vectors, float* target, int64_t target_stride, NextRows next) {
  over_parts(count, vectors, next, [&](const WeighedPart& part) NEURON_TARGET {
    over_vectors(vectors, WeighRows<Elements>{rows + part.begin * row_bytes, row_bytes, part, width, weights,
                                              weight_stride, target, target_stride});
  });
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
