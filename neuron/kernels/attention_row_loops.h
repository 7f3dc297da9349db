// The loops of AttentionTiles over rows of memory: few queries against keys and values, and single rows. Included after
// attention_tile_loops.h, in the same way and with the same requirements; also, for each kind of element in memory, a
// struct with kBytes of a unit, load(), load_first() and step(), and
//   kDotSums and kDotVectors: sums and, at most, vectors of a tile of dot products,
//   kWeighedVectors: registers of a row that are weighed together,
//   kKeysAsked: keys whose shares of the rows ahead are asked for at once,
//   kSlowVectors: from how many vectors on arithmetic is slower than memory.

// Asks for rows before they are met, line after line. Where memory is slower than arithmetic, `near` ones are loaded:
// caches then fetch what follows by themselves, which they do less when lines are met in the order of a tile; of
// prefetches, processors drop those for which no buffer is free. Where arithmetic is slower, rows further on are
// prefetched, so that it never waits.
class Ahead {
 public:
  NEURON_INLINE Ahead(const char* rows, int64_t row_bytes, int64_t count, int64_t bytes, bool near, int64_t distance)
      : row_(rows + distance * row_bytes), row_bytes_(row_bytes), rows_(count - distance), bytes_(bytes), near_(near) {}
  NEURON_INLINE int64_t lines_of_row() const { return (bytes_ + 63) / 64; }
  NEURON_INLINE void ask(int64_t lines) {
    while (lines > 0 && rows_ > 0) {
      if (near_) {
        for (; at_ < bytes_ && lines > 0; at_ += 64, --lines) (void)*static_cast<const volatile char*>(row_ + at_);
      } else {
        for (; at_ < bytes_ && lines > 0; at_ += 64, --lines) __builtin_prefetch(row_ + at_, 0, 2);
      }
      if (at_ < bytes_) return;
      at_ = 0;
      row_ += row_bytes_;
      --rows_;
    }
  }

 private:
  const char* row_;
  int64_t row_bytes_, rows_, bytes_, at_ = 0;
  bool near_;
};
// How far ahead rows are prefetched from kSlowVectors on, where arithmetic is slower than memory.
constexpr int64_t kFarRows = 48;

// How many bytes behind `rows` the row is that is `far` ahead of it, when `count` are left before the next ones; 0 when
// there is none.
NEURON_INLINE int64_t rows_ahead(const char* rows, int64_t row_bytes, int64_t count, const char* next, int64_t far) {
  if (far < count) return far * row_bytes;
  return next == nullptr ? 0 : next - rows + (far - count) * row_bytes;
}

// kChunks: of 16 units in a row, 0 when not known.
template <typename Elements, int kRows, int kVectors, int kChunks>
NEURON_TARGET void dot_rows_tile(const char* rows, int64_t row_bytes, int64_t depth, const float* vectors,
                                 int64_t vector_stride, float scale, float* result, int64_t result_stride) {
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
      Vector row = Elements::load(rows + i * row_bytes + 16 * Elements::kBytes * c);
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
                               int64_t result_stride) {
  int64_t k = 0;
  const bool near = vector_count < kSlowVectors;
  Ahead ahead(rows, row_bytes, count, depth * Elements::kBytes, near, near ? kRows : kFarRows);
  const int64_t share = (kRows * ahead.lines_of_row() + vector_count / kVectors - 1) / (vector_count / kVectors);
  for (; k + kRows <= count; k += kRows, rows += kRows * row_bytes) {
    int r = 0;
    for (; r + kVectors <= vector_count; r += kVectors) {
      ahead.ask(share);
      dot_rows_tile<Elements, kRows, kVectors, kChunks>(rows, row_bytes, depth, vectors + r * vector_stride,
                                                        vector_stride, scale, result + r * result_stride + k,
                                                        result_stride);
    }
    for (; r < vector_count; ++r) {
      dot_rows_tile<Elements, kRows, 1, kChunks>(rows, row_bytes, depth, vectors + r * vector_stride, vector_stride,
                                                 scale, result + r * result_stride + k, result_stride);
    }
  }
  for (; k < count; ++k, rows += row_bytes) {
    for (int r = 0; r < vector_count; ++r) {
      dot_rows_tile<Elements, 1, 1, 0>(rows, row_bytes, depth, vectors + r * vector_stride, vector_stride, scale,
                                       result + r * result_stride + k, result_stride);
    }
  }
}

