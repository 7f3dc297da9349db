// The row-wise part of attention between its matrix products. Sums of a row are taken in 16 virtual lanes (lane l takes
// elements l, l + 16, …), then halves are added: 8, 4, 2, 1.
#pragma once

#include <cstdint>

#include "neuron/base/dtype.h"

namespace neuron::kernels {

// row[j] = exp(row[j] - maximum); returns the sum. Results below the smallest normal number are 0; NaN spreads.
float exponentials(float* row, int64_t count, float maximum);
// The largest element; NaN is ignored; -infinity for an empty row.
float row_maximum(const float* row, int64_t count);
float row_dot(const float* x, const float* y, int64_t count);
void scale_row(float* row, int64_t count, float factor);
// probabilities[j] *= (gradients[j] - correction) * scale, that is the gradient of the scores.
void score_gradients(float* probabilities, const float* gradients, int64_t count, float correction, float scale);

}  // namespace neuron::kernels
