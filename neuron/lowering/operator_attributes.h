// String arguments of operators as attributes.
#pragma once

#include <cstdint>

namespace neuron::lowering {

enum class RoundingMode : int64_t { None, Trunc, Floor };                               // div(rounding_mode)
enum class Approximate : int64_t { None, Tanh };                                        // gelu(approximate)
enum class LossReduction : int64_t { None, Mean, Sum };                                 // at::Reduction
enum class NormKind : int64_t { General, Zero, One, Two, Infinity, NegativeInfinity };  // linalg_vector_norm(ord)
// How many random bits `random` uses: a range below 2^32 (scaled), any range (64-bit remainder), a power of two of 2^32
// or more (the same remainder, without a division), or no range.
enum class RandomRange : int64_t { Narrow, Wide, Full, PowerOfTwo };
// Orders of polygamma up to this one are computed here.
inline constexpr int kLargestPolygamma = 12;

}  // namespace neuron::lowering
