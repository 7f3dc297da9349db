// The loops of AttentionTiles, written on vectors of 16 lanes. Included once by each file of an instruction set, inside
// its unnamed namespace, after that has defined
//   NEURON_TARGET and NEURON_INLINE (function attributes), Vector, Integers and their operations,
//   kTileRows and kTileVectors: the tile of a product in registers.
// This file has no include guard and no namespace for that reason.

#include "neuron/kernels/attention_limits.h"

// What one unit of a product is: floats here; pairs of bfloat16 where the instruction set has them.
struct FloatUnits {
  static constexpr bool kPairs = false;
  NEURON_INLINE static Vector step(Vector x, Vector y, Vector sum) { return multiply_add(x, y, sum); }
};

// --- products ------------------------------------------------------------------------------------------------------

// sums[i][v] = chain over u of a[i, u] * b[u, v]: units of a at a + i * a_row + u * a_step bytes.
template <typename Units, int kRows, int kVectors>
NEURON_INLINE void chain(int64_t depth, const char* a, int64_t a_row, int64_t a_step, const char* b, int64_t b_step,
                         Vector (&sums)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[i][v] = zero();
  }
  for (int64_t u = 0; u < depth; ++u) {
    Vector panel[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) panel[v] = load(reinterpret_cast<const float*>(b) + 16 * v);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      Vector unit = broadcast(reinterpret_cast<const float*>(a + i * a_row));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = Units::step(unit, panel[v], sums[i][v]);
    }
    a += a_step;
    b += b_step;
  }
}

template <typename Units, int kRows, int kVectors>
NEURON_TARGET void rows_by_panel_tile(const char* rows, int64_t row_bytes, int64_t depth, const char* panel,
                                      float scale, float* target, float* maxima) {
  Vector sums[kRows][kVectors];
  chain<Units, kRows, kVectors>(depth, rows, row_bytes, 4, panel, kLanes * 4, sums);
  if (scale != 1.0f) {
    Vector factor = set(scale);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = multiply(sums[i][v], factor);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(target + i * kLanes + 16 * v, sums[i][v]);
  }
  if (maxima == nullptr) return;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    Vector best = load(maxima + 16 * v);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) best = maximum(sums[i][v], best);
    store(maxima + 16 * v, best);
  }
}

// Calls Body::run<kRows>(i) for i over [0, count) in steps: full tiles, then halves of what is left.
template <typename Body>
NEURON_INLINE void over_rows(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kTileRows <= count; i += kTileRows) body.template run<kTileRows>(i);
  if (count - i >= 4) {
    body.template run<4>(i);
    i += 4;
  }
  if (count - i >= 2) {
    body.template run<2>(i);
    i += 2;
  }
  if (count - i >= 1) body.template run<1>(i);
}

template <typename Units, int kVectors>
struct RowsByPanel {
  const char* rows;
  int64_t row_bytes, depth;
  const char* panel;
  float scale;
  float *target, *maxima;
  template <int kRows>
  NEURON_INLINE void run(int64_t i) const {
    rows_by_panel_tile<Units, kRows, kVectors>(rows + i * row_bytes, row_bytes, depth, panel, scale,
                                               target + i * kLanes, maxima);
  }
};

// Lanes in groups of at most kTileVectors vectors.
template <typename Units>
NEURON_TARGET void rows_by_panel(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const void* panel,
                                 int lanes, float scale, float* target, float* maxima) {
  const char* first = static_cast<const char*>(panel);
  for (int lane = 0; lane < lanes; lane += 16 * kTileVectors) {
    const char* from = first + lane * 4;
    float* best = maxima == nullptr ? nullptr : maxima + lane;
    int vectors = (lanes - lane + 15) / 16;
    if constexpr (kTileVectors >= 3) {
      if (vectors >= 3) {
        over_rows(count, RowsByPanel<Units, 3>{rows, row_bytes, depth, from, scale, target + lane, best});
        continue;
      }
      if (vectors == 2) {
        over_rows(count, RowsByPanel<Units, 2>{rows, row_bytes, depth, from, scale, target + lane, best});
        continue;
      }
    }
    over_rows(count, RowsByPanel<Units, 1>{rows, row_bytes, depth, from, scale, target + lane, best});
  }
}

