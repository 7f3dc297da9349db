// The loops of AttentionTiles over three to eight vectors that meet the same rows of memory. Included after
// attention_row_loops.h, in the same way and with the same requirements; also
//   kDotRegisters and kGroupSums: the most registers of a panel that a tile meets, and of its sums.
//
// Vectors are lanes; lanes l and l + lanes / 2 share a register of 256 bits, four units of each, and four units of a
// row are loaded into both halves of another: one load for two products, and no sum of a row and a vector spreads over
// more than four lanes. Registers of 512 bits would need a load for each product, and those of a cycle are as few as
// products.

struct FloatGroup {
  static constexpr int kNear = FloatElements::kNear;
  NEURON_INLINE static __m256 step(__m256 x, __m256 y, __m256 sum) { return _mm256_fmadd_ps(x, y, sum); }
};

NEURON_INLINE __m256 four_units(const char* x) { return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(x)); }
// The first `count` < 4 units; the others are zero.
NEURON_INLINE __m256 first_units(const char* x, int64_t count) {
  __m128i mask = _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int32_t>(count)), _mm_setr_epi32(0, 1, 2, 3));
  __m128 first = _mm_maskload_ps(reinterpret_cast<const float*>(x), mask);
  return _mm256_set_m128(first, first);
}

// Element i of each half: the sum of that half of x[i], halves added in turn: 2, 1.
NEURON_INLINE __m256 sum_fours(const __m256* x) {
  __m256 even = _mm256_add_ps(_mm256_blend_ps(x[0], x[2], 0xcc), _mm256_shuffle_ps(x[0], x[2], 0x4e));
  __m256 odd = _mm256_add_ps(_mm256_blend_ps(x[1], x[3], 0xcc), _mm256_shuffle_ps(x[1], x[3], 0x4e));
  __m256 rest = _mm256_blend_ps(even, odd, 0x55);
  return _mm256_add_ps(_mm256_blend_ps(even, odd, 0xaa), _mm256_permute_ps(rest, 0xb1));
}

// The sums of kRows rows, from those of their registers [row][register]: kRegisters of them, from `first` of those of
// all lanes on.
template <int kLanesOfRow, int kRegisters, int kRows>
NEURON_INLINE void store_sums(const __m256* sums, __m256 factor, int first, float* result) {
  constexpr int kRowsTogether = 4 / kRegisters;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; i += kRowsTogether) {
    __m256 fours[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const int row = i + j / kRegisters;
      fours[j] = sums[(row < kRows ? row : kRows - 1) * kRegisters + j % kRegisters];
    }
    const __m256 x = _mm256_mul_ps(factor, sum_fours(fours));
    float* target = result + i * kLanesOfRow;
    const __m128 low = _mm256_castps256_ps128(x);
    if constexpr (kRegisters * 2 == kLanesOfRow) {
      // Lanes of the first half of all rows, then those of the second.
      __m256 ordered = x;
      if constexpr (kRegisters == 2) ordered = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xd8));
      if (i + kRowsTogether <= kRows) {
        _mm256_storeu_ps(target, ordered);
      } else {
        _mm_storeu_ps(target, _mm256_castps256_ps128(ordered));
      }
    } else {
      static_assert(kRegisters == 2 && kLanesOfRow == 8);
      const __m128 high = _mm256_extractf128_ps(x, 1);
      _mm_storel_pi(reinterpret_cast<__m64*>(target + first), low);
      _mm_storel_pi(reinterpret_cast<__m64*>(target + first + 4), high);
      if (i + 1 < kRows) {
        _mm_storeh_pi(reinterpret_cast<__m64*>(target + 8 + first), low);
        _mm_storeh_pi(reinterpret_cast<__m64*>(target + 8 + first + 4), high);
      }
    }
  }
}

// What a tile does before or while it meets rows of units of memory.
enum class Fetching { None, Touches, Asks };

