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

struct AttentionMatrixUnits {
  // target[i][q] = sum over u < depth of rows[i][u] * panel[u][q], for i < count rounded up to 16. With `maxima`,
  // maxima[q] becomes the largest of itself and the values for i < count; NaN is passed over.
  void (*scores)(const char* rows, int64_t row_bytes, int64_t count, int64_t depth, const void* panel, int lanes,
                 float* target, float* maxima);
  // target[i][j] (+)= sum over u < depth of left[i][u] * right[u][j], for i < rows, j < columns; with `add` the sum
  // begins with what the target holds. Rows of the target are `target_stride` floats apart.
  void (*multiply)(const char* left, int64_t left_bytes, int64_t rows, int64_t depth, const void* right,
                   int64_t right_bytes, int64_t columns, float* target, int64_t target_stride, bool add);
  // scores[k][q] = scale * scores[k][q] + bias[k][q] (when given); those with first + k > limits[q] (when given) become
  // -infinity. Updates maxima as above.
  void (*mask)(float* scores, int64_t count, int lanes, float scale, const float* bias, const int64_t* limits,
               int64_t first, float* maxima);
  // scores[k][q] become exp(scale * scores[k][q] - shifts[q]), or with scale 0 exp(scores[k][q] - shifts[q]), as units
  // of two keys in place, filled up. Their sum over k is added to sums[q] in order; what is rounded to units is
  // multiplied by keep[k][q] (when given) before.
  void (*exponentials)(float* scores, int64_t count, int lanes, float scale, const float* shifts, float* sums,
                       const float* keep);
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
  // target[j][k] = rows[k][j], k < count and j < width filled up to multiples of 32 and 16.
  void (*transpose_rows)(const char* rows, int64_t row_bytes, int64_t count, int64_t width, char* target,
                         int64_t target_bytes);
  // rows[q][u] = factors[q] * panel[u][q], rounded to bfloat16.
  void (*store_lanes)(const float* panel, int lanes, int64_t units, const float* factors, char* const* rows);
  // target[i][j] = factor * values[i][j], rounded to bfloat16; rows of values are `stride` floats apart.
  void (*store_rows)(const float* values, int64_t stride, int64_t count, int64_t width, float factor, char* target,
                     int64_t target_bytes);
};

extern const AttentionMatrixUnits attention_matrix_units;

}  // namespace neuron::kernels