template <typename Units, int kRows, int kVectors>
NEURON_TARGET void columns_by_panel_tile(const char* rows, int64_t row_bytes, int64_t depth, const char* panel,
                                         const float* fade, float* target) {
  Vector sums[kRows][kVectors];
  chain<Units, kRows, kVectors>(depth, rows, 4, row_bytes, panel, kLanes * 4, sums);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    Vector factor = fade == nullptr ? zero() : load(fade + 16 * v);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      float* place = target + i * kLanes + 16 * v;
      store(place, fade == nullptr ? sums[i][v] : multiply_add(factor, load(place), sums[i][v]));
    }
  }
}

template <typename Units, int kVectors>
struct ColumnsByPanel {
  const char* rows;
  int64_t row_bytes, depth;
  const char* panel;
  const float* fade;
  float* target;
  template <int kRows>
  NEURON_INLINE void run(int64_t j) const {
    columns_by_panel_tile<Units, kRows, kVectors>(rows + j * 4, row_bytes, depth, panel, fade, target + j * kLanes);
  }
};

template <typename Units>
NEURON_TARGET void columns_by_panel(const char* rows, int64_t row_bytes, int64_t width, int64_t depth,
                                    const void* panel, int lanes, const float* fade, float* target) {
  const char* first = static_cast<const char*>(panel);
  for (int lane = 0; lane < lanes; lane += 16 * kTileVectors) {
    const char* from = first + lane * 4;
    const float* factors = fade == nullptr ? nullptr : fade + lane;
    int vectors = (lanes - lane + 15) / 16;
    if constexpr (kTileVectors >= 3) {
      if (vectors >= 3) {
        over_rows(width, ColumnsByPanel<Units, 3>{rows, row_bytes, depth, from, factors, target + lane});
        continue;
      }
      if (vectors == 2) {
        over_rows(width, ColumnsByPanel<Units, 2>{rows, row_bytes, depth, from, factors, target + lane});
        continue;
      }
    }
    over_rows(width, ColumnsByPanel<Units, 1>{rows, row_bytes, depth, from, factors, target + lane});
  }
}

template <typename Units, int kRows, int kVectors>
NEURON_TARGET void rows_by_rows_tile(const char* left, int64_t left_bytes, int64_t depth, const char* right,
                                     int64_t width, float* target) {
  Vector sums[kRows][kVectors];
  chain<Units, kRows, kVectors>(depth, left, left_bytes, 4, right, width * 4, sums);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* place = target + i * width + 16 * v;
      store(place, add(load(place), sums[i][v]));
    }
  }
}

template <typename Units, int kVectors>
struct RowsByRows {
  const char* left;
  int64_t left_bytes, depth;
  const char* right;
  int64_t width;
  float* target;
  template <int kRows>
  NEURON_INLINE void run(int64_t i) const {
    rows_by_rows_tile<Units, kRows, kVectors>(left + i * left_bytes, left_bytes, depth, right, width,
                                              target + i * width);
  }
};

template <typename Units>
NEURON_TARGET void rows_by_rows(const char* left, int64_t left_bytes, int64_t count, int64_t depth, const void* right,
                                int64_t width, float* target) {
  const char* first = static_cast<const char*>(right);
  for (int64_t d = 0; d < width;) {
    int64_t vectors = (width - d) / 16;
    const char* from = first + d * 4;
    if constexpr (kTileVectors >= 3) {
      if (vectors == 3 || vectors >= 5) {
        over_rows(count, RowsByRows<Units, 3>{left, left_bytes, depth, from, width, target + d});
        d += 48;
        continue;
      }
      if (vectors >= 2) {
        over_rows(count, RowsByRows<Units, 2>{left, left_bytes, depth, from, width, target + d});
        d += 32;
        continue;
      }
    }
    over_rows(count, RowsByRows<Units, 1>{left, left_bytes, depth, from, width, target + d});
    d += 16;
  }
}

// --- the softmax between products ------------------------------------------------------------------------------------

