// Rows of float32, bfloat16 and float16 to float32 and back, for kernels that compute in float32.
#pragma once

#include <cstdint>

#include "neuron/base/dtype.h"

namespace neuron::kernels {

// values[j] = source[j * stride] as float32; stride in elements.
void widen_row(DType dtype, const char* source, int64_t stride, int64_t count, float* values);
// target[j * stride] = values[j] rounded to nearest, ties to even.
void round_row(DType dtype, const float* values, int64_t count, char* target, int64_t stride);

}  // namespace neuron::kernels
