// Conversions between float32 and the narrow float formats, and loading or storing one element of any dtype.
// Rounding is to nearest, ties to even; NaN stays NaN; overflow gives infinity (float8_e4m3fn: largest), as in PyTorch.
#pragma once

#include <cstdint>

#include "neuron/base/dtype.h"

namespace neuron {

float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);
float float16_to_float(uint16_t bits);
uint16_t float_to_float16(float value);
float float8_e4m3fn_to_float(uint8_t bits);
uint8_t float_to_float8_e4m3fn(float value);
float float8_e5m2_to_float(uint8_t bits);
uint8_t float_to_float8_e5m2(float value);

// The element at `address` as a double; integers above 2^53 round; complex gives its real part.
double load_as_double(DType dtype, const void* address);
// The element as a 64-bit integer; floats truncate; unsigned 64-bit values keep their bits.
int64_t load_as_int(DType dtype, const void* address);
// Rounds `value` into the element at `address`; complex gets a zero imaginary part. Narrow floats round once, from
// double to the format, by way of float32 only where that cannot round twice differently from PyTorch's own cast.
void store_from_double(DType dtype, double value, void* address);
// Stores an integer; floats round, narrower integers keep the low bits, bool is (value != 0).
void store_from_int(DType dtype, int64_t value, void* address);

}  // namespace neuron