// kChunks: of 16 units in a row, 0 when not known.
template <typename Group, int kLanesOfRow, int kRegisters, int kRows, Fetching kFetching, int kChunks>
NEURON_TARGET void dot_group_tile(const char* rows, int64_t row_bytes, int64_t depth, const float* panel, int first,
                                  float scale, float* result, const char* asked, bool together) {
  __m256 sums[kRows * kRegisters];
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kRegisters; ++i) sums[i] = _mm256_setzero_ps();
  auto meet = [&](int64_t u, auto load) NEURON_TARGET {
    const float* lanes = panel + u * kLanesOfRow + 8 * first;
    __m256 vectors[kRegisters];
#pragma GCC unroll 4
    for (int j = 0; j < kRegisters; ++j) vectors[j] = _mm256_loadu_ps(lanes + 8 * j);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      __m256 units;
      load(rows + i * row_bytes + 4 * u, units);
#pragma GCC unroll 4
      for (int j = 0; j < kRegisters; ++j) {
        sums[i * kRegisters + j] = Group::step(units, vectors[j], sums[i * kRegisters + j]);
      }
    }
  };
  auto four = [](const char* x, __m256& units) NEURON_TARGET { units = four_units(x); };
  if constexpr (kFetching == Fetching::Touches) {
    for (int i = 0; i < kRows; ++i) touch(rows + i * row_bytes, lines_of(4 * depth));
  }
  // What is asked for: from a row's line to the next row's, and to the next lines of all.
  const int64_t row_step = together ? 64 : row_bytes, line_step = together ? 64 * kRows : 64;
  auto meet_chunk = [&](int64_t u) NEURON_TARGET {
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      if constexpr (kFetching == Fetching::Asks) {
#pragma GCC unroll 4
        for (int i = part * kRows / 4; i < (part + 1) * kRows / 4; ++i) {
          __builtin_prefetch(asked + i * row_step, 0, 2);
        }
      }
      meet(u + 4 * part, four);
    }
    if constexpr (kFetching == Fetching::Asks) asked += line_step;
  };
  int64_t u = 0;
#pragma GCC unroll 8
  for (int chunk = 0; chunk < kChunks; ++chunk, u += 16) meet_chunk(u);
  for (; kChunks == 0 && u + 16 <= depth; u += 16) meet_chunk(u);
  for (; u + 4 <= depth; u += 4) meet(u, four);
  if (u < depth) meet(u, [&](const char* x, __m256& units) NEURON_TARGET { units = first_units(x, depth - u); });
  store_sums<kLanesOfRow, kRegisters, kRows>(sums, _mm256_set1_ps(scale), first, result);
}

// Rows of a tile of four lanes and of eight.
constexpr int kFourRows = kGroupSums / 2, kEightRows = kGroupSums / kDotRegisters;
static_assert(kFourRows <= kWidenedRows);

// All lanes meet some rows while those are in the nearest cache.
template <typename Group, int kLanesOfRow, int kRows, Fetching kFetching, int kChunks = 0>
NEURON_INLINE void dot_group_of(const char* rows, int64_t row_bytes, int64_t depth, const float* panel, float scale,
                                float* result, const char* asked, bool together) {
  constexpr int kAll = kLanesOfRow / 2, kRegisters = kAll < kDotRegisters ? kAll : kDotRegisters;
  dot_group_tile<Group, kLanesOfRow, kRegisters, kRows, kFetching, kChunks>(rows, row_bytes, depth, panel, 0, scale,
                                                                            result, asked, together);
#pragma GCC unroll 4
  for (int first = kRegisters; first < kAll; first += kRegisters) {
    dot_group_tile<Group, kLanesOfRow, kRegisters, kRows, Fetching::None, kChunks>(rows, row_bytes, depth, panel, first,
                                                                                   scale, result, nullptr, true);
  }
}

template <typename Group, int kLanesOfRow, int kRows, Fetching kFetching, int kChunks = 0>
NEURON_TARGET void dot_groups_over(const char* rows, int64_t row_bytes, int64_t count, int64_t depth,
                                   const float* panel, float scale, float* result, const Ahead& ahead) {
  int64_t k = 0;
  for (; k + kRows <= count; k += kRows, rows += kRows * row_bytes, result += kRows * kLanesOfRow) {
    const char* asked = kFetching == Fetching::Asks ? rows + ahead.distance(rows, count - k) : nullptr;
    dot_group_of<Group, kLanesOfRow, kRows, kFetching, kChunks>(rows, row_bytes, depth, panel, scale, result, asked,
                                                                ahead.together());
  }
  for (; k < count; ++k, rows += row_bytes, result += kLanesOfRow) {
    dot_group_of<Group, kLanesOfRow, 1, Fetching::None>(rows, row_bytes, depth, panel, scale, result, nullptr, true);
  }
}

template <typename Group>
NEURON_TARGET void dot_groups(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const float* panel,
                              int lanes, float scale, float* result, const char* next, float*) {
  auto* body = dot_groups_over<Group, 8, kEightRows, Fetching::Asks>;
  if (lanes == 4) {
    if constexpr (Group::kNear < 4) {
      body = dot_groups_over<Group, 4, kFourRows, Fetching::Asks>;
    } else {
      // A loop over a long row looks to the processor like a way through memory that goes on where the row ends, and
      // more than 2 KB are not met as they were touched.
      body = depth <= 64    ? dot_groups_over<Group, 4, kFourRows, Fetching::Touches>
             : depth == 128 ? dot_groups_over<Group, 4, 4, Fetching::Touches, 8>
                            : dot_groups_over<Group, 4, kFourRows, Fetching::Asks>;
    }
  }
  body(rows, row_bytes, count, depth, panel, scale, result, Ahead(row_bytes, 4 * depth, next));
}

