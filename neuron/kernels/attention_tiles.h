// The arithmetic of attention between memory and registers, one set of functions per instruction set. All sets do the
// same arithmetic in the same order.
//
// Queries lie side by side in the lanes of a panel: panel[position][kLanes]. A position is a key or a component of the
// head; memory of keys and values is read as it is, one row after the other, and each of its elements meets all lanes.
// The softmax of a query so runs along its lane, and no result of a lane depends on its neighbours.
//
// Products read units of 32 bits: a float, or two bfloat16 that are neighbours along the summed dimension (`Pairs`).
#pragma once

#include <cstdint>

#include "neuron/kernels/attention_ahead.h"

namespace neuron::kernels {

constexpr int kLanes = 48;

// The inputs of the backward pass between products, by panel: all have kLanes floats a key, or kLanes floats.
struct SoftmaxGradient {
  const float* keep = nullptr;  // factors of dropout; null: none
  const float* maxima = nullptr;
  const float* inverse_sums = nullptr;
  const float* corrections = nullptr;  // of each query: the sum of its probabilities' gradients, weighted by them
  float scale = 1;
};

struct AttentionProducts {
  // target[i][q] = scale * sum over u < depth of rows[i][u] * panel[u][q], for i < count; one chain of fused
  // multiply-adds from zero. With `maxima`, maxima[q] becomes the largest of itself and the lane's new values; NaN is
  // passed over.
  void (*rows_by_panel)(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const void* panel, int lanes,
                        float scale, float* target, float* maxima);
  // target[j][q] = fade[q] * target[j][q] + sum over u < depth of rows[u][j] * panel[u][q], for j < width; without
  // `fade` the target is not read. A row of pairs holds one unit per j: key 2u and key 2u + 1.
  void (*columns_by_panel)(const char* rows, int64_t row_bytes, int64_t width, int64_t depth, const void* panel,
                           int lanes, const float* fade, float* target);
  // target[i][d] += sum over u < depth of left[i][u] * right[u][d], for i < count, d < width (a multiple of 16); rows
  // of right and target are `width` apart.
  void (*rows_by_rows)(const char* left, int64_t left_bytes, int64_t count, int64_t depth, const void* right,
                       int64_t width, float* target);
  // scores[k][q] = exp(scores[k][q] - shifts[q]), whose sum over k is added to sums[q] in order; then times
  // keep[k][q] (when given). Pairs are rounded and packed in place, two keys a unit; an odd count is padded with zeros.
  void (*exponentials)(float* scores, int64_t count, int lanes, const float* shifts, float* sums, const float* keep);
  // scores become the probabilities as dropout left them, and gradients (of the probabilities) those of the scores,
  // times scale: floats in place. For pairs `rounded` takes both as bfloat16, [count][kLanes] of probabilities, then of
  // gradients, and the gradients also become units of two keys, in place.
  void (*softmax_gradient)(float* scores, float* gradients, int64_t count, int lanes, const SoftmaxGradient& inputs,
                           void* rounded);
};

// At most kMostVectors vectors against rows of memory, whose units are floats, pairs of bfloat16, or 16 bits that are
// widened. What belongs to several vectors lies side by side, in 1, 2, 4 or 8 lanes, the next of them that is enough.
// Where rows end those at `next`, of the same length and stride, may be asked for (null: none).
struct AttentionRows {
  // result[k][r] = scale * dot product of rows[k] and vectors[r], of `depth` units, for r < vector_count, 1 or 2; in 16
  // lanes whose halves are added last: 8, 4, 2, 1. Vectors are units (floats where rows are widened), padded with zeros
  // to a multiple of 16.
  void (*dot)(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const void* vectors,
              int64_t vector_stride, int vector_count, float scale, float* result);
  // result[k][lane]: the same of 4 or 8 vectors, in 4 lanes (lane l takes units l, l + 4, …) whose halves are added
  // last: 2, 1. The panel is [unit / 4][panel_place(lane)][unit % 4], padded with zeros. `widened` holds kWidenedRows
  // rows of floats, of a multiple of 16.
  void (*dot_groups)(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const float* panel, int lanes,
                     float scale, float* result, const char* next, float* widened);
  // target[r][j] = sum over k < count of weights[k][r] * rows[k][j] for r < vectors, j < width: a chain over k for
  // floats and what is widened; for pairs a chain over pairs of keys, whose weights are rounded, and count is at most
  // kMostWeighed. Rows of target are `target_stride` floats apart.
  void (*weigh)(const char* rows, int64_t row_bytes, int64_t count, int64_t width, const float* weights, int lanes,
                int vectors, float* target, int64_t target_stride, const char* next);
};
constexpr int64_t kWidenedRows = 8;
constexpr int64_t kMostWeighed = 512;
constexpr int kMostVectors = 8;
// Of the lanes of a panel those half of them apart are neighbours.
constexpr int panel_place(int lane, int lanes) {
  const int half = lanes / 2;
  return lane < half ? 2 * lane : 2 * (lane - half) + 1;
}

struct AttentionTiles {
  const char* name;
  AttentionProducts floats;
  AttentionProducts pairs;  // all null where the processor has no bfloat16 products
  AttentionRows float_rows, half_rows, bfloat16_rows;
  AttentionRows bfloat16_pair_rows;  // null with `pairs`

