// The loops of AttentionTiles over rows of memory: few queries against keys and values, and single rows. Included after
// attention_tile_loops.h, in the same way and with the same requirements; also, for each kind of element in memory, a
// struct with kBytes of a unit, load(), load_first(), step() and kNear: up to how many vectors its arithmetic takes
// less time than memory, and
//   kDotSums: sums of a tile of dot products,
//   kMostWeighedAtOnce: vectors that are weighed together,
//   weighed_vectors(count): registers of a row that `count` of them meet together.

// kVectors of them, by kRows rows, one row after the other. kChunks: of 16 units in a row, 0 when not known.
template <typename Elements, int kVectors, int kRows, int kChunks>
NEURON_TARGET void dot_rows_tile(const char* rows, int64_t row_bytes, int64_t depth, const float* vectors,
                                 int64_t vector_stride, float scale, float* result) {
  Vector sums[kRows * kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kVectors; ++i) sums[i] = zero();
  const int64_t chunks = kChunks != 0 ? kChunks : depth / 16, rest = kChunks != 0 ? 0 : depth % 16;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, rows += row_bytes) {
    touch(rows, kChunks != 0 ? kChunks * Elements::kBytes / 4 : lines_of(depth * Elements::kBytes));
#pragma GCC unroll 8
    for (int64_t c = 0; c < chunks; ++c) {
      Vector row = Elements::load(rows + 16 * Elements::kBytes * c);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        Vector& sum = sums[i * kVectors + v];
        sum = Elements::step(load(vectors + v * vector_stride + 16 * c), row, sum);
      }
    }
    if (rest != 0) {
      Vector row = Elements::load_first(rows + 16 * Elements::kBytes * chunks, rest);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        Vector& sum = sums[i * kVectors + v];
        sum = Elements::step(load(vectors + v * vector_stride + 16 * chunks), row, sum);
      }
    }
  }
  float values[kRows * kVectors];
  reduce_lanes<kRows * kVectors>(sums, values);
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kVectors; ++i) result[i] = scale * values[i];
}

template <typename Elements, int kVectors, int kChunks>
NEURON_TARGET void dot_rows_of(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const float* vectors,
                               int64_t vector_stride, float scale, float* result) {
  constexpr int kRows = kDotSums / kVectors;
  int64_t k = 0;
  for (; k + kRows <= count; k += kRows, rows += kRows * row_bytes, result += kRows * kVectors) {
    dot_rows_tile<Elements, kVectors, kRows, kChunks>(rows, row_bytes, depth, vectors, vector_stride, scale, result);
  }
  for (; k < count; ++k, rows += row_bytes, result += kVectors) {
    dot_rows_tile<Elements, kVectors, 1, 0>(rows, row_bytes, depth, vectors, vector_stride, scale, result);
  }
}

template <typename Elements, int kVectors>
NEURON_INLINE void dot_rows_by(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const float* vectors,
                               int64_t vector_stride, float scale, float* result) {
  auto* body = depth == 32    ? dot_rows_of<Elements, kVectors, 2>
               : depth == 64  ? dot_rows_of<Elements, kVectors, 4>
               : depth == 128 ? dot_rows_of<Elements, kVectors, 8>
                              : dot_rows_of<Elements, kVectors, 0>;
  body(rows, row_bytes, count, depth, vectors, vector_stride, scale, result);
}

template <typename Elements>
NEURON_TARGET void dot_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const void* vectors,
                            int64_t vector_stride, int vector_count, float scale, float* result) {
  auto* body = vector_count == 1 ? dot_rows_by<Elements, 1> : dot_rows_by<Elements, 2>;
  body(rows, row_bytes, count, depth, static_cast<const float*>(vectors), vector_stride, scale, result);
}

// Keys [begin, end) that are weighed together, by one tile after the other, while they are in the nearest cache.
struct WeighedPart {
  int64_t begin, end;
  int64_t bytes;  // of a row, the first tile touches what is not its own; 0: none
  // With each key a tile asks for `lines`, its share, from `asked` on, which is `step` bytes further for each key.
  int64_t lines;
  const char* asked;
  int64_t step, tile_step;
  NEURON_INLINE void next_tile() {
    bytes = 0;
    asked += tile_step;
  }
};
constexpr int64_t kNearKeys = 16, kFarKeys = 32;  // of a part, where rows are touched, and where they are asked for

// What a tile does before it meets a key, of which it takes the first kOwn bytes.
template <bool kNear, int kOwn>
class Fetch {
 public:
  explicit NEURON_INLINE Fetch(const WeighedPart& part)
      : lines_(!kNear              ? part.lines
               : part.bytes > kOwn ? lines_of(part.bytes - kOwn)
                                   : 0),
        asked_(part.asked),
        step_(part.step) {}
  NEURON_INLINE void row(const char* rows) {
    if constexpr (kNear) {
      touch(rows + kOwn, lines_);
    } else {
      for (int64_t line = 0; line < lines_; ++line) __builtin_prefetch(asked_ + 64 * line, 0, 2);
      asked_ += step_;
    }
  }

 private:
  int64_t lines_;
  const char* asked_;
  int64_t step_;
};

