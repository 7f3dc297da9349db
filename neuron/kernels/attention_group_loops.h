// The loops of AttentionTiles over groups of four vectors that meet the same rows of memory. Included after
// attention_row_loops.h, in the same way and with the same requirements; also kGroupRows, the rows of a tile.
//
// A group's vectors lie side by side, four units of each, in two registers of 256 bits, and four units of a row are
// loaded into both halves of a third: one load for two products, and no sum of a row and a vector spreads over more
// than four lanes. Registers of 512 bits would need a load for each product, and those of a cycle are as few as
// products.

struct FloatGroup {
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

// The first kCount elements of both halves to rows.
template <int kCount>
NEURON_INLINE void store_halves(__m256 x, float* low, float* high) {
  __m128 halves[] = {_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)};
  if constexpr (kCount == 4) {
    _mm_storeu_ps(low, halves[0]);
    _mm_storeu_ps(high, halves[1]);
  } else {
    alignas(16) float values[2][4];
    _mm_store_ps(values[0], halves[0]);
    _mm_store_ps(values[1], halves[1]);
    for (int i = 0; i < kCount; ++i) low[i] = values[0][i], high[i] = values[1][i];
  }
}

// In which order a tile asks for rows that lie `ahead` bytes behind its own: as it meets its own, or line after line,
// which needs rows without gaps.
enum class Asking { None, Rows, Lines };
// How far ahead that is: with several groups arithmetic takes longer than memory, and caches keep less of what is far.
constexpr int64_t kRowsAheadOfGroups = 16;

template <typename Group, int kRows, Asking kAsk>
NEURON_TARGET void dot_group_tile(const char* rows, int64_t row_bytes, int64_t depth, const float* group, float scale,
                                  float* result, int64_t result_stride, int64_t ahead) {
  __m256 sums[2][(kRows + 3) / 4 * 4];
#pragma GCC unroll 8
  for (int i = 0; i < (kRows + 3) / 4 * 4; ++i) sums[0][i] = sums[1][i] = _mm256_setzero_ps();
  auto meet = [&](int64_t u, auto load) NEURON_TARGET {
    const __m256 low = _mm256_loadu_ps(group + 4 * u), high = _mm256_loadu_ps(group + 4 * u + 8);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      __m256 units;
      load(rows + i * row_bytes + 4 * u, units);
      sums[0][i] = Group::step(units, low, sums[0][i]);
      sums[1][i] = Group::step(units, high, sums[1][i]);
    }
  };
  auto four = [](const char* x, __m256& units) NEURON_TARGET { units = four_units(x); };
  int64_t u = 0;
  for (; u + 16 <= depth; u += 16) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
#pragma GCC unroll 8
      for (int i = part * kRows / 4; i < (part + 1) * kRows / 4; ++i) {
        if constexpr (kAsk == Asking::Rows) __builtin_prefetch(rows + i * row_bytes + 4 * u + ahead, 0, 2);
        if constexpr (kAsk == Asking::Lines) __builtin_prefetch(rows + ahead + 4 * kRows * u + 64 * i, 0, 2);
      }
      meet(u + 4 * part, four);
    }
  }
  for (; u + 4 <= depth; u += 4) meet(u, four);
  if (u < depth) meet(u, [&](const char* x, __m256& units) NEURON_TARGET { units = first_units(x, depth - u); });
  const __m256 factor = _mm256_set1_ps(scale);
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    float* low = result + 2 * half * result_stride;
#pragma GCC unroll 2
    for (int i = 0; i + 4 <= kRows; i += 4) {
      store_halves<4>(_mm256_mul_ps(factor, sum_fours(&sums[half][i])), low + i, low + result_stride + i);
    }
    if constexpr (kRows % 4 != 0) {
      constexpr int kFirst = kRows / 4 * 4;
      store_halves<kRows % 4>(_mm256_mul_ps(factor, sum_fours(&sums[half][kFirst])), low + kFirst,
                              low + result_stride + kFirst);
    }
  }
}

// All groups meet some rows while those are in the nearest cache.
template <typename Group, int kRows, Asking kAsk>
NEURON_INLINE void dot_groups_of(const char* rows, int64_t row_bytes, int64_t depth, const float* panel, int groups,
                                 float scale, float* result, int64_t result_stride, int64_t ahead) {
  const int64_t group_floats = (depth + 3) / 4 * 16;
  dot_group_tile<Group, kRows, kAsk>(rows, row_bytes, depth, panel, scale, result, result_stride, ahead);
  for (int g = 1; g < groups; ++g) {
    dot_group_tile<Group, kRows, Asking::None>(rows, row_bytes, depth, panel + g * group_floats, scale,
                                               result + 4 * g * result_stride, result_stride, 0);
  }
}

template <typename Group, Asking kAsk>
NEURON_TARGET void dot_groups_over(const char* rows, int64_t row_bytes, int64_t count, int64_t depth,
                                   const float* panel, int groups, float scale, float* result, int64_t result_stride,
                                   const char* next) {
  const int64_t far = kAsk == Asking::Lines ? kRowsAheadOfGroups : kFarRows;
  int64_t k = 0;
  for (; k + kGroupRows <= count; k += kGroupRows, rows += kGroupRows * row_bytes) {
    dot_groups_of<Group, kGroupRows, kAsk>(rows, row_bytes, depth, panel, groups, scale, result + k, result_stride,
                                           rows_ahead(rows, row_bytes, count - k, next, far));
  }
  for (; k < count; ++k, rows += row_bytes) {
    dot_groups_of<Group, 1, Asking::None>(rows, row_bytes, depth, panel, groups, scale, result + k, result_stride, 0);
  }
}

template <typename Group>
NEURON_TARGET void dot_groups(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const float* panel,
                              int groups, float scale, float* result, int64_t result_stride, const char* next, float*) {
  auto* body = groups > 1 && row_bytes == 4 * depth ? dot_groups_over<Group, Asking::Lines>
                                                    : dot_groups_over<Group, Asking::Rows>;
  body(rows, row_bytes, count, depth, panel, groups, scale, result, result_stride, next);
}

// Of elements of 16 bits: some rows are widened, then meet all groups.
template <typename Elements>
NEURON_TARGET void dot_groups_widened(const char* rows, int64_t row_bytes, int64_t count, int64_t depth,
                                      const float* panel, int groups, float scale, float* result, int64_t result_stride,
                                      const char* next, float* widened) {
  const int64_t stride = (depth + 15) / 16 * 16;
  for (int64_t k = 0; k < count; k += kWidenedRows) {
    const int64_t part = count - k < kWidenedRows ? count - k : kWidenedRows;
    for (int64_t i = 0; i < part; ++i, rows += row_bytes) {
      const int64_t ahead = rows_ahead(rows, row_bytes, count - k - i, next, kFarRows);
      float* target = widened + i * stride;
      int64_t u = 0;
      for (; u + 32 <= depth; u += 32) {
        __builtin_prefetch(rows + 2 * u + ahead, 0, 2);
        store(target + u, Elements::load(rows + 2 * u));
        store(target + u + 16, Elements::load(rows + 2 * u + 32));
      }
      for (; u < depth; u += 16) {
        store(target + u,
              depth - u >= 16 ? Elements::load(rows + 2 * u) : Elements::load_first(rows + 2 * u, depth - u));
      }
    }
    dot_groups_over<FloatGroup, Asking::None>(reinterpret_cast<const char*>(widened), stride * 4, part, depth, panel,
                                              groups, scale, result + k, result_stride, nullptr);
  }
}