// exp(x) = 2^n * p(f) with n the nearest integer of y = x / ln 2 and f = y - n in [-0.5, 0.5]; p is the polynomial of
// least relative error with p(0) = 1, which is 0.77 ulp. The relative error is below 2 ulp + 1.25 |x| 2^-24. Results
// below 2^-125 are zero.
NEURON_INLINE Vector exponential(Vector x) {
  Vector y = multiply(x, set(1.44269504f)), n, f;
  split(y, n, f);
  Vector p = set(0.00132647272057961f);
  p = multiply_add(p, f, set(0.009671512648628321f));
  p = multiply_add(p, f, set(0.05550733743312753f));
  p = multiply_add(p, f, set(0.24022242085238404f));
  p = multiply_add(p, f, set(0.6931469775990815f));
  p = multiply_add(p, f, set(1.0f));
  return times_power_of_two(p, n, y, -125.0f);
}

NEURON_TARGET void mask_scores(float* scores, int64_t count, int lanes, const float* bias, const int64_t* limits,
                               int64_t first, float* maxima) {
  for (int lane = 0; lane < lanes; lane += 16) {
    Vector best = load(maxima + lane);
    Integers bound = integers(0);
    if (limits != nullptr) bound = relative_limits(limits + lane, first, count);
    for (int64_t k = 0; k < count; ++k) {
      float* place = scores + k * kLanes + lane;
      Vector score = load(place);
      if (bias != nullptr) score = add(score, load(bias + k * kLanes + lane));
      if (limits != nullptr) score = lowest_where_less(bound, integers(static_cast<int32_t>(k)), score);
      store(place, score);
      best = maximum(score, best);
    }
    store(maxima + lane, best);
  }
}

NEURON_TARGET void advance(const float* largest, int lanes, float* maxima, float* sums, float* shifts, float* fades) {
  for (int lane = 0; lane < lanes; lane += 16) {
    Vector best = load(largest + lane), shift = zero_where_below(best, -__FLT_MAX__, best);
    Vector fade = exponential(subtract(load(maxima + lane), shift));
    store(shifts + lane, shift);
    store(fades + lane, fade);
    store(sums + lane, multiply(load(sums + lane), fade));
    store(maxima + lane, best);
  }
}

template <typename Units>
NEURON_TARGET void exponentials(float* scores, int64_t count, int lanes, const float* shifts, float* sums,
                                const float* keep) {
  for (int lane = 0; lane < lanes; lane += 16) {
    Vector shift = load(shifts + lane), sum = zero();
    for (int64_t k = 0; k < count; k += 2) {
      float* place = scores + k * kLanes + lane;
      Vector x = exponential(subtract(load(place), shift)), y = zero();
      sum = add(sum, x);
      if (k + 1 < count) {
        y = exponential(subtract(load(place + kLanes), shift));
        sum = add(sum, y);
      }
      if (keep != nullptr) {
        x = multiply(x, load(keep + k * kLanes + lane));
        if (k + 1 < count) y = multiply(y, load(keep + (k + 1) * kLanes + lane));
      }
      if constexpr (Units::kPairs) {
        store(scores + k / 2 * kLanes + lane, Units::pack(x, y));
      } else {
        store(place, x);
        if (k + 1 < count) store(place + kLanes, y);
      }
    }
    store(sums + lane, add(load(sums + lane), sum));
  }
}

NEURON_INLINE void probability_and_gradient(const SoftmaxGradient& inputs, int lane, int64_t k, Vector& score,
                                            Vector& gradient) {
  Vector probability =
      multiply(exponential(subtract(score, load(inputs.maxima + lane))), load(inputs.inverse_sums + lane));
  score = probability;
  if (inputs.keep != nullptr) {
    Vector keep = load(inputs.keep + k * kLanes + lane);
    score = multiply(probability, keep);
    gradient = multiply(gradient, keep);
  }
  gradient = multiply(multiply(probability, subtract(gradient, load(inputs.corrections + lane))), set(inputs.scale));
}