template <typename Elements, int kCount, int kVectors>
NEURON_TARGET void weigh_rows_tile(const char* rows, int64_t row_bytes, const WeighedPart& part, int64_t width,
                                   const float* weights, int64_t lanes, float* target, int64_t target_stride) {
  Vector sums[kCount][kVectors];
  int64_t last = width - 16 * (kVectors - 1);  // elements of the last vector
#pragma GCC unroll 8
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const float* sum = target + r * target_stride + 16 * v;
      sums[r][v] = part.begin == 0 ? zero() : v < kVectors - 1 || last >= 16 ? load(sum) : load_first(sum, last);
    }
  }
  Fetch<kCount <= Elements::kNear, 16 * Elements::kBytes * kVectors> fetch(part);
  for (int64_t k = part.begin; k < part.end; ++k, weights += lanes, rows += row_bytes) {
    Vector row[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors - 1; ++v) row[v] = Elements::load(rows + 16 * Elements::kBytes * v);
    const char* end = rows + 16 * Elements::kBytes * (kVectors - 1);
    row[kVectors - 1] = last >= 16 ? Elements::load(end) : Elements::load_first(end, last);
    fetch.row(rows);
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) {
      Vector weight = broadcast(weights + r);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = multiply_add(weight, row[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
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
NEURON_TARGET void weigh_rows_of(const char* rows, int64_t row_bytes, WeighedPart& part, int64_t width,
                                 const float* weights, int64_t lanes, float* target, int64_t target_stride) {
  constexpr int kVectors = weighed_vectors(kCount), kSome = kVectors > 4 ? 4 : kVectors;
  int64_t j = 0;
  for (; width - j >= 16 * kVectors; j += 16 * kVectors, part.next_tile()) {
    weigh_rows_tile<Elements, kCount, kVectors>(rows + j * Elements::kBytes, row_bytes, part, 16 * kVectors, weights,
                                                lanes, target + j, target_stride);
  }
  for (; width - j >= 16 * kSome; j += 16 * kSome, part.next_tile()) {
    weigh_rows_tile<Elements, kCount, kSome>(rows + j * Elements::kBytes, row_bytes, part, 16 * kSome, weights, lanes,
                                             target + j, target_stride);
  }
  for (; j < width; j += 16, part.next_tile()) {
    weigh_rows_tile<Elements, kCount, 1>(rows + j * Elements::kBytes, row_bytes, part, width - j < 16 ? width - j : 16,
                                         weights, lanes, target + j, target_stride);
  }
}

template <typename Elements>
struct WeighRows {
  const char* rows;
  int64_t row_bytes;
  WeighedPart& part;
  int64_t width;
  const float* weights;
  int64_t lanes;
  float* target;
  int64_t target_stride;
  template <int kCount>
  NEURON_INLINE void run(int r) const {
    weigh_rows_of<Elements, kCount>(rows, row_bytes, part, width, weights + r, lanes, target + r * target_stride,
                                    target_stride);
  }
};

// Calls body.run<kCount>(r) for kCount of the vectors from r on, until none are left.
template <typename Body>
NEURON_INLINE void over_vectors(int vectors, const Body& body) {
  int r = 0;
  if constexpr (kMostWeighedAtOnce == 8) {
    if (vectors == 8) return body.template run<8>(0);
    if (vectors == 7) return body.template run<7>(0);
    if (vectors == 6) return body.template run<6>(0);
    if (vectors == 5) return body.template run<5>(0);
  }
  for (; r + 4 <= vectors; r += 4) body.template run<4>(r);
  if (vectors - r == 3) body.template run<3>(r);
  if (vectors - r == 2) body.template run<2>(r);
  if (vectors - r == 1) body.template run<1>(r);
}

// How many tiles of weighed_vectors() vectors meet `vectors` vectors and a row of `width` elements.
NEURON_INLINE int64_t weighing_tiles(int vectors, int64_t width) {
  const int64_t columns = 16 * weighed_vectors(vectors < kMostWeighedAtOnce ? vectors : kMostWeighedAtOnce);
  return (width + columns - 1) / columns * ((vectors + kMostWeighedAtOnce - 1) / kMostWeighedAtOnce);
}

// Calls body(rows, part) for parts of the keys, whose rows have `bytes` and are met by `tiles` tiles.
template <typename Body>
NEURON_INLINE void over_parts(const char* rows, int64_t row_bytes, int64_t count, int64_t bytes, bool near,
                              int64_t tiles, const char* next, const Body& body) {
  const Ahead ahead(row_bytes, bytes, next);
  const int64_t keys = !near ? kFarKeys : tiles == 1 && count > 0 ? count : kNearKeys;
  const int64_t lines = (lines_of(bytes) + tiles - 1) / tiles;
  for (int64_t begin = 0; begin == 0 || begin < count; begin += keys, rows += keys * row_bytes) {
    WeighedPart part{begin, begin + keys < count ? begin + keys : count, bytes, lines, rows, row_bytes, 64 * lines};
    if (!near) part.asked += ahead.distance(rows, count - begin);
    if (ahead.together()) part.step = 64 * lines, part.tile_step = 64 * lines * keys;
    body(rows, part);
  }
}

template <typename Elements>
NEURON_TARGET void weigh_rows(const char* rows, int64_t row_bytes, int64_t count, int64_t width, const float* weights,
                              int lanes, int vectors, float* target, int64_t target_stride, const char* next) {
  over_parts(rows, row_bytes, count, width * Elements::kBytes, vectors <= Elements::kNear,
             weighing_tiles(vectors, width), next, [&](const char* first, WeighedPart& part) NEURON_TARGET {
               over_vectors(vectors, WeighRows<Elements>{first, row_bytes, part, width, weights + part.begin * lanes,
                                                         lanes, target, target_stride});
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