template <typename Elements, int kRows, int kVectors>
NEURON_TARGET void dot_rows_by(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const float* vectors,
                               int64_t vector_stride, int vector_count, float scale, float* result,
                               int64_t result_stride) {
  auto* body = depth == 32    ? dot_rows_of<Elements, kRows, kVectors, 2>
               : depth == 64  ? dot_rows_of<Elements, kRows, kVectors, 4>
               : depth == 128 ? dot_rows_of<Elements, kRows, kVectors, 8>
                              : dot_rows_of<Elements, kRows, kVectors, 0>;
  body(rows, row_bytes, count, depth, vectors, vector_stride, vector_count, scale, result, result_stride);
}

template <typename Elements>
NEURON_TARGET void dot_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const void* vectors,
                            int64_t vector_stride, int vector_count, float scale, float* result,
                            int64_t result_stride) {
  auto* body = vector_count >= 2 ? dot_rows_by<Elements, kDotSums / 2, 2> : dot_rows_by<Elements, kDotSums, 1>;
  if constexpr (kDotVectors >= 4) {
    if (vector_count == 3) body = dot_rows_by<Elements, kDotSums / 4, 3>;
    if (vector_count >= 4) body = dot_rows_by<Elements, kDotSums / 4, 4>;
  }
  body(rows, row_bytes, count, depth, static_cast<const float*>(vectors), vector_stride, vector_count, scale, result,
       result_stride);
}

// Keys [begin, end) that are weighed together, by some vectors and columns after the others, while they are in the
// nearest cache. For each of them a tile asks for `lines`, its share of the rows ahead.
struct WeighedPart {
  int64_t begin, end, lines;
  Ahead* ahead;
};
constexpr int64_t kWeighedTogether = 32;

template <typename Elements, int kCount, int kVectors>
NEURON_TARGET void weigh_rows_tile(const char* rows, int64_t row_bytes, const WeighedPart& part, int64_t width,
                                   const float* weights, int64_t weight_stride, float* target, int64_t target_stride) {
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
  for (int64_t k = part.begin; k < part.end;) {
    const int64_t stop = part.end - k < kKeysAsked ? part.end : k + kKeysAsked;
    part.ahead->ask(part.lines * (stop - k));
    for (; k < stop; ++k) {
      Vector row[kVectors];
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
    weigh_rows_tile<Elements, kCount, kVectors>(rows + j * Elements::kBytes, row_bytes, part, 16 * kVectors, weights,
                                                weight_stride, target + j, target_stride);
  }
  for (; width - j >= 16 * kWeighedVectors; j += 16 * kWeighedVectors) {
    weigh_rows_tile<Elements, kCount, kWeighedVectors>(rows + j * Elements::kBytes, row_bytes, part,
                                                       16 * kWeighedVectors, weights, weight_stride, target + j,
                                                       target_stride);
  }
  for (; j < width; j += 16) {
    weigh_rows_tile<Elements, kCount, 1>(rows + j * Elements::kBytes, row_bytes, part, width - j < 16 ? width - j : 16,
                                         weights, weight_stride, target + j, target_stride);
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
    weigh_rows_of<Elements, kCount>(rows, row_bytes, part, width, weights + r * weight_stride, weight_stride,
                                    target + r * target_stride, target_stride);
  }
};

// Calls body(part) for parts of the keys, which `tiles` meet one after the other. A single tile meets whole rows in
// order.
template <typename Body>
NEURON_INLINE void over_parts(const char* rows, int64_t row_bytes, int64_t count, int64_t bytes, int64_t tiles,
                              bool near, const Body& body) {
  const int64_t step = tiles == 1 && count > 0 ? count : kWeighedTogether;
  Ahead ahead(rows, row_bytes, count, bytes, near, near ? step : kFarRows);
  const int64_t lines = tiles == 1 ? 0 : (ahead.lines_of_row() + tiles - 1) / tiles;
  for (int64_t begin = 0; begin == 0 || begin < count; begin += step) {
    body(WeighedPart{begin, begin + step < count ? begin + step : count, lines, &ahead});
  }
}

template <typename Elements>
NEURON_TARGET void weigh_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t width, const float* weights,
                              int64_t weight_stride, int vectors, float* target, int64_t target_stride) {
  const int64_t columns = 16 * kWeighedVectors * (vectors == 1 ? 2 : 1);
  const int64_t tiles = (width + columns - 1) / columns * ((vectors + 3) / 4);
  over_parts(rows, row_bytes, count, width * Elements::kBytes, tiles, vectors < kSlowVectors,
             [&](const WeighedPart& part) NEURON_TARGET {
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
