// Lines of elements without gaps, converted to the type their arithmetic is done in and back: bfloat16 and float16
// eight at a time.
#pragma once

#include <span>

#include "neuron/kernels/elements.h"

namespace neuron::kernels {

void widen_bfloat16(const uint16_t* from, float* to, int64_t count);
void narrow_bfloat16(const float* from, uint16_t* to, int64_t count);
void widen_float16(const uint16_t* from, float* to, int64_t count);
void narrow_float16(const float* from, uint16_t* to, int64_t count);

// sums[i] = (… (sums[i] + scale * lines[0][i]) + …) + scale * lines.back()[i] in float32, rounded once.
void add_lines_bfloat16(uint16_t* sums, std::span<const uint16_t* const> lines, float scale, int64_t count);
void add_lines_float16(uint16_t* sums, std::span<const uint16_t* const> lines, float scale, int64_t count);

// to[i] = E::load(from[i])
template <typename E>
void widen_line(const typename E::Storage* from, typename E::Compute* to, int64_t count) {
  if constexpr (std::is_same_v<E, BFloat16Element>) {
    widen_bfloat16(from, to, count);
  } else if constexpr (std::is_same_v<E, Float16Element>) {
    widen_float16(from, to, count);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = E::load(from[i]);
  }
}

// to[i] = E::store(from[i])
template <typename E>
void narrow_line(const typename E::Compute* from, typename E::Storage* to, int64_t count) {
  if constexpr (std::is_same_v<E, BFloat16Element>) {
    narrow_bfloat16(from, to, count);
  } else if constexpr (std::is_same_v<E, Float16Element>) {
    narrow_float16(from, to, count);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = E::store(from[i]);
  }
}

// The same for lines with a stride.
template <typename E>
void load_line(const typename E::Storage* from, int64_t stride, typename E::Compute* to, int64_t count) {
  if (stride == 1) return widen_line<E>(from, to, count);
  for (int64_t i = 0; i < count; ++i) to[i] = E::load(from[i * stride]);
}
template <typename E>
void store_line(const typename E::Compute* from, typename E::Storage* to, int64_t stride, int64_t count) {
  if (stride == 1) return narrow_line<E>(from, to, count);
  for (int64_t i = 0; i < count; ++i) to[i * stride] = E::store(from[i]);
}

// The same for a dtype known at run time: float32, bfloat16 or float16, computed in float32. Strides in elements.
// values[j] = source[j * stride]
void widen_row(DType dtype, const char* source, int64_t stride, int64_t count, float* values);
// target[j * stride] = values[j] rounded to nearest, ties to even.
void round_row(DType dtype, const float* values, int64_t count, char* target, int64_t stride);

// Whether E is computed in another type than it is stored in.
template <typename E>
inline constexpr bool kIsNarrow = !std::is_same_v<typename E::Storage, typename E::Compute>;

}  // namespace neuron::kernels
