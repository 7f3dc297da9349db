// The arithmetic of attention in bfloat16 on the processor's matrix units. The caller keeps MatrixTiles alive
// meanwhile.
//
// As in attention_tiles.h queries lie side by side in the lanes of panels. Operands of products are whole tiles, filled
// up with zeros. Left ones are rows of elements, a multiple of 16 rows and of 32 elements; they are always copies: rows
// of memory that lie a large power of two apart would drive each other out of the nearest cache. Right ones are rows of
// units, pairs of elements that are neighbours along the summed dimension, a multiple of 16 rows and of 16 units.
#pragma once

#include <cstdint>

#include "neuron/kernels/attention_tiles.h"

namespace neuron::kernels {

// A left operand: its rows are `row_bytes` apart, its tiles along the summed dimension `step` bytes.
struct LeftTiles {
  const char* data = nullptr;
  int64_t row_bytes = 0, step = 64;
  LeftTiles from_row(int64_t row) const { return {data + row * row_bytes, row_bytes, step}; }
  LeftTiles from_element(int64_t element) const { return {data + element / 32 * step, row_bytes, step}; }
};

// From which size on scores are not scaled in one operation with their exponential: the product of their shift would be
// rounded too much.
constexpr float kLargeScore = 0x1p12f;

// What the lanes of a panel keep between blocks of keys. `largest` and `shifts` are of scores not yet scaled, unless
// they are masked; exponentials are taken less the shift, which is the largest score or a little below it, and 0 for a
// lane without keys. `sums` are of exponentials, `weights` of those as they were rounded for the result, so that errors
// of rounding which all have in common leave it alone.
struct AttentionLanes {
  alignas(64) float largest[kLanes], shifts[kLanes] = {}, sums[kLanes] = {}, weights[kLanes] = {};
  float* result;  // [component][lane]
  bool started = false, large = false;
};

// A panel and a block of keys.
struct AttentionMeeting {
  LeftTiles keys, values;  // rows of keys, columns of values
  int64_t first, count, depth, width;
  const void* panel;  // right operand
  int lanes;
  float scale;
  const float* bias;      // [key][lane], added to scores; null: none
  const int64_t* limits;  // last keys of the lanes, which matter for keys first + open and later
  int64_t open;
  const float* keep;  // [key][lane], factors of probabilities; null: none
  float* scratch;     // meeting_scratch(count) floats
};
inline int64_t meeting_scratch(int64_t count) { return (32 + (count + 31) / 32 * 16) * kLanes; }

struct AttentionMatrixUnits {
  // target[i][q] = sum over u < depth of rows[i][u] * panel[u][q], for i < count rounded up to 16.
  void (*scores)(const LeftTiles& rows, int64_t count, int64_t depth, const void* panel, int lanes, float* target);
  // target[i][j] (+)= sum over u < depth of left[i][u] * right[u][j], for i < rows, j < columns; with `add` the sum
  // begins with what the target holds. Rows of the target are `target_stride` floats apart.
  void (*multiply)(const LeftTiles& left, int64_t rows, int64_t depth, const void* right, int64_t right_bytes,
                   int64_t columns, float* target, int64_t target_stride, bool add);
  // scores[k][q] = scale * scores[k][q] + bias[k][q] (when given); those with first + k > limits[q] (when given) become
  // -infinity.
  void (*mask)(float* scores, int64_t count, int lanes, float scale, const float* bias, const int64_t* limits,
               int64_t first);
  // Scores and their exponentials of 32 keys after the others, then the product with the values.
  void (*meet)(const AttentionMeeting& meeting, AttentionLanes& lanes);
  // Scores, of which those to be scaled have a score_scale other than 0, become probabilities, and with gradients of
  // the probabilities the gradients of the scores, but for inputs.scale. Both are rounded into rows of lanes, a left
  // operand whose rows are `row_elements` apart; lanes from 48 on are not written. Gradients also become units of two
  // keys. All are filled up along the keys.
  void (*softmax_gradient)(const float* scores, const float* gradients, int64_t count, int lanes, float score_scale,
                           const SoftmaxGradient& inputs, uint16_t* probabilities, uint16_t* score_gradients,
                           int64_t row_elements, float* units);
  // target[i] = rows[i] of `width` elements, filled up to `padded_rows` rows of `target_bytes`.
  void (*copy_rows)(const char* rows, int64_t row_bytes, int64_t count, int64_t width, char* target,
                    int64_t target_bytes, int64_t padded_rows);
  // Row j of the target is elements j of the rows [0, count), filled up to multiples of 32 and 16: tiles whose rows lie
  // side by side, 32 elements of all of them after the other.
  void (*transpose_rows)(const char* rows, int64_t row_bytes, int64_t count, int64_t width, char* target);
  // rows[q][k] = scale * scores[k][q] for q < count of at most 16 lanes; rows of both are `stride` and 16 floats apart.
  void (*turn)(const float* scores, int64_t keys, int count, float scale, float* rows, int64_t stride);
  // rows[q][u] = factors[q] * panel[u][q], rounded to bfloat16.
  void (*store_lanes)(const float* panel, int lanes, int64_t units, const float* factors, char* const* rows);
  // target[i][j] = factor * values[i][j], rounded to bfloat16; rows of values are `stride` floats apart.
  void (*store_rows)(const float* values, int64_t stride, int64_t count, int64_t width, float factor, char* target,
                     int64_t target_bytes);
};

extern const AttentionMatrixUnits attention_matrix_units;

}  // namespace neuron::kernels