  // scores[k][q] += bias[k][q] (when given); those with first + k > limits[q] (when given) become -infinity. Updates
  // maxima as rows_by_panel does.
  void (*mask)(float* scores, int64_t count, int lanes, const float* bias, const int64_t* limits, int64_t first,
               float* maxima);
  // A running softmax meets new largest scores: shifts[q] is largest[q], or 0 where that is -infinity; fades[q] =
  // exp(maxima[q] - shifts[q]); sums[q] *= fades[q]; maxima[q] = largest[q].
  void (*advance)(const float* largest, int lanes, float* maxima, float* sums, float* shifts, float* fades);
  // panel[u][q] *= factors[q].
  void (*scale_lanes)(float* panel, int64_t units, int lanes, const float* factors);
  // keep[k][q] for keys [first, first + count), first a multiple of 4: `kept` where the lane's number is below the
  // threshold, else 0. Number k of a lane is word k % 4, shifted right by 8, of Philox4x32-10 at counters[q] + k / 4.
  void (*dropout)(uint64_t seed, const uint64_t* counters, int64_t first, int64_t count, int lanes, uint32_t threshold,
                  float kept, float* keep);

  // panel[u][q] = rows[q][u], units of 32 bits; lanes from `lanes` up to the next multiple of 16 become zero.
  void (*to_lanes)(const char* const* rows, int lanes, int64_t units, void* panel);
  // rows[q][u] = panel[u][q], rows `stride` floats apart.
  void (*from_lanes)(const float* panel, int lanes, int64_t units, float* rows, int64_t stride);
  // unit[u][j] = elements j of rows 2u and 2u + 1 of 16 bits; a missing last row is zero. Rows of units are
  // `unit_stride` units apart.
  void (*pair_rows)(const char* rows, int64_t row_bytes, int64_t count, int64_t width, uint32_t* units,
                    int64_t unit_stride);

  // row[j] = exp(row[j] - shift); returns the sum, taken in 16 lanes as in dot_rows.
  float (*row_exponentials)(float* row, int64_t count, float shift);
  float (*row_maximum)(const float* row, int64_t count);
  // The same of [key][lane] for 1, 2, 4 or 8 lanes, lane by lane.
  void (*lane_exponentials)(float* scores, int64_t keys, int lanes, const float* shifts, float* sums);
  void (*lane_maxima)(const float* scores, int64_t keys, int lanes, float* maxima);
  float (*row_dot)(const float* x, const float* y, int64_t count);
};

extern const AttentionTiles attention_tiles_avx2;
extern const AttentionTiles attention_tiles_avx512;
extern const AttentionTiles attention_tiles_avx512_bf16;

// Which of the processor's units attention runs on: the best there are, or fewer of them.
enum class AttentionUnits : int8_t { Best, Avx2, Avx512, Avx512BFloat16 };

// The best set this processor has; raises when it lacks even AVX2, FMA and F16C.
const AttentionTiles& detected_attention_tiles();

}  // namespace neuron::kernels