// Of elements of 16 bits: some rows are widened, then meet all lanes.
template <typename Elements>
NEURON_TARGET void dot_groups_widened(const char* rows, int64_t row_bytes, int64_t count, int64_t depth,
                                      const float* panel, int lanes, float scale, float* result, const char* next,
                                      float* widened) {
  const Ahead ahead(row_bytes, 2 * depth, next);
  const int64_t stride = (depth + 15) / 16 * 16;
  for (int64_t k = 0; k < count; k += kFourRows) {
    const int64_t part = count - k < kFourRows ? count - k : kFourRows;
    for (int64_t i = 0; i < part; ++i, rows += row_bytes) {
      const char* asked = rows + ahead.distance(rows, count - k - i);
      float* target = widened + i * stride;
      int64_t u = 0;
      for (; u + 32 <= depth; u += 32) {
        __builtin_prefetch(asked + 2 * u, 0, 2);
        store(target + u, Elements::load(rows + 2 * u));
        store(target + u + 16, Elements::load(rows + 2 * u + 32));
      }
      for (; u < depth; u += 16) {
        store(target + u,
              depth - u >= 16 ? Elements::load(rows + 2 * u) : Elements::load_first(rows + 2 * u, depth - u));
      }
    }
    auto* body = lanes == 4 ? dot_groups_over<FloatGroup, 4, kFourRows, Fetching::None>
                            : dot_groups_over<FloatGroup, 8, kEightRows, Fetching::None>;
    body(reinterpret_cast<const char*>(widened), stride * 4, part, depth, panel, scale, result + k * lanes, ahead);
  }
}

// What follows takes [key][lane] for 1, 2, 4 or 8 lanes: of a vector's 16 lanes the same are met by the same queries.
NEURON_TARGET void lane_maxima(const float* scores, int64_t keys, int lanes, float* maxima) {
  const int64_t count = keys * lanes;
  Vector best = set(-__builtin_inff());
  for (int64_t j = 0; j < count; j += 16) {
    const int64_t rest = count - j;
    best = maximum(rest >= 16 ? load(scores + j) : lowest_from(rest, load_first(scores + j, rest)), best);
  }
  alignas(64) float values[16];
  store(values, best);
  for (int half = 8; half >= lanes; half /= 2) {
    for (int l = 0; l < half; ++l) values[l] = values[l + half] > values[l] ? values[l + half] : values[l];
  }
  for (int l = 0; l < lanes; ++l) maxima[l] = values[l];
}

// sums[l]: in 16 lanes of keys, as row_exponentials.
template <int kLanesOfKey>
NEURON_TARGET void lane_exponentials_of(float* scores, int64_t count, Vector shift, float* sums) {
  Vector parts[kLanesOfKey];
#pragma GCC unroll 8
  for (int i = 0; i < kLanesOfKey; ++i) parts[i] = zero();
  int64_t j = 0;
  for (; j + 16 * kLanesOfKey <= count; j += 16 * kLanesOfKey) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanesOfKey; ++i) {
      const Vector x = exponential(subtract(load(scores + j + 16 * i), shift));
      parts[i] = add(parts[i], x);
      store(scores + j + 16 * i, x);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kLanesOfKey; ++i, j += 16) {
    const int64_t rest = count - j;
    if (rest <= 0) break;
    Vector x = rest >= 16 ? load(scores + j) : lowest_from(rest, load_first(scores + j, rest));
    x = exponential(subtract(x, shift));
    parts[i] = add(parts[i], x);
    if (rest >= 16) {
      store(scores + j, x);
    } else {
      store_first(scores + j, rest, x);
    }
  }
#pragma GCC unroll 3
  for (int half = kLanesOfKey / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (int i = 0; i < half; ++i) parts[i] = add(parts[i], parts[i + half]);
  }
  alignas(64) float values[16];
  store(values, parts[0]);
  for (int half = 8; half >= kLanesOfKey; half /= 2) {
    for (int l = 0; l < half; ++l) values[l] += values[l + half];
  }
  for (int l = 0; l < kLanesOfKey; ++l) sums[l] = values[l];
}

NEURON_TARGET void lane_exponentials(float* scores, int64_t keys, int lanes, const float* shifts, float* sums) {
  alignas(64) float values[16];
  for (int l = 0; l < 16; ++l) values[l] = shifts[l % lanes];
  auto* body = lanes == 1   ? lane_exponentials_of<1>
               : lanes == 2 ? lane_exponentials_of<2>
               : lanes == 4 ? lane_exponentials_of<4>
                            : lane_exponentials_of<8>;
  body(scores, keys * lanes, load(values), sums);
}