template <typename Units>
NEURON_TARGET void softmax_gradient(float* scores, float* gradients, int64_t count, int lanes,
                                    const SoftmaxGradient& inputs, void* rounded) {
  for (int64_t k = 0; k < count; k += 2) {
    for (int lane = 0; lane < lanes; lane += 16) {
      int64_t place = k * kLanes + lane;
      Vector x = load(scores + place), y = zero(), gx = load(gradients + place), gy = zero();
      probability_and_gradient(inputs, lane, k, x, gx);
      if (k + 1 < count) {
        y = load(scores + place + kLanes), gy = load(gradients + place + kLanes);
        probability_and_gradient(inputs, lane, k + 1, y, gy);
      }
      if constexpr (Units::kPairs) {
        auto* probabilities = static_cast<uint16_t*>(rounded) + place;
        uint16_t* rows = probabilities + count * kLanes;
        Units::store(probabilities, x);
        Units::store(rows, gx);
        if (k + 1 < count) {
          Units::store(probabilities + kLanes, y);
          Units::store(rows + kLanes, gy);
        }
        store(gradients + k / 2 * kLanes + lane, Units::pack(gx, gy));
      } else {
        store(scores + place, x);
        store(gradients + place, gx);
        if (k + 1 < count) {
          store(scores + place + kLanes, y);
          store(gradients + place + kLanes, gy);
        }
      }
    }
  }
}

// --- dropout

NEURON_TARGET void dropout(uint64_t seed, const uint64_t* counters, int64_t first, int64_t count, int lanes,
                           uint32_t threshold, float kept, float* keep) {
  for (int lane = 0; lane < lanes; lane += 16) {
    for (int64_t k = 0; k < count; k += 4) {
      alignas(64) int32_t low[16], high[16];
      for (int i = 0; i < 16; ++i) {
        uint64_t counter = counters[lane + i] + static_cast<uint64_t>(first + k) / 4;
        low[i] = static_cast<int32_t>(counter);
        high[i] = static_cast<int32_t>(counter >> 32);
      }
      Integers words[4] = {load_integers(low), load_integers(high), integers(0), integers(0)};
      uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
      for (int round = 0; round < 10; ++round) {
        Integers low0, high0, low1, high1;
        multiply_wide(words[0], 0xD2511F53u, low0, high0);
        multiply_wide(words[2], 0xCD9E8D57u, low1, high1);
        words[0] = exclusive_or(exclusive_or(high1, words[1]), integers(static_cast<int32_t>(key0)));
        words[1] = low1;
        words[2] = exclusive_or(exclusive_or(high0, words[3]), integers(static_cast<int32_t>(key1)));
        words[3] = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
      }
      Vector value = set(kept);
      Integers bound = integers(static_cast<int32_t>(threshold));
      for (int64_t i = 0; i < 4 && k + i < count; ++i) {
        store(keep + (k + i) * kLanes + lane, value_where_less(shift_right_8(words[i]), bound, value));
      }
    }
  }
}

// --- layout

NEURON_TARGET void scale_lanes(float* panel, int64_t units, int lanes, const float* factors) {
  for (int lane = 0; lane < lanes; lane += 16) {
    Vector factor = load(factors + lane);
    for (int64_t u = 0; u < units; ++u) {
      float* place = panel + u * kLanes + lane;
      store(place, multiply(load(place), factor));
    }
  }
}

NEURON_TARGET void to_lanes(const char* const* rows, int lanes, int64_t units, void* panel) {
  auto* target = static_cast<float*>(panel);
  for (int lane = 0; lane < lanes; lane += 16) {
    int64_t u = 0;
    for (; u < units; u += 16) {
      int64_t count = units - u < 16 ? units - u : 16;
      Vector block[16];
      for (int i = 0; i < 16; ++i) {
        if (lane + i >= lanes) {
          block[i] = zero();
        } else {
          auto* source = reinterpret_cast<const float*>(rows[lane + i]) + u;
          block[i] = count == 16 ? load(source) : load_first(source, count);
        }
      }
      transpose(block);
      for (int64_t i = 0; i < count; ++i) store(target + (u + i) * kLanes + lane, block[i]);
    }
  }
}

NEURON_TARGET void from_lanes(const float* panel, int lanes, int64_t units, float* rows, int64_t stride) {
  for (int lane = 0; lane < lanes; lane += 16) {
    for (int64_t u = 0; u < units; u += 16) {
      int64_t count = units - u < 16 ? units - u : 16;
      Vector block[16];
      for (int i = 0; i < 16; ++i) block[i] = i < count ? load(panel + (u + i) * kLanes + lane) : zero();
      transpose(block);
      for (int i = 0; i < 16 && lane + i < lanes; ++i) {
        float* target = rows + (lane + i) * stride + u;
        if (count == 16) {
          store(target, block[i]);
        } else {
          store_first(target, count, block[i]);
        }
      }
    }
  }
}
